"""What is timed: models and examples, full memories, and replay written by hand."""
