"""Stored inputs become what the model reads. The memory keeps them as stored."""

from torch import Tensor


def flat_unit(inputs: Tensor) -> Tensor:
    """Scale bytes to [0, 1] and flatten: 784 floats of an MNIST digit."""
    return unit(inputs).flatten(1)


def unit(inputs: Tensor) -> Tensor:
    """Scale bytes to [0, 1]."""
    return inputs.float() / 255


def centred(inputs: Tensor) -> Tensor:
    """Scale bytes to [-1, 1]: (x / 255 - 0.5) * 2."""
    return (inputs.float() / 255 - 0.5) * 2


def as_given(inputs: Tensor) -> Tensor:
    """Leave floats as they are."""
    return inputs
