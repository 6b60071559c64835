"""Convolutions of every kind: plain, grouped, depthwise, transposed."""
