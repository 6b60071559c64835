"""What PGD is made of, and what it does to an update."""
