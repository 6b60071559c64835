"""Questions about single parts of a step on images."""
