"""Speed and memory, one script a question. Figures are ratios measured in one run."""
