"""Tensors become a single-pass sequence of `(inputs, labels)` batches."""

from recollect.streams.blurred_boundaries import blurred_boundaries
from recollect.streams.budget import within_budget
from recollect.streams.class_arrival import blurred_classes, repeated_classes
from recollect.streams.from_iterable import IterableStream, from_iterable
from recollect.streams.imbalanced import imbalanced, long_tailed
from recollect.streams.plan import Plan
from recollect.streams.seeds import derived_generator
from recollect.streams.segment import Segment
from recollect.streams.split_classes import random_groups, split_classes
from recollect.streams.stream import Batch, SinglePass, Stream
from recollect.streams.transformed import permuted_pixels, rotated
from recollect.streams.transforms import InputTransform, PixelPermutation, Rotation, Unchanged

__all__ = [
    "Batch",
    "InputTransform",
    "IterableStream",
    "PixelPermutation",
    "Plan",
    "Rotation",
    "Segment",
    "SinglePass",
    "Stream",
    "Unchanged",
    "blurred_boundaries",
    "blurred_classes",
    "derived_generator",
    "from_iterable",
    "imbalanced",
    "long_tailed",
    "permuted_pixels",
    "random_groups",
    "repeated_classes",
    "rotated",
    "split_classes",
    "within_budget",
]
