"""The model with its objective: batches, checks of answers, passes by hand or by autograd."""
