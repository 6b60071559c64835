"""Read what a spec names: with tables alone where they suffice, by torch itself elsewhere."""

from dataclasses import dataclass, field
from typing import Final

from recollect.choices import MODELS, OPTIMIZERS
from recollect.experiments.specs.named.options import (
    Problem,
    Settings,
    model_problems,
    read_augmentations,
    read_options,
)
from recollect.experiments.specs.tables import ModelTable, OptimizerTable, SchedulerTable
from recollect.suggestions import nearest

# What records wrote out before there were others.
_FIRST_OPTIONS: Final = ("momentum", "weight_decay")
_FIRST_MODELS: Final = ("usual", "mlp", "reduced-resnet18")


Parts = dict[str, dict[str, str]]

#: What a model can be told of the data, by the names of its parameters.
MODEL_FACTS: Final = ("num_classes", "input_shape", "in_features", "in_channels", "image_size")


@dataclass(frozen=True)
class Named:
    """What a spec names, checked, with options as JSON can say them.

    Attributes:
        model: `name` and options.
        optimizer: `name`, `lr` and options; `lr` is None where the protocol or the method says.
        scheduler: `name` and options, nothing without one.
        augment: What changes inputs at random, in this order.
        parts: `where` and `sha256` of what comes from files of the user.
    """

    model: Settings = field(default_factory=dict)
    optimizer: Settings = field(default_factory=dict)
    scheduler: Settings = field(default_factory=dict)
    augment: list[Settings] = field(default_factory=list)
    parts: Parts = field(default_factory=dict)


def read_named(
    *,
    model: ModelTable,
    optimizer: OptimizerTable,
    scheduler: SchedulerTable | None,
    augment: object,
) -> tuple[Named, list[Problem]]:
    """Check what these tables name; return it, and what is wrong with its TOML paths.

    Torch takes two seconds to import. It is, if only it can tell.
    """
    settings, parts, problems = _read_model(model)
    stepped, of_optimizer = _read_optimizer(optimizer)
    problems += _at("optimizer", of_optimizer)
    moved: Settings = {}
    if scheduler is not None:
        # Torch takes its time to import.
        from recollect.experiments.specs.named.optimizer import read_schedule

        tried = {**stepped, "lr": stepped["lr"] or 0.1} if stepped and not of_optimizer else {}
        moved, of_schedule = read_schedule(scheduler.name, scheduler.options, tried)
        problems += _at("scheduler", of_schedule)
    changed, of_changes = read_augmentations([] if augment is None else augment)
    problems += [(f"learner.augment{path}", told) for path, told in of_changes]
    return Named(settings, stepped, moved, changed, parts), problems


def _read_model(table: ModelTable) -> tuple[Settings, Parts, list[Problem]]:
    """Return the settings of a model, where its file is if it is the user's, and what is wrong."""
    options = table.options
    if ".py" in table.name:
        return _read_own_model(table.name, options)
    problems = _at("model", model_problems(table.name, options))
    if problems or table.name == "usual":
        return {"name": table.name, "hidden": None}, {}, problems
    values, _ = read_options(options, MODELS[table.name])
    if table.name not in _FIRST_MODELS:
        return {"name": table.name, **values}, {}, []
    # As it was when these were all: other options are written out if they are not the default.
    defaults, _ = read_options({}, MODELS[table.name])
    unusual = {key: value for key, value in values.items() if value != defaults[key]}
    return {"name": table.name, "hidden": options.get("hidden"), **unusual}, {}, []


def _read_own_model(where: str, options: Settings) -> tuple[Settings, Parts, list[Problem]]:
    from recollect.experiments.specs.named.signatures import read_by_signature
    from recollect.experiments.specs.own_parts import digest_of, load_called

    try:
        digest = digest_of(where)
        called = load_called(where, digest)
    except ValueError as error:
        return {}, {}, [("model.name", str(error))]
    name = where.rpartition(":")[2]
    values, problems = read_by_signature(called, options, name=name, given=MODEL_FACTS)
    parts = {"model": {"where": where, "sha256": digest}}
    return {"name": where.rpartition("/")[2], **values}, parts, _at("model", problems)


def _read_optimizer(table: OptimizerTable) -> tuple[Settings, list[Problem]]:
    options, name = table.options, table.name.lower()
    if name not in OPTIMIZERS:
        from recollect.experiments.specs.named.optimizer import read_optimizer

        return read_optimizer(table.name, table.lr, options)
    problems: list[Problem] = []
    if name == "adam" and options.pop("momentum", 0):
        problems.append(("momentum", f"is {table.momentum!r}; only sgd takes it."))
    first: Settings = {key: options.pop(key, 0.0) for key in _FIRST_OPTIONS}
    more: Settings = {}
    unknown = [key for key in options if key not in OPTIMIZERS[name]]
    problems += [(key, f"unknown key; {nearest(key, _keys_of(name))}") for key in unknown]
    if options and not unknown:
        from recollect.experiments.specs.named.optimizer import read_optimizer

        said = {key: value for key, value in first.items() if value}
        known, of_torch = read_optimizer(name, table.lr, {**said, **options})
        more = {key: value for key, value in known.items() if key in options}
        problems += of_torch
    return {"name": name, "lr": table.lr, **first, **more}, problems


def _keys_of(name: str) -> list[str]:
    return ["name", "lr", "found", *OPTIMIZERS[name]]


def _at(table: str, problems: list[Problem]) -> list[Problem]:
    return [(f"{table}.{key}" if key else table, told) for key, told in problems]
