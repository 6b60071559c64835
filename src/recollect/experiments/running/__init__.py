"""Runs on worker processes: each killed one is noticed, each lost run continued."""
