"""`check_rule` lets sound rules pass and says of broken ones what is broken."""

import re
from collections.abc import Sequence
from typing import ClassVar

import pytest
import torch
from torch import Tensor
from typing_extensions import override

from recollect.rules import GradientSum, Rule
from recollect.rules.rule import Needs
from recollect.testing import check_rule


class LongerCountsMore(Rule):
    """Sound: replayed gradients weigh by their share of all lengths, zero or not."""

    @override
    def __call__(self, gram: Tensor) -> Tensor:
        weights = gram.diagonal().clamp_min(0).sqrt()
        weights[1:] /= weights[1:].sum().clamp_min(torch.finfo(gram.dtype).tiny)
        weights[0] = 1
        return weights


def test_a_sound_rule_passes() -> None:
    check_rule(LongerCountsMore())


class NoWeightForTheIncoming(Rule):
    @override
    def __call__(self, gram: Tensor) -> Tensor:
        return gram[0, 1:]


class AlwaysSinglePrecision(Rule):
    @override
    def __call__(self, gram: Tensor) -> Tensor:
        return torch.ones(len(gram))


class DividesByZero(Rule):
    @override
    def __call__(self, gram: Tensor) -> Tensor:
        return gram[0] / gram[0, 0]


class FirstReplayedOnly(Rule):
    @override
    def __call__(self, gram: Tensor) -> Tensor:
        weights = torch.zeros_like(gram[0])
        weights[:2] = 1
        return weights


class WritesToTheGram(Rule):
    @override
    def __call__(self, gram: Tensor) -> Tensor:
        return gram.fill_diagonal_(1)[0]


class Undecided(Rule):
    def __init__(self) -> None:
        self.calls = 0

    @override
    def __call__(self, gram: Tensor) -> Tensor:
        self.calls += 1
        return torch.full_like(gram[0], self.calls)


class Random(Rule):
    @override
    def __call__(self, gram: Tensor) -> Tensor:
        return torch.rand_like(gram[0])


class SecretReader(Rule):
    needs: ClassVar[Needs] = "nothing"

    @override
    def __call__(self, gram: Tensor) -> Tensor:
        return gram[0].clone()


class ReadsBesideTheRow(Rule):
    needs: ClassVar[Needs] = "row"

    @override
    def __call__(self, gram: Tensor) -> Tensor:
        return gram.sum(1)


class SaysItOtherwise(Rule):
    needs: ClassVar[Needs] = "row"

    @override
    def __call__(self, gram: Tensor) -> Tensor:
        return torch.ones_like(gram[0])

    @override
    def row_weights(
        self, products: Sequence[float], squared_lengths: Sequence[float]
    ) -> Sequence[float]:
        return [2.0] * len(products)


class NeedsTwo(Rule):
    @override
    def __call__(self, gram: Tensor) -> Tensor:
        return torch.full_like(gram[0], float(gram[1, 2]))


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        (NoWeightForTheIncoming, "returned (1,) for 2 gradients"),
        (AlwaysSinglePrecision, "returned torch.float32 on cpu for a Gram matrix of torch.float64"),
        (DividesByZero, "weights must be finite"),
        (FirstReplayedOnly, "other weights when they changed places"),
        (WritesToTheGram, "wrote to the Gram matrix"),
        (Undecided, "gave two answers to one question"),
        (Random, "drew from a global generator"),
        (SecretReader, "read the Gram matrix though its `needs` is"),
        (ReadsBesideTheRow, "read more of the Gram matrix than row 0 and the diagonal"),
        (SaysItOtherwise, "gave other weights by `row_weights` than for the matrix"),
        (NeedsTwo, "raised IndexError in a call with 1 random replayed gradients"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_broken_rule_is_found_out(broken: type[Rule], complaint: str) -> None:
    with pytest.raises(AssertionError, match=re.escape(complaint)):
        check_rule(broken())


def test_a_rule_that_depends_on_places_passes_when_it_says_so() -> None:
    check_rule(FirstReplayedOnly(), order_matters=True)


def test_a_class_instead_of_an_instance_is_refused() -> None:
    with pytest.raises(TypeError, match=r"`rule` is <class .*GradientSum.*>; pass an instance"):
        check_rule(GradientSum)  # type: ignore[arg-type]
