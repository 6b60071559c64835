"""Studies on real data: how settings were chosen, and what readings of the paper do."""
