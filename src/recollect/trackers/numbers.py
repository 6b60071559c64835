"""What is kept of a step and of a memory, by name."""

from collections.abc import Mapping, Sequence
from itertools import starmap
from statistics import fmean
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from recollect.learner import StepReport
    from recollect.memory import Memory

_QUANTILES: Final = ("least", "lower quartile", "median", "upper quartile", "most")


def step_numbers(report: "StepReport") -> dict[str, float]:
    """Return losses, norms and weights of a step; what was not measured is left out.

    With several updates per batch, the incoming loss is the one before the first, and the others
    are means over the updates.
    """
    found: dict[str, list[float]] = {}

    def note(name: str, value: float | None) -> None:
        if value is not None:
            found.setdefault(name, []).append(float(value))

    note("loss/incoming", report.loss)
    for update in report.updates:
        if len(update.replayed_losses):
            note("loss/replayed", float(update.replayed_losses.mean()))
        note("norm/incoming", update.incoming_norm)
        norms = update.replayed_norms
        if norms is not None and len(norms):
            note("norm/replayed", float(norms.mean()))
        note("norm/target", update.target_norm)
        if update.weights is not None:
            note("weight/incoming", float(update.weights[0]))
            note("weight/replayed", float(update.weights[1:].sum()))
    note("memory/written", len(report.written_slots))
    note("memory/evicted", len(report.evicted_ids))
    return {name: fmean(values) for name, values in found.items()}


def memory_numbers(memory: "Memory") -> dict[str, float]:
    """Return slots by class and quantiles of age and of times replayed."""
    import torch  # here: who names a tracker need not wait for it

    if memory.is_empty:
        return {}
    counts: dict[int, int] = {}
    if not memory.labels.is_floating_point() and memory.labels.ndim == 1:
        counts = memory.counts_by_class()
    shares = torch.tensor([0.0, 0.25, 0.5, 0.75, 1.0], dtype=torch.float64)
    ages = torch.quantile(memory.ages().double().cpu(), shares)
    replays = torch.quantile(memory.times_replayed[: len(memory)].double().cpu(), shares)
    return named_memory(counts, ages.tolist(), replays.tolist())


def named_memory(
    counts: Mapping[int, int], ages: Sequence[float], replays: Sequence[float]
) -> dict[str, float]:
    """Name slots by class, and the five quantiles of age and of times replayed."""
    by_class = dict(starmap(_of_class, counts.items()))
    return by_class | _named("age", ages) | _named("replays", replays)


def _of_class(label: int, count: int) -> tuple[str, float]:
    return f"memory/class {label}", float(count)


def _named(what: str, quantiles: Sequence[float]) -> dict[str, float]:
    names = _QUANTILES if quantiles else ()
    return {f"{what}/{name}": float(v) for name, v in zip(names, quantiles, strict=True)}
