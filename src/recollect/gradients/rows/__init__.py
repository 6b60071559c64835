"""Whose row is it? Found once for a kind of pass, and kept as a plan."""
