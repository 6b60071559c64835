"""What runs cost beside their learning: one, many, and on many processes."""
