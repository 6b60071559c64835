"""Speed and memory, one script per question. Figures are ratios measured in one run."""
