"""Committed searches for settings: their pages, and their choices in the package's specs."""
