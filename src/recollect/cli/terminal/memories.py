"""What a person sees of a memory."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text
from torch import Tensor

from recollect import storage
from recollect.choices import PARTS
from recollect.cli.terminal.output import write_explained
from recollect.datasets import contact_sheet
from recollect.errors import RecollectError
from recollect.reports.inspection import (
    SavedMemory,
    columns_of,
    histogram,
    images_of,
    ranked_slots,
)

_BAR_WIDTH = 40
_POLICIES_WITHOUT_SCORES = tuple(
    f"{policy.__module__}.{policy.__qualname__}"
    for policy in vars(storage).values()
    if isinstance(policy, type) and issubclass(policy, storage.Storage) and not policy.has_scores
)


def describe(saved: SavedMemory) -> None:
    """Print what a memory holds, with bars."""
    console = Console(highlight=False, markup=False)
    console = console if console.is_terminal else Console(width=100, highlight=False, markup=False)
    memory = saved.memory
    console.print(
        Text(f"{len(memory):,}", style="bold"),
        f"of {memory.capacity:,} slots filled after {saved.step:,} batches, {memory.seen:,} "
        f"examples and {memory.clock:,} updates; {memory.nbytes / 2**20:.2f} MiB.",
    )
    for part in PARTS:
        if part in saved.parts:
            console.print(Text(f"{part:>9}", style="dim"), "", _short(saved.parts[part]))
    filled = slice(len(memory))
    if not saved.has_classes:
        console.print("\nLabels are not one whole number each: no classes to count.")
    else:
        _bars("Slots by class", [*saved.slots_by_class.items()], console)
    _histogram("Age, in updates", memory.ages(), console)
    _histogram("Times replayed", memory.times_replayed[filled], console)
    if saved.has_scores:
        _histogram("Score", memory.score[filled], console)
    else:
        console.print(f"\n{_why_no_scores(saved)}")
    for name, values in columns_of(saved).items():
        width = f", {values.shape[1]} numbers each" if values.ndim > 1 else ""
        _histogram(f"Column {name}{width}", values.flatten(), console)


def _why_no_scores(saved: SavedMemory) -> str:
    policy, _, _ = str(saved.parts.get("storage")).partition("(")
    if policy in _POLICIES_WITHOUT_SCORES:
        return "This storage policy keeps no scores."
    # Whether a policy of the user's keeps any cannot be told from a checkpoint; this is so or so.
    score = float(saved.memory.score[0])
    return f"No scores yet that tell stored examples apart: all are {score:.3g}."


def _short(described: object) -> str:
    """Drop the module path: `recollect.rules.x.GradientSum()` reads `GradientSum()`."""
    name, parenthesis, settings = str(described).partition("(")
    return name.rsplit(".", 1)[-1] + parenthesis + settings


def _histogram(title: str, values: Tensor, console: Console) -> None:
    bins = histogram(values)
    if values.is_floating_point():
        rows = [(f"{b.low:.3g} to {b.high:.3g}", b.count) for b in bins]
    else:
        rows = [(_whole(b.low, b.high - 1), b.count) for b in bins]
    _bars(f"{title} (median {float(values.float().median()):.3g})", rows, console)


def _whole(low: float, high: float) -> str:
    return f"{low:,.0f}" if low == high else f"{low:,.0f} to {high:,.0f}"


def _bars(title: str, rows: Sequence[tuple[str, int]], console: Console) -> None:
    most = max(count for _, count in rows)
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(justify="right", min_width=16)
    table.add_column(justify="right")
    table.add_column()
    for label, count in rows:
        table.add_row(Text(label), f"{count:,}", Text(_bar(count / most), style="cyan"))
    console.print(Text(f"\n{title}", style="bold"))
    console.print(table)


def _bar(share: float) -> str:
    """Return a bar to the eighth of a character.

    Example:
        >>> _bar(0.0), len(_bar(1.0))
        ('', 40)
    """
    eighths = round(share * _BAR_WIDTH * 8)
    whole, part = divmod(eighths, 8)
    return "█" * whole + (" ▏▎▍▌▋▊▉"[part] if part else "")


def draw(saved: SavedMemory, output: Path, num: int) -> None:
    """Draw the images with the highest and the lowest scores."""
    memory = saved.memory
    groups = []
    for side, slots in zip(("highest", "lowest"), ranked_slots(saved, num), strict=True):
        images = images_of(memory, slots)
        if images is None:
            inputs, _ = memory.read(memory.arrived_at.new_zeros(1))
            shape = tuple(inputs.shape[1:]) if isinstance(inputs, Tensor) else "nested"
            raise RecollectError(
                f"the stored inputs ({shape}) do not look like images; leave `--output` out."
            )
        column = memory.score if saved.has_scores else memory.times_replayed
        ends = [float(column[slots[0]]), float(column[slots[-1]])]
        caption = f"{side} {saved.ranking}, {ends[0]:.3g} to {ends[1]:.3g}"
        groups.append((caption, images))
    with write_explained(output):
        contact_sheet(groups).save(output)
