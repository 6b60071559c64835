"""What came out: records, their columns, the store that keeps them."""
