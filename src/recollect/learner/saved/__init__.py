"""A learner in a file: what is written, what is checked, and how it is taken over whole."""
