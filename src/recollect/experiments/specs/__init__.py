"""What to run: specs, the cells and requests they make, and what is built from them."""
