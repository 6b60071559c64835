"""What a search tried, as its page and its deciding rule need it: kept in one JSON file.

The numbers are in records; here is which trial each record belongs to. A study kept so is read for
ever: no default of a spec that changes later can change what its trials were.
"""

import dataclasses
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from recollect.atomic_files import write_text
from recollect.errors import ConfigError
from recollect.experiments.specs.cell import Cell

Settings = dict[str, Any]
Origin = Literal["known", "drawn", "suggested", "added"]

FIRST_SEED: Final = 1000  # tables use seeds from 0
FRESH_SEED: Final = 2000
LAYOUT: Final = 1


@dataclass(frozen=True)
class Budget:
    """What every method gets.

    Attributes:
        trials: Settings tried.
        seeds: Seeds of the first stage.
        finalists: How many of the best go on.
        fresh_seeds: Seeds of the second stage, which alone chooses; with 0 the first does.
        added: Settings added by hand after a look at those, as early studies did.
    """

    trials: int
    seeds: int
    finalists: int
    fresh_seeds: int
    added: int = 0

    @property
    def all_trials(self) -> int:
        """Settings tried in all."""
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
        method: What tables call it.
        number: From 1.
        settings: What the method's table of a spec says of it.
        spec_hash: Of the cell that was run.
        origin: Whether the study named it, it was drawn evenly, or earlier trials suggested it.
    """

    method: str
    number: int
    settings: Settings = field(hash=False)
    spec_hash: str
    origin: Origin


@dataclass(frozen=True)
class Inherited:
    """A method that is not searched for.

    Attributes:
        sources: Methods whose settings it takes over; the first one's stand.
        settings: What it has beside.
    """

    sources: tuple[str, ...]
    settings: Settings = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Study:
    """A search on one benchmark.

    Attributes:
        name: Of its files.
        benchmark: Name of the benchmark.
        budget: What every method gets.
        trials: By method.
        searched: Names of the settings that each method's search varies.
        inherited: Methods that take over what was found for others.
        bases: Which of the library's methods each begins with, where that is another name.
        spec: The first trial's cell, for what all trials share.
        importances: Share of each setting in what tells good trials from others, by method.
        command: What searches so again; "" of early studies.
        config: The package's spec that the choices went into, below its folder of specs.
    """

    name: str
    benchmark: str
    budget: Budget
    trials: dict[str, list[Trial]]
    searched: dict[str, list[str]]
    inherited: dict[str, Inherited] = field(default_factory=dict)
    bases: dict[str, str] = field(default_factory=dict)
    spec: Settings = field(default_factory=dict)
    importances: dict[str, dict[str, float]] = field(default_factory=dict)
    command: str = ""
    config: str | None = None


def write_study(study: Study, path: Path) -> None:
    """Write a study, one line per trial, so that a change of one is seen as such."""
    facts = dataclasses.asdict(study)
    trials = facts.pop("trials")
    lines = [f'"layout": {LAYOUT}']
    lines += [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in facts.items()]
    methods = ",\n".join(
        f"{json.dumps(method)}: [\n" + ",\n".join(json.dumps(_row(t)) for t in rows) + "\n]"
        for method, rows in trials.items()
    )
    write_text(path, "{\n" + ",\n".join(lines) + ',\n"trials": {\n' + methods + "\n}\n}\n")


def read_study(path: Path) -> Study:
    """Read what `write_study` wrote.

    Raises:
        ConfigError: The file is missing, damaged or of a newer layout.
    """
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        if facts.pop("layout") != LAYOUT:
            raise ConfigError(
                str(path), [("layout", f"is not {LAYOUT}; a newer version wrote it.")]
            )
        budget = Budget(**facts.pop("budget"))
        trials = {
            method: [Trial(method, **row) for row in rows]
            for method, rows in facts.pop("trials").items()
        }
        inherited = {
            name: Inherited(tuple(table["sources"]), table["settings"])
            for name, table in facts.pop("inherited").items()
        }
        return Study(budget=budget, trials=trials, inherited=inherited, **facts)
    except OSError as error:
        raise ConfigError(str(path), [("", f"cannot be read ({error.strerror}).")]) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(str(path), [("", f"is no study: {error!r}.")]) from error


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
        raise ConfigError("the search", problems)


def _row(trial: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in trial.items() if key != "method"}
