"""One cell of a table: a method on a benchmark with a memory size, every setting written out."""

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from recollect.benchmarks.defaults import Defaults
from recollect.benchmarks.protocols import Recipe, recipe_for
from recollect.choices import ROWS
from recollect.errors import ConfigError
from recollect.experiments.specs.arrival_checks import ER_COST, arrival_problems
from recollect.experiments.specs.method_tables import MethodTable
from recollect.experiments.specs.named.options import read_augmentations
from recollect.experiments.specs.spec import Spec
from recollect.suggestions import nearest

Settings = dict[str, Any]

# What came later than the first records, which keep their hash.
_NOT_WRITTEN_IF_EMPTY: Final = ("parts", "scheduler", "data")
_ALWAYS_OF_THE_STREAM: Final = {
    "batch_size",
    "examples_per_segment",
    "validation_per_segment",
    "data",
}
_USUAL_OF_THE_LEARNER: Final[Settings] = {
    "weighs": "losses",
    "measured": "all",
    "augment": [],
    "dtype": "float32",
}

# What own data is run with where its spec says nothing.
_OWN_RECIPE: Final = Recipe("", "unit", Defaults())


@dataclass(frozen=True)
class Cell:
    """A spec resolved for one method and one memory size. Seeds are not part of it.

    Attributes:
        benchmark: Name of the benchmark.
        protocol: Whose version of the benchmark, such as `"paper"`.
        method: What the spec calls the method.
        base: Which of `recollect.methods()` it is, or which it changes parts of.
        capacity: Slots of the memory, 0 without one.
        learner: Replay, iterations and passes; augmentations and numbers if they are unusual.
        options: Every option of the method's parts.
        stream: Batch size, data, number and sizes of segments, None is the protocol's; and what is
            unusual in how classes arrive, and a budget with what a step costs.
        model: What learns.
        optimizer: How it steps.
        evaluation: What is counted, and how often.
        found: How tuned values were found, by TOML path. It changes no number and is not hashed.
        parts: Parts that come from files of the user: where each is, and the file's SHA-256.
        scheduler: How the learning rate moves; nothing if it stays.
        data: Data of the user's, with its digest, and how it is cut; nothing for a benchmark of the
            library.
    """

    benchmark: str
    protocol: str
    method: str
    base: str
    capacity: int
    learner: Settings
    options: Settings
    stream: Settings
    model: Settings
    optimizer: Settings
    evaluation: Settings
    found: dict[str, str] = field(default_factory=dict)
    parts: dict[str, dict[str, str]] = field(default_factory=dict)
    scheduler: Settings = field(default_factory=dict)
    data: Settings = field(default_factory=dict)

    @property
    def canonical_json(self) -> str:
        """The cell as JSON, the same for the same settings however they were written."""
        return _canonical(self._settings())

    @cached_property
    def spec_hash(self) -> str:
        """SHA-256 of the settings that decide the numbers."""
        settings = self._settings()
        del settings["found"]
        for table in _with_place([settings.get("parts", {}), settings.get("data", {})]):
            table["where"] = table["where"].rpartition("/")[2]  # the same file in another folder
        return hashlib.sha256(_canonical(settings).encode()).hexdigest()

    def relocated(self, folders: Mapping[str, str]) -> "Cell":
        """Return the cell with the files that it names in other folders: it hashes the same.

        Args:
            folders: Where each is, by its SHA-256.
        """
        parts = {part: dict(named) for part, named in self.parts.items()}
        for named in parts.values():
            if named["sha256"] in folders:
                named["where"] = f"{folders[named['sha256']]}/{named['where'].rpartition('/')[2]}"
        return dataclasses.replace(self, parts=parts)

    @classmethod
    def from_json(cls, text: str) -> "Cell":
        """Build the cell that `canonical_json` described."""
        return cls(**json.loads(text))

    def _settings(self) -> Settings:
        settings = dataclasses.asdict(self)
        for key in _NOT_WRITTEN_IF_EMPTY:
            if not settings[key]:
                del settings[key]
        return settings


def _with_place(value: object) -> Iterator[Settings]:
    """Yield every table that says where something of the user's is."""
    entries = value.values() if isinstance(value, dict) else value
    if isinstance(entries, Iterable) and not isinstance(entries, str):
        for entry in entries:
            yield from _with_place(entry)
    if isinstance(value, dict) and isinstance(value.get("where"), str):
        yield value


