"""What another machine, or rounding, makes of a result."""
