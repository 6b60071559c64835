"""What functions take and return is held to the shapes in their annotations."""

import importlib

import pytest
import torch
from jaxtyping import TypeCheckError
from tests import shapes

from recollect.rules import GradientSum


@pytest.mark.skipif(not shapes.IS_EVERYWHERE, reason="shapes are checked in a run of their own")
def test_a_matrix_that_is_not_square_is_noticed_in_tests() -> None:
    with pytest.raises(TypeCheckError):
        GradientSum()(torch.zeros(3, 2))


def test_whoever_is_left_out_states_shapes() -> None:
    for name in shapes.NOT_CHECKED:
        path = importlib.import_module(name).__file__
        assert path is not None
        with open(path) as source:
            assert "from jaxtyping import" in source.read()
