"""Two ways of one contract to pass a batch: by hand and by autograd."""
