"""What a search tries: a study file turned into trials, the same ones for ever."""

import itertools
import math
import random
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from recollect.errors import ConfigError
from recollect.experiments.specs.cell import Cell, cells
from recollect.experiments.specs.spec import check_spec

Settings = dict[str, Any]

FIRST_SEED: Final = 1000  # tables use seeds from 0
FRESH_SEED: Final = 2000


@dataclass(frozen=True)
class Budget:
    """What every method gets.

    Attributes:
        trials: Settings tried in the first round: known ones and draws.
        seeds: Seeds of the first stage.
        finalists: How many of the best go on.
        fresh_seeds: Seeds of the second stage, which alone chooses; with 0 the first does.
        added: Settings added to those by hand, after a look at the first round.
    """

    trials: int
    seeds: int
    finalists: int
    fresh_seeds: int
    added: int = 0

    @property
    def all_trials(self) -> int:
        """Settings tried in both rounds."""
        return self.trials + self.added

    @property
    def first_seeds(self) -> range:
        """Seeds of the first stage."""
        return range(FIRST_SEED, FIRST_SEED + self.seeds)

    @property
    def second_seeds(self) -> range:
        """Seeds of the second stage."""
        return range(FRESH_SEED, FRESH_SEED + self.fresh_seeds)


@dataclass(frozen=True)
class Trial:
    """One setting of one method.

    Attributes:
        method: What tables will call it.
        number: From 1.
        settings: What the method's table of a spec will say.
        cell: What is run.
        origin: `"known"` or `"added"` if the study names it, `"drawn"` otherwise.
    """

    method: str
    number: int
    settings: Settings = field(hash=False)
    cell: Cell = field(hash=False)
    origin: Literal["known", "drawn", "added"]


@dataclass(frozen=True)
class Inherited:
    """A method that is not searched for.

    Attributes:
        sources: Methods whose settings it takes over; the first one's stand.
        settings: What it has beside.
    """

    sources: tuple[str, ...]
    settings: Settings = field(hash=False)


@dataclass(frozen=True)
class Study:
    """A search on one benchmark.

    Attributes:
        name: Of its file.
        benchmark: Name of the benchmark.
        config: Path of the spec that its choices go into, below the folder of specs. None for a
            study that only looks (`config = false`).
        budget: What every method gets.
        trials: By method.
        searched: Names of the settings each method's search varies.
        inherited: Methods that take over what was found for others.
    """

    name: str
    benchmark: str
    config: str | None
    budget: Budget
    trials: dict[str, list[Trial]]
    searched: dict[str, list[str]]
    inherited: dict[str, Inherited] = field(default_factory=dict)


def study_path(name: str) -> Path:
    """Return where the study of a benchmark is."""
    return Path(__file__).parents[1] / f"{name}.toml"


def load_study(path: Path) -> Study:
    """Read a study and draw its trials.

    `extends = "FILE"` takes everything from another file beside it that this one does not say.

    Raises:
        ConfigError: It wants to look at test data, or a setting breaks a rule of specs.
    """
    raw = _read(path)
    budget = Budget(**raw["budget"])
    trials: dict[str, list[Trial]] = {}
    searched: dict[str, list[str]] = {}
    for name, table in raw["methods"].items():
        space: dict[str, Any] = {}
        for key in table.get("ranges", ()):
            space |= raw["ranges"][key]
        space |= table.get("space", {})
        searched[name] = list(space)
        trials[name] = _trials(name, table, space, spec=raw["spec"], budget=budget, source=path)
    inherited = {
        name: Inherited(tuple(table["from"]), table.get("settings", {}))
        for name, table in raw.get("inherited", {}).items()
    }
    benchmark = raw["spec"]["benchmark"]
    config = raw.get("config", f"paper/{benchmark}.toml") or None
    return Study(path.stem, benchmark, config, budget, trials, searched, inherited)


def _read(path: Path) -> dict[str, Any]:
    raw = tomllib.loads(path.read_text(encoding="utf-8"))
    shared = raw.pop("extends", None)
    return raw if shared is None else _merged(_read(path.parent / shared), raw)


def _merged(shared: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Lay `own` over `shared`, table by table."""
    merged = {**shared, **own}
    for key in shared.keys() & own.keys():
        if isinstance(shared[key], dict) and isinstance(own[key], dict):
            merged[key] = _merged(shared[key], own[key])
    return merged


def refuse_test_data(resolved: Iterable[Cell]) -> None:
    """See that nothing here would be chosen by test data.

    Raises:
        ConfigError: A cell is evaluated on anything but validation data.
    """
    problems = [
        (
            f"methods.{cell.method}",
            f"is evaluated on {cell.evaluation['on']!r}; settings are chosen on validation data "
            'only: set evaluation.on = "validation".',
        )
        for cell in resolved
        if cell.evaluation["on"] != "validation"
    ]
    if problems:
        raise ConfigError("the study", problems)


def _trials(
    name: str,
    table: Mapping[str, Any],
    space: Mapping[str, Any],
    *,
    spec: Mapping[str, Any],
    budget: Budget,
    source: Path,
) -> list[Trial]:
    known = [dict(settings) for settings in table.get("known", ())][: budget.trials]
    seed = f"{spec['benchmark']} {name}"
    drawn = draw(space, budget.trials - len(known), seed=seed)
    fixed = {"base": table.get("base", name), **table.get("settings", {})}
    added = table.get("added", ())
    if len(added) != budget.added:
        told = f"has {len(added)} entries; the budget gives every method {budget.added}."
        raise ConfigError(str(source), [(f"methods.{name}.added", told)])
    constant = {key: one["choice"][0] for key, one in space.items() if _is_constant(one)}
    found = []
    for number, settings in enumerate(itertools.chain(known, drawn, added), start=1):
        full = {**fixed, **constant, **settings}
        checked = check_spec({**spec, "methods": {name: full}}, source=str(source))
        (cell,) = cells(checked, methods=[name])
        origin: Literal["known", "drawn", "added"] = "drawn"
        if number <= len(known):
            origin = "known"
        elif number > budget.trials:
            origin = "added"
        found.append(Trial(name, number, full, cell, origin))
    refuse_test_data(trial.cell for trial in found)
    return found


def _is_constant(dimension: Mapping[str, Any]) -> bool:
    return len(dimension.get("choice", ())) == 1


def draw(space: Mapping[str, Any], count: int, *, seed: str) -> list[Settings]:
    """Draw settings: each range is cut into `count` strata, and each stratum is used once.

    One range alone becomes an even grid in a random order; several are paired at random. Python
    promises that `random()` of a seeded generator never changes, so neither do trials.
    """
    rng = random.Random(seed)
    columns: dict[str, list[Any]] = {}
    for key, dimension in space.items():
        order = sorted(range(count), key=[rng.random() for _ in range(count)].__getitem__)
        middle = [(stratum + 0.5) / count for stratum in order]
        columns[key] = [_value(dimension, share) for share in middle]
    return [{key: column[row] for key, column in columns.items()} for row in range(count)]


def _value(dimension: Mapping[str, Any], share: float) -> Any:
    if "choice" in dimension:
        choices = dimension["choice"]
        return choices[int(share * len(choices))]
    low, high = dimension["log"]
    return _rounded(low * (high / low) ** share)


def _rounded(value: float, digits: int = 2) -> float:
    """Round to significant digits: nobody wants to read a learning rate of 0.049172."""
    return round(value, digits - 1 - math.floor(math.log10(abs(value))))
