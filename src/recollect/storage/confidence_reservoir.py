"""Confidence Reservoir Sampling, the paper's storage."""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal, final

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float, Int64
from torch import Tensor
from typing_extensions import override

from recollect.choices import MarginTiming
from recollect.memory import Memory
from recollect.ranges import Choice, Log
from recollect.storage.proposals import draw_by_proposals
from recollect.storage.reservoir import reservoir_admission
from recollect.storage.storage import Evidence, Placement, Storage

Scores = npt.NDArray[np.float32]
Classes = npt.NDArray[np.int64]

LARGE: Final = 2**14  # slots from which victims are drawn by proposals


@final
@dataclass(frozen=True)
class ConfidenceReservoir(Storage):
    r"""Admit like a reservoir, but replace the over-used or easy example (CRS).

    Each stored example has a replacement score (Eq. 14)

        S = EX + c * MI,    EX = times replayed / age,    MI = margin after - margin before a step

    and an admitted newcomer takes the slot of a high score: of the highest (s1), or drawn with
    probability S_j / sum S (s2).

    Args:
        pick: `"highest"` is s1, `"proportional"` is s2. s2 is the default, because on MNIST-S s1
            loses accuracy against a reservoir in all but one variant, and s2 in none
            (docs/paper-notes.md). On CIFAR10-S, run as MIR's released code runs it, s1 with margins
            at `"replay"` is the variant that gains (docs/batch-norm.md).
        margin_weight: c.
        margins: When MI is measured (paper note P5): at `"insertion"`, at every `"replay"`, at
            `"both"`, or for `"all"` slots around each step that replaces something.
        negative: What s2 does with negative scores (note P4): `"clamp"` them at zero, or `"shift"`
            all by the smallest.
        age_offset: Added to every age, so that one early replay does not give a young example the
            highest rate of all (note P6). 0 is the paper's EX.
        within_class: Let the reservoir draw a slot as usual and replace the high score *of that
            slot's class*, which keeps storage equal (note P7). Ours, not the paper's.

    References:
        Chen and Lin, Sec. 2.4, Algorithm 2, Eq. 13 and 14. Where it is ambiguous: notes P3 to P7.
    """

    pick: Annotated[Literal["highest", "proportional"], Choice("highest", "proportional")] = (
        "proportional"
    )
    margin_weight: Annotated[float, Log(0.03, 10.0)] = 0.1
    margins: Annotated[MarginTiming, Choice("insertion", "replay", "both", "all")] = "insertion"
    negative: Annotated[Literal["clamp", "shift"], Choice("clamp", "shift")] = "clamp"
    age_offset: Annotated[float, Choice(0.0, 100.0, is_usual=False)] = 0.0
    within_class: Annotated[bool, Choice(False, True, is_usual=False)] = False
    needs_classes: ClassVar[bool] = True
    draws: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_choice("pick", self.pick, ("highest", "proportional"))
        _check_choice("margins", self.margins, ("never", "insertion", "replay", "both", "all"))
        _check_choice("negative", self.negative, ("clamp", "shift"))
        if not math.isfinite(self.margin_weight):
            raise ValueError(f"`margin_weight` is {self.margin_weight!r}; pass a finite number.")
        if not (math.isfinite(self.age_offset) and self.age_offset >= 0):
            raise ValueError(f"`age_offset` is {self.age_offset!r}; pass a number, 0 or above.")

    @override
    def admit(self, labels: Tensor, memory: Memory, rng: torch.Generator) -> Tensor:
        return reservoir_admission(labels.shape[0], memory, rng)

    @override
    def place(
        self, labels: Tensor, memory: Memory, evidence: Evidence, rng: torch.Generator
    ) -> Placement:
        num_free = memory.capacity - len(memory)
        if num_free >= labels.shape[0]:
            return Placement(torch.arange(len(memory), len(memory) + labels.shape[0]))
        # A newcomer is itself up for replacement by those behind it in the same batch: its score
        # is that of an example never replayed.
        increments = torch.zeros(labels.shape[0])
        if self.margins in ("insertion", "both", "all"):
            increments = evidence.margin_increments()
        arriving = self.margin_weight * increments
        taken = [*range(len(memory), memory.capacity), *self._propose(memory, arriving, rng)]
        if len(taken) == labels.shape[0]:
            return Placement(torch.tensor(taken), scores=arriving)
        stored_scores = self.scores(memory)
        # As arrays: a few numbers at a time, tensors cost five times as much.
        scores = np.concatenate((stored_scores.numpy(), arriving[:num_free].numpy()))
        own_scores = arriving.tolist()
        classes = None
        if self.within_class:
            held = torch.cat((memory.labels[: len(memory)].cpu(), labels[:num_free].cpu()))
            classes = held.numpy()
        for slot, score in zip(taken, own_scores, strict=False):
            scores[slot] = score
        # By shares of clamped scores, weights change where a slot is taken, and nowhere else.
        by_shares = self._draws_by_shares and classes is None
        weights = np.maximum(scores, 0) if by_shares else scores
        for newcomer in range(len(taken), labels.shape[0]):
            slot = _drawn(weights, rng) if by_shares else self._victim(scores, classes, rng)
            taken.append(slot)
            weights[slot] = max(own_scores[newcomer], 0.0) if by_shares else own_scores[newcomer]
            if classes is not None:
                classes[slot] = int(labels[newcomer])
        return Placement(torch.tensor(taken), scores=arriving, stored_scores=stored_scores)

    def _propose(self, memory: Memory, arriving: Tensor, rng: torch.Generator) -> list[int]:
        """Draw victims from a large memory by proposals (s2 with clamped scores), if that can be.

        Their scores are then all that is looked at; the memory's column is not brought up to date.
        """
        if (
            not (self._draws_by_shares and memory.is_full and len(memory) >= LARGE)
            or self.within_class
        ):
            return []
        return draw_by_proposals(
            len(memory),
            lambda slots: self.scores(memory, slots).clamp_min(0),
            1 + 2 * abs(self.margin_weight),  # EX < 1, for a slot is replayed once an update
            arriving.clamp_min(0).tolist(),
            rng,
        )

    @property
    def _draws_by_shares(self) -> bool:
        return self.pick == "proportional" and self.negative == "clamp"

    def scores(
        self, memory: Memory, slots: Int64[Tensor, " slots"] | None = None
    ) -> Float[Tensor, " slots"]:
        """Return S of `slots`, or of every filled slot (Eq. 14)."""
        which = slice(len(memory)) if slots is None else slots
        ages = memory.ages(slots) + self.age_offset
        exploitation_rates = memory.times_replayed[which] / ages
        return exploitation_rates + self.margin_weight * memory.margin_increment[which]

    def _victim(self, scores: Scores, classes: Classes | None, rng: torch.Generator) -> int:
        """Choose j: the blue rows of Algorithm 2."""
        if classes is not None:
            drawn = int(torch.randint(len(scores), (), generator=rng))
            (candidates,) = (classes == classes[drawn]).nonzero()
            return int(candidates[self._choose(scores[candidates], rng)])
        return self._choose(scores, rng)

    def _choose(self, scores: Scores, rng: torch.Generator) -> int:
        if self.pick == "highest":
            return int(scores.argmax())
        return _drawn(
            np.maximum(scores, 0) if self.negative == "clamp" else scores - scores.min(), rng
        )


def _drawn(weights: Scores, rng: torch.Generator) -> int:
    """Draw a slot in proportion to its weight. Not torch.multinomial, which stops at 2^24."""
    cumulative = weights.cumsum(dtype=np.float64)
    total = float(cumulative[-1])
    if not total > 0:  # nothing tells the slots apart
        return int(torch.randint(len(weights), (), generator=rng))
    drawn = torch.rand(1, generator=rng, dtype=torch.float64).item() * total
    return min(int(cumulative.searchsorted(drawn, side="right")), len(weights) - 1)


def _check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"`{name}` is {value!r}; choose one of {', '.join(map(repr, choices))}.")
