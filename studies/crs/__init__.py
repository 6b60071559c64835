"""What CRS does to a memory, and what it gains from that."""
