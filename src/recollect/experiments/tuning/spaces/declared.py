"""The ranges that parts, learner and optimizer declare for their options."""

import inspect
from collections.abc import Mapping
from typing import Final

from recollect.choices import PARTS
from recollect.experiments.specs.cell import Cell
from recollect.ranges import Choice, Log, Range, Whole, as_usual, declared_ranges

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
# Options of `[optimizer]`, which all methods of a spec share: searched for one method at a time.
OF_THE_OPTIMIZER: Final = "optimizer."
OPTIMIZER: Final[Mapping[str, Range]] = {
    "optimizer.momentum": Choice(0.0, 0.5, 0.9, is_usual=False),
    "optimizer.weight_decay": Choice(0.0, 1e-4, 5e-4, 1e-3, is_usual=False),
}


def ranges_of(cell: Cell) -> dict[str, Range]:
    """Return every range that is declared for the options of a method, its learning rate first.

    Raises:
        ValueError: A part of the user's has annotations that cannot be read.
    """
    from recollect.experiments.specs.own_parts import with_own_parts  # imports torch

    found: dict[str, Range] = {}
    if cell.optimizer["name"].lower() in LEARNING_RATES:
        found["lr"] = LEARNING_RATES[cell.optimizer["name"].lower()]
    found |= {key: looked for key, looked in OPTIMIZER.items() if key in options_of(cell)}
    if cell.capacity:
        found |= LEARNER
    row = with_own_parts(cell.base, {k: said for k, said in cell.parts.items() if k in PARTS})
    for part in row.kinds.values():
        if part is None:
            continue
        try:
            declared = declared_ranges(part)
        except Exception as error:  # annotations of a file of the user's can be anything
            told = f"{type(error).__name__}: {error}"
            raise ValueError(f"{part.__name__} has ranges that cannot be read ({told}).") from error
        # What makes a method another one than its neighbours, as beta does DER++, is searched.
        found |= {
            key: as_usual(looked) if key in row.settings else looked
            for key, looked in declared.items()
            if key in cell.options
        }
    return found


def value_of(cell: Cell, key: str) -> object:
    """Return what a cell says of an option now."""
    if key == "lr":
        return cell.optimizer["lr"]
    if key.startswith(OF_THE_OPTIMIZER):
        name = key.removeprefix(OF_THE_OPTIMIZER)
        return cell.optimizer.get(name, _defaults(cell).get(name))
    if key == "weighs":
        return cell.learner.get("weighs", "losses")
    return cell.learner[key] if key in LEARNER else cell.options[key]


def options_of(cell: Cell) -> tuple[str, ...]:
    """Return the names of all options that a search can vary."""
    of_learner = tuple(LEARNER) if cell.capacity else ()
    of_optimizer = (f"{OF_THE_OPTIMIZER}{name}" for name in _defaults(cell))
    return ("lr", *of_optimizer, *of_learner, *cell.options)


def _defaults(cell: Cell) -> dict[str, object]:
    """Return the options of a cell's optimizer with torch's defaults, those that a spec can say."""
    from recollect.experiments.specs.named.optimizer import optimizers  # imports torch

    names = {name.lower(): kind for name, kind in optimizers().items()}
    parameters = inspect.signature(names[cell.optimizer["name"].lower()]).parameters.values()
    kinds = int | float | bool
    return {
        p.name: p.default for p in parameters if p.name != "lr" and isinstance(p.default, kinds)
    }
