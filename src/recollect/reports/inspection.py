"""What a saved memory holds: counts, distributions, and its most telling images."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, cast

import torch
from torch import Tensor

from recollect.checkpoint import read_checkpoint
from recollect.choices import PARTS
from recollect.errors import CheckpointError
from recollect.learner.label_map import LabelMap
from recollect.memory import Memory

Ranking = Literal["score", "times replayed"]
_NUM_BINS: Final = 10


@dataclass(frozen=True)
class SavedMemory:
    """The memory of a checkpoint and what the learner around it was.

    Attributes:
        memory: The memory.
        parts: What the learner was made of: storage, retrieval, rule and the like.
        step: Batches it had observed.
        names: The classes by number, if a label map numbered them.
    """

    memory: Memory
    parts: Mapping[str, object]
    step: int
    names: Sequence[str] = ()

    @property
    def has_scores(self) -> bool:
        """Whether the storage policy told stored examples apart by a score."""
        scores = self.memory.score[: len(self.memory)]
        return len(scores) > 0 and bool((scores != scores[0]).any())

    @property
    def has_classes(self) -> bool:
        """Whether labels are classes: one whole number each."""
        labels = self.memory.labels
        return labels.ndim == 1 and not labels.is_floating_point()

    @property
    def slots_by_class(self) -> dict[str, int]:
        """How many slots each class holds, by its name or else its number."""
        counts = self.memory.counts_by_class()
        return {self.names[n] if self.names else str(n): num for n, num in counts.items()}

    @property
    def ranking(self) -> Ranking:
        """What images are ranked by: the score, or without one how often they were replayed."""
        return "score" if self.has_scores else "times replayed"


@dataclass(frozen=True)
class Bin:
    """One bar of a histogram: low <= value < high, the last bar with its upper end."""

    low: float
    high: float
    count: int


def read_saved_memory(path: Path) -> SavedMemory:
    """Read the memory of a learner's checkpoint.

    Args:
        path: A file that `Learner.save` wrote, or a folder that holds one of them.

    Raises:
        CheckpointError: There is none, it is damaged, or its learner had no memory or an empty one.
    """
    checkpoint = read_checkpoint(_checkpoint_in(path))
    facts = cast("Mapping[str, object] | None", checkpoint.facts.get("memory"))
    if facts is None:
        raise CheckpointError(
            f"`{path}` holds a learner without a memory (method van); there is nothing to inspect."
        )
    memory = Memory.from_state(checkpoint.within("memory"), facts)
    if memory.is_empty:
        raise CheckpointError(
            f"`{path}` holds an empty memory of {memory.capacity} slots; save after the first "
            "`observe`."
        )
    parts = cast("Mapping[str, object]", checkpoint.facts["parts"])
    names = _names(checkpoint.facts.get("label map"), memory)
    return SavedMemory(memory, parts, int(str(checkpoint.facts["step"])), names)


def _names(state: object, memory: Memory) -> list[str]:
    """Return the name of each class; none if there is no label map."""
    if state is None:
        return []
    labels = [*LabelMap.numbers_in(state)]
    if int(memory.labels.max()) >= len(labels):
        raise CheckpointError("the label map is damaged: it lacks a class that the memory holds.")
    names = [str(label) for label in labels]
    return names if len(set(names)) == len(names) else [repr(label) for label in labels]


def facts_of(saved: SavedMemory) -> dict[str, object]:
    """Return what a memory holds as plain values, for a monitor."""
    memory, filled = saved.memory, slice(len(saved.memory))
    columns = {"age": memory.ages(), "times_replayed": memory.times_replayed[filled]}
    if saved.has_scores:
        columns["score"] = memory.score[filled]
    columns |= {name: values.flatten() for name, values in columns_of(saved).items()}
    at = torch.tensor([0.0, 0.25, 0.5, 0.75, 1.0], dtype=torch.float64)
    return {
        "filled": len(memory),
        "capacity": memory.capacity,
        "batches": saved.step,
        "seen": memory.seen,
        "updates": memory.clock,
        "bytes": memory.nbytes,
        "parts": {part: saved.parts[part] for part in PARTS if part in saved.parts},
        "slots_by_class": saved.slots_by_class if saved.has_classes else None,
        "quantiles": {  # 0, 25, 50, 75 and 100 %
            name: torch.quantile(values.double(), at).tolist() for name, values in columns.items()
        },
    }


def columns_of(saved: SavedMemory) -> dict[str, Tensor]:
    """Return what parts have declared to keep of stored examples, by name.

    A number that stands for none, such as the best loss of an example that never had one, is left
    out.
    """
    memory = saved.memory
    everything = torch.arange(len(memory))
    found = {name: memory.declared(name, everything) for name in memory.declared_names}
    known = {name: rows for name, rows in found.items() if rows is not None}
    none = torch.finfo(torch.float32).max
    return {
        name: rows if rows.ndim > 1 or not rows.is_floating_point() else rows[rows < none]
        for name, rows in known.items()
        if rows.ndim > 1 or bool((rows < none).any())
    }


def _checkpoint_in(path: Path) -> Path:
    if not path.exists():
        raise CheckpointError(f"`{path}` does not exist; give a file that `Learner.save` wrote.")
    if not path.is_dir():
        return path
    found = sorted(path.glob("*.ckpt"))
    if len(found) != 1:
        raise CheckpointError(
            f"`{path}` is a folder with {len(found)} checkpoints (*.ckpt); give one file."
        )
    return found[0]


def histogram(values: Tensor, *, num_bins: int = _NUM_BINS) -> list[Bin]:
    """Count values in bins of equal width from the lowest to the highest.

    Whole numbers get bins with whole borders, so no bin is empty by its width alone.

    Example:
        >>> [(b.low, b.high, b.count) for b in histogram(torch.tensor([0, 0, 1, 3]), num_bins=2)]
        [(0.0, 2.0, 3), (2.0, 4.0, 1)]
    """
    lowest, highest = float(values.min()), float(values.max())
    if values.is_floating_point():
        if lowest == highest:
            return [Bin(lowest, highest, len(values))]
        width = (highest - lowest) / num_bins
    else:
        span = int(highest - lowest) + 1
        width = float(-(-span // num_bins))
        num_bins = -(-span // int(width))
    indices = ((values.double() - lowest) / width).long().clamp(max=num_bins - 1)
    counts = torch.bincount(indices, minlength=num_bins).tolist()
    return [
        Bin(lowest + i * width, lowest + (i + 1) * width, count) for i, count in enumerate(counts)
    ]


def ranked_slots(saved: SavedMemory, num: int) -> tuple[list[int], list[int]]:
    """Return the slots with the highest and the lowest rank, most extreme first.

    No slot is in both: of a memory too small for `num` on each side, each side gets half.
    """
    memory = saved.memory
    column = memory.score if saved.has_scores else memory.times_replayed
    order = torch.argsort(column[: len(memory)], descending=True, stable=True).tolist()
    num = min(num, max(1, len(order) // 2))
    return order[:num], order[num:][::-1][:num]


def images_of(memory: Memory, slots: Sequence[int]) -> Tensor | None:
    """Return the inputs of slots as drawable images, None if they do not look like images.

    Floats are stretched to [0, 1] over all of the memory, so images stay comparable.
    """
    inputs, _labels = memory.read(torch.arange(len(memory)))
    if not isinstance(inputs, Tensor):
        return None
    is_grey, is_planes = inputs.ndim == 3, inputs.ndim == 4 and inputs.shape[1] in (1, 3)
    if not (is_grey or is_planes) or min(inputs.shape[-2:]) < 4:
        return None
    chosen = inputs[list(slots)].cpu()
    if chosen.dtype == torch.uint8:
        return chosen
    if not inputs.is_floating_point():
        return None
    low, high = float(inputs.min()), float(inputs.max())
    return (chosen - low) / (high - low) if high > low else torch.zeros_like(chosen)
