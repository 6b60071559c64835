"""Bytes on disk, in a package or from a registry become tensors, checked before use."""

from recollect.datasets.examples import Examples, LabelledData

__all__ = ["Examples", "LabelledData"]
