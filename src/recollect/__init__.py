"""Task-free online continual learning for PyTorch."""
