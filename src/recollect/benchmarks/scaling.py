"""Stored inputs become what the model reads. The memory keeps them as stored."""

from collections.abc import Callable, Mapping
from typing import Final

from torch import Tensor

from recollect.benchmarks.protocols import ScalingName


def flat_unit(inputs: Tensor) -> Tensor:
    """Scale bytes to [0, 1] and flatten: 784 floats of an MNIST digit."""
    return unit(inputs).flatten(1)


def unit(inputs: Tensor) -> Tensor:
    """Scale bytes to [0, 1]."""
    return inputs.float() / 255


def centred(inputs: Tensor) -> Tensor:
    """Scale bytes to [-1, 1]: (x / 255 - 0.5) * 2."""
    return (inputs.float() / 255 - 0.5) * 2


def words(inputs: Tensor) -> Tensor:
    """Leave whole numbers what they are, in the type that tables of words are asked in."""
    return inputs.long()


SCALINGS: Final[Mapping[ScalingName, Callable[[Tensor], Tensor]]] = {
    "flat-unit": flat_unit,
    "unit": unit,
    "centred": centred,
    "words": words,
}


def as_given(inputs: Tensor) -> Tensor:
    """Leave floats as they are."""
    return inputs
