"""Other libraries beside ours. They live in an environment of their own: `make perf-peers`."""
