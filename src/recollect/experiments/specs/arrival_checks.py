"""Whether a stream can arrive as `[stream]` says, and whether the methods have a cost."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from recollect.benchmarks.protocols import recipe_for
from recollect.choices import PARTS
from recollect.experiments.specs.tables import CostTable
from recollect.suggestions import nearest

if TYPE_CHECKING:
    from recollect.experiments.specs.cell import Cell
    from recollect.experiments.specs.spec import Spec

Problem = tuple[str, str]

#: What the unit costs: a step of `er` with one update per batch and no augmentation.
ER_COST: Final = 1.0

_OF_CLASSES: Final = ("disjoint", "blur", "repeat")


def arrival_problems(spec: "Spec", cells: Sequence["Cell"]) -> list[Problem]:
    """Return what is wrong with how the stream of some cells arrives, with its TOML paths."""
    return [*_of_classes(spec), *_of_each_other(spec), *_of_costs(spec, cells)]


def is_unit(cell: "Cell", spec: "Spec") -> bool:
    """Say whether a step of a cell is the unit of costs, whatever its learning rate."""
    own = spec.methods[cell.method].learner.keys() - {"lr", "iterations", "augment"}
    is_plain = cell.learner["iterations"] == 1 and not cell.learner.get("augment")
    return cell.base == "er" and is_plain and not own and not cell.parts.keys() & set(PARTS)


def without_budget(spec: "Spec") -> "Spec":
    """Return the spec with a stream that waits."""
    return replace(
        spec, stream=spec.stream.model_copy(update={"budget": None, "cost": CostTable()})
    )


def _of_classes(spec: "Spec") -> list[Problem]:
    """Refuse to move classes about where segments are no classes."""
    said = [key for key in ("groups", *_OF_CLASSES) if getattr(spec.stream, key) is not None]
    if spec.data is None:
        if recipe_for(spec.benchmark, spec.protocol).num_permutations is None:
            return []
        told = f"is for streams of classes; {spec.benchmark} changes the inputs. Leave it out."
        return [(f"stream.{key}", told) for key in said]
    problems = []
    if "groups" in said:
        told = "is for the library's benchmarks; say in [data] which classes make a segment."
        problems.append(("stream.groups", told))
    cut = spec.data.settings.get("cut", {}) if not spec.data.parts else {}
    told = ""
    if cut.get("by", "class") != "class":
        told = f"is for data cut by class; [data] cuts by {cut['by']}. Leave one out."
    elif "blur" in cut:
        told = "does not go with data.blur, which blurs boundaries; leave one out."
    return problems + [(f"stream.{key}", told) for key in said if told and key in _OF_CLASSES]


def _of_each_other(spec: "Spec") -> list[Problem]:
    stream, problems = spec.stream, []
    if stream.disjoint is not None and stream.blur is None:
        problems.append(("stream.disjoint", "says which classes are not blurred; give blur, too."))
    if stream.repeat is not None and stream.blur is not None:
        problems.append(("stream.repeat", "does not go with blur; leave one out."))
    return problems


def _of_costs(spec: "Spec", cells: Sequence["Cell"]) -> list[Problem]:
    """Name methods that have a cost and no table, and those that need a cost and have none."""
    costs = spec.stream.cost.options
    problems = [
        (f"stream.cost.{name}", f"has no table in [methods]; {nearest(name, spec.methods)}")
        for name in costs
        if name not in spec.methods
    ]
    if spec.stream.budget is None:
        return problems
    missing = {c.method: None for c in cells if c.method not in costs and not is_unit(c, spec)}
    told = (
        "is missing; a budget needs what a step costs, in steps of er. `recollect cost` measures."
    )
    return problems + [(f"stream.cost.{name}", told) for name in missing]
