"""Spec -> build -> run -> record: everything between a benchmark and a table."""
