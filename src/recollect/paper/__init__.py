"""Tables, figures and verdicts of the one paper: everything that knows its numbers."""
