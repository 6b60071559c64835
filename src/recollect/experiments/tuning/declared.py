"""The ranges that parts, learner and optimizer declare for their options."""

from collections.abc import Mapping
from typing import Final

from recollect.experiments.specs.cell import Cell
from recollect.experiments.specs.method_tables import PARTS
from recollect.experiments.specs.own_parts import with_own_parts
from recollect.ranges import Choice, Log, Range, Whole, declared_ranges

# Rates that have trained the library's models; an optimizer that is not here needs a range of the
# spec's own. Adaptive ones divide by the size of gradients, and take smaller steps.
_ADAPTIVE: Final = Log(3e-4, 0.03)
LEARNING_RATES: Final[Mapping[str, Range]] = {
    "sgd": Log(0.01, 0.3),
    **dict.fromkeys(("adam", "adamw", "adamax", "nadam", "radam", "rmsprop"), _ADAPTIVE),
    "adagrad": Log(3e-3, 0.3),
}
LEARNER: Final[Mapping[str, Range]] = {
    "replay": Whole(5, 50, is_usual=False),
    "iterations": Whole(1, 8, is_usual=False),
    "passes": Choice("joint", "separate", "grouped", is_usual=False),
    "weighs": Choice("losses", "contributions", is_usual=False),
}


def ranges_of(cell: Cell) -> dict[str, Range]:
    """Return every range that is declared for the options of a method, its learning rate first.

    Raises:
        ValueError: A part of the user's has annotations that cannot be read.
    """
    found: dict[str, Range] = {}
    if cell.optimizer["name"].lower() in LEARNING_RATES:
        found["lr"] = LEARNING_RATES[cell.optimizer["name"].lower()]
    if cell.capacity:
        found |= LEARNER
    own = {part: said for part, said in cell.parts.items() if part in PARTS}
    for part in vars(with_own_parts(cell.base, own)).values():
        if isinstance(part, type):
            try:
                declared = declared_ranges(part)
            except Exception as error:  # annotations of a file of the user's can be anything
                told = f"{type(error).__name__}: {error}"
                raise ValueError(
                    f"{part.__name__} has ranges that cannot be read ({told})."
                ) from error
            found |= {key: value for key, value in declared.items() if key in cell.options}
    return found


def value_of(cell: Cell, key: str) -> object:
    """Return what a cell says of an option now."""
    if key == "lr":
        return cell.optimizer["lr"]
    if key == "weighs":
        return cell.learner.get("weighs", "losses")
    return cell.learner[key] if key in LEARNER else cell.options[key]


def options_of(cell: Cell) -> tuple[str, ...]:
    """Return the names of all options that a search can vary."""
    of_learner = tuple(LEARNER) if cell.capacity else ()
    return ("lr", *of_learner, *cell.options)
