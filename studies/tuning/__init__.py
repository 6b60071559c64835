"""What a search tries, which settings it chooses, and the page it writes."""
