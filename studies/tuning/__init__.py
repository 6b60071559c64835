"""Committed searches for settings: their pages, and what they chose put into the package's specs."""
