"""`check_objective` lets sound objectives pass and says of broken ones what is broken."""

from collections.abc import Mapping

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from typing_extensions import override

from recollect.memory import MemoryColumn
from recollect.objectives import Answers, Objective, Part
from recollect.testing import check_objective


class Sound(Objective):
    """Cross entropy, with what each example asks for."""

    draws = False

    @override
    def __call__(self, answers: Answers) -> Tensor:
        return F.cross_entropy(answers.outputs, answers.labels, reduction="none")


def test_a_sound_objective_passes() -> None:
    check_objective(Sound())
    check_objective(Sound(), width=9)


class OneForAll(Sound):
    @override
    def __call__(self, answers: Answers) -> Tensor:
        return super().__call__(answers).mean()


class SinglePrecision(Sound):
    @override
    def __call__(self, answers: Answers) -> Tensor:
        return super().__call__(answers).float()


class WithoutAnEnd(Sound):
    @override
    def __call__(self, answers: Answers) -> Tensor:
        return super().__call__(answers) / len(answers.incoming)


class WithoutASlope(Sound):
    @override
    def __call__(self, answers: Answers) -> Tensor:
        away = answers.outputs - answers.outputs.detach()
        return super().__call__(answers) + away.square().sum(1).sqrt()


class WritesToLabels(Sound):
    @override
    def __call__(self, answers: Answers) -> Tensor:
        losses = super().__call__(answers)
        answers.labels[:] = 0
        return losses


class DrawsUnsaid(Sound):
    @override
    def __call__(self, answers: Answers) -> Tensor:
        return super().__call__(answers) + 0 * torch.rand(1, dtype=answers.outputs.dtype)


class Undecided(Sound):
    def __init__(self) -> None:
        self.calls = 0

    @override
    def __call__(self, answers: Answers) -> Tensor:
        self.calls += 1
        return super().__call__(answers) * self.calls


class ByPlace(Sound):
    @override
    def __call__(self, answers: Answers) -> Tensor:
        losses = super().__call__(answers)
        return losses * torch.arange(1, len(losses) + 1, dtype=losses.dtype)


class CouplesUnsaid(Sound):
    @override
    def __call__(self, answers: Answers) -> Tensor:
        return super().__call__(answers) + answers.outputs.mean()


class LooksAtTheOtherPart(Sound):
    @override
    def __call__(self, answers: Answers) -> Tensor:
        return super().__call__(answers) * (1 + len(answers.replayed))


class ReadsClassesUnsaid(Sound):
    @override
    def __call__(self, answers: Answers) -> Tensor:
        return super().__call__(answers) * (1 + len(answers.classes_seen))


class KeepsNothing(Sound):
    columns = (MemoryColumn("mine"),)


class Keeps(Sound):
    columns = (MemoryColumn("mine"),)

    def __init__(self, rows: Tensor) -> None:
        self.rows = rows

    @override
    def rows_to_keep(self, incoming: Part) -> Mapping[str, Tensor]:
        return {"mine": self.rows}


class Raises(Sound):
    @override
    def __call__(self, answers: Answers) -> Tensor:
        return answers.replayed.columns["absent"]


@pytest.mark.parametrize(
    ("objective", "told"),
    [
        (OneForAll(), "return one loss for each of"),
        (SinglePrecision(), "keep the precision of outputs"),
        (WithoutAnEnd(), "losses must be finite"),
        (WithoutASlope(), "has a gradient with NaN or infinity"),
        (WritesToLabels(), "wrote to what it was given|gave two answers"),
        (DrawsUnsaid(), "drew from a global generator"),
        (Undecided(), "gave two answers to one question"),
        (ByPlace(), "other losses when they changed places"),
        (CouplesUnsaid(), "set `couples` to true"),
        (LooksAtTheOtherPart(), "other losses when they pass alone"),
        (ReadsClassesUnsaid(), "read `classes_seen`"),
        (KeepsNothing(), r"declares the columns \['mine'\] and keeps \[\]"),
        (Keeps(torch.zeros(99)), "one detached row per example"),
        (Raises(), "raised KeyError in a call"),
    ],
    ids=lambda case: type(case).__name__ if isinstance(case, Objective) else "",
)
def test_what_is_broken_is_said(objective: Objective, told: str) -> None:
    with pytest.raises(AssertionError, match=told):
        check_objective(objective)


def test_what_is_no_objective_is_said() -> None:
    with pytest.raises(TypeError, match="pass an instance of a subclass of `Objective`"):
        check_objective(Sound)  # type: ignore[arg-type]