def cells(
    spec: Spec, *, methods: Sequence[str] | None = None, memory: Sequence[int] | None = None
) -> list[Cell]:
    """Resolve a spec for each of `methods` and each size of `memory`.

    Args:
        spec: What to run.
        methods: Names of its methods; its `compare` if None.
        memory: Memory sizes; the spec's, or the protocol's, if None. A method without a memory
            gives one cell however many sizes there are.

    Raises:
        ConfigError: A method is not in the spec, or a memory is smaller than what is replayed.
    """
    names = spec.compare if methods is None else methods
    unknown = [name for name in names if name not in spec.methods]
    if unknown:
        raise ConfigError(
            f"the spec of {spec.benchmark}",
            [("methods", f"has no {name!r}; {nearest(name, spec.methods)}") for name in unknown],
        )
    recipe = _recipe(spec)
    sizes = memory or spec.memory or (recipe.defaults.capacity,)
    found: dict[str, Cell] = {}
    for capacity in dict.fromkeys(sizes):
        for name in dict.fromkeys(names):
            cell = _cell(spec, spec.methods[name], capacity, recipe)
            found.setdefault(cell.spec_hash, cell)
    _refuse_small_memories(list(found.values()))
    _refuse_no_augmentation(list(found.values()))
    if impossible := arrival_problems(spec, list(found.values())):
        raise ConfigError(f"the spec of {spec.benchmark}", impossible)
    return list(found.values())


def _recipe(spec: Spec) -> Recipe:
    return _OWN_RECIPE if spec.data else recipe_for(spec.benchmark, spec.protocol)


def _cell(spec: Spec, method: MethodTable, capacity: int, recipe: Recipe) -> Cell:
    defaults = recipe.defaults
    row = ROWS[method.base]
    learner: Settings = spec.learner.model_dump() | {"augment": spec.named.augment}
    learner["replay"] = learner["replay"] or defaults.replay
    learner["iterations"] = learner["iterations"] or defaults.iterations
    if "iterations" in row.settings:
        learner["iterations"] = row.settings["iterations"]
    if row.augments and not learner["augment"]:
        learner["augment"], _ = read_augmentations(recipe.usual_augment)
    learner |= {key: value for key, value in method.learner.items() if key != "lr"}
    for key, usual in _USUAL_OF_THE_LEARNER.items():
        if learner[key] == usual:
            del learner[key]
    optimizer = dict(spec.named.optimizer)
    optimizer["lr"] = method.learner.get("lr") or optimizer["lr"] or defaults.learning_rate
    # What is not said of these is not written out: old records keep their hash.
    stream = spec.stream.model_dump(include=_ALWAYS_OF_THE_STREAM)
    unusual = spec.stream.model_dump(exclude={*_ALWAYS_OF_THE_STREAM, "cost"}, exclude_none=True)
    stream |= unusual
    costs, found = spec.stream.cost, dict[str, str | None]()
    if spec.stream.budget is not None:
        stream["cost"] = costs.options.get(method.name, ER_COST)
        found["stream.cost"] = costs.found
    # A function of the user's decides the size of batches, unless the spec does.
    usual_size = None if spec.data and spec.data.parts else defaults.batch_size
    stream["batch_size"] = spec.stream.batch_size or usual_size
    stream["data"] = spec.stream.data or recipe.dataset or None
    found |= {"optimizer": spec.optimizer.found, f"methods.{method.name}": method.found}
    return Cell(
        benchmark=spec.benchmark,
        protocol=spec.protocol,
        method=method.name,
        base=method.base,
        capacity=capacity if method.has_memory else 0,
        learner=learner if method.has_memory else {**learner, "replay": 0},
        options=dict(method.options),
        stream=stream,
        model=_model(spec, recipe.hidden),
        optimizer=optimizer,
        evaluation=spec.evaluation.model_dump(),
        found={path: how for path, how in found.items() if how is not None},
        parts={**(spec.data.parts if spec.data else {}), **spec.named.parts, **method.parts},
        scheduler=dict(spec.named.scheduler),
        data=dict(spec.data.settings) if spec.data else {},
    )


def _model(spec: Spec, hidden: Sequence[int] | None) -> Settings:
    """Return what learns.

    Widths that the protocol decides are written out, so that the hash tells them from others.
    """
    model = dict(spec.named.model)
    if hidden is not None and model["name"] in ("usual", "mlp") and model["hidden"] is None:
        model |= {"name": "mlp", "hidden": list(hidden)}
    return model


def _refuse_small_memories(resolved: Sequence[Cell]) -> None:
    problems = [
        (
            "memory",
            f"is {cell.capacity}, but {cell.method} replays {cell.learner['replay']} examples; "
            "give it at least as many slots.",
        )
        for cell in resolved
        if 0 < cell.capacity < cell.learner["replay"]
    ]
    if problems:
        raise ConfigError(f"the spec of {resolved[0].benchmark}", problems)


def _refuse_no_augmentation(resolved: Sequence[Cell]) -> None:
    problems = [
        (
            f"methods.{cell.method}",
            f"needs an augmentation, and {cell.benchmark} has no usual one; set augment, such as "
            '["RandomCrop"].',
        )
        for cell in resolved
        if ROWS[cell.base].augments and not cell.learner.get("augment")
    ]
    if problems:
        raise ConfigError(f"the spec of {resolved[0].benchmark}", problems)


def _canonical(settings: Settings) -> str:
    return json.dumps(settings, sort_keys=True, separators=(",", ":"), allow_nan=False)
