"""What the command shows while it works, and when it is done."""
