"""Readings of what the paper leaves open, and what each does."""
