"""What PGD and CRS add, and how sure that is."""
