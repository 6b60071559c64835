"""Settings searched for on validation data: what `recollect tune` does."""
