"""Pages about a search for settings."""
