"""What to search, as a spec and a command say it, checked as a whole before anything runs."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from recollect.choices import ROWS
from recollect.errors import ConfigError
from recollect.experiments.specs.cell import Cell, cells
from recollect.experiments.specs.request import requests
from recollect.experiments.specs.spec import Problem, Spec, load_spec
from recollect.experiments.tuning.spaces.declared import OF_THE_OPTIMIZER, options_of
from recollect.experiments.tuning.spaces.method_space import ends_of, known_of, space_of
from recollect.experiments.tuning.spaces.space import as_said, draw
from recollect.experiments.tuning.study import Budget, Inherited, Settings, refuse_test_data
from recollect.experiments.tuning.table import MethodSearch, TuneTable, read_table
from recollect.ranges import Range
from recollect.suggestions import nearest

ON_VALIDATION: Final = "evaluation.on=validation"


@dataclass(frozen=True)
class Wanted:
    """What a command says of a search; what it leaves out is the spec's.

    Attributes:
        file: The spec.
        spec: How commands name it; None for the package's own.
        overrides: `--set` options.
        protocol: Another protocol than the spec's.
        memory: Slots; the spec's first if None.
        methods: Which methods; all that the spec searches if None.
        budget: Trials, seeds, finalists, fresh seeds, ahead and prune, those that it says.
    """

    file: Path
    spec: str | None = None
    overrides: tuple[str, ...] = ()
    protocol: str | None = None
    memory: int | None = None
    methods: tuple[str, ...] | None = None
    budget: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Searched:
    """One method's search.

    Attributes:
        name: Of the method.
        base: Which of the library's methods it begins with.
        space: The range of each option that is searched.
        known: Settings to try first, complete.
        fingerprint: What makes trials comparable; another one is another search.
    """

    name: str
    base: str
    space: dict[str, Range]
    known: tuple[Settings, ...]
    fingerprint: str

    @property
    def example(self) -> Settings:
        """Settings that a trial can have."""
        return self.known[0] if self.known else draw(self.space, 1, seed="")[0]


@dataclass(frozen=True)
class Plan:
    """A checked search.

    Attributes:
        wanted: What the command said.
        spec: The spec, as it will be run once settings are found.
        memory: Slots of the memory; the protocol's if None.
        while_searching: Overrides that hold while searching only.
        budget: What every method gets.
        ahead: How many trials of a method may run at once.
        prune: Whether runs that are worse than others are stopped early.
        methods: By name.
        inherited: Methods that take over what is found for others.
    """

    wanted: Wanted
    spec: Spec
    memory: int | None
    while_searching: tuple[str, ...]
    budget: Budget
    ahead: int
    prune: bool
    methods: dict[str, Searched]
    inherited: dict[str, Inherited]

    def cell(self, method: str, settings: Settings) -> Cell:
        """Return what a trial of `settings` runs.

        Raises:
            ConfigError: The settings do not go together.
        """
        return _resolved(self.wanted, self.memory, method, self.overrides(method, settings))

    def overrides(self, method: str, settings: Settings) -> tuple[str, ...]:
        """Return the `--set` options that make the spec a trial."""
        own = [
            f"{'' if key.startswith(OF_THE_OPTIMIZER) else f'methods.{method}.'}{key}={toml(value)}"
            for key, value in settings.items()
            if value is not None
        ]
        of_spec = (o for o in self.wanted.overrides if not o.startswith("tune."))
        return (*of_spec, *own, *self.while_searching)

    def command(self, cell: Cell, settings: Settings, seed: int) -> str:
        """Return a command that makes one run of a trial again."""
        overrides = self.overrides(cell.method, settings)
        return requests([cell], [seed], spec=self.wanted.spec, overrides=overrides)[0].command


def toml(value: Any) -> str:
    """Write a number, a text, a truth value or a list of them as TOML does."""
    return json.dumps(value)


def make_plan(wanted: Wanted) -> Plan:
    """Read and check a search.

    Raises:
        ConfigError: It looks at test data, or rules are broken; all of one kind are listed.
    """
    source = str(wanted.file)
    asked = wanted.methods or ()
    spec = load_spec(
        wanted.file, overrides=wanted.overrides, protocol=wanted.protocol, methods=asked
    )
    table = read_table({**spec.said.get("tune", {}), **wanted.budget}, source)
    searching = load_spec(
        wanted.file,
        overrides=(*wanted.overrides, *table.set),
        protocol=wanted.protocol,
        methods=asked,
    )
    if searching.said.get("evaluation", {}).get("on", "validation") != "validation":
        told = (
            f"is {searching.evaluation.on!r}; settings are chosen on validation data only. Leave "
            "it out: a search sets it, and `recollect run` uses test data without it."
        )
        raise ConfigError(source, [("evaluation.on", told)])
    memory = wanted.memory or (spec.memory[0] if spec.memory else None)
    while_searching = (*table.set, ON_VALIDATION)
    methods: dict[str, Searched] = {}
    problems: list[Problem] = []
    options: set[str] = set()
    for name in _names(wanted, spec):
        cell = _resolved(wanted, memory, name, (*wanted.overrides, *while_searching))
        refuse_test_data([cell])
        options.update(options_of(cell))
        own = table.methods.get(name, MethodSearch())
        space, of_space = space_of(cell, table.space, own.space)
        known, space, of_known = known_of(cell, space, own.known)
        problems += [(f"tune.methods.{name}{path}", told) for path, told in of_space + of_known]
        fingerprint = _fingerprint(cell, space, known, table)
        methods[name] = Searched(name, cell.base, space, known, fingerprint)
    options |= {key for method in spec.methods.values() for key in method.options}
    problems += [
        (f"tune.space.{key}", f"unknown option; {nearest(key, sorted(options))}")
        for key in table.space
        if key not in options
    ]
    problems += _unknown_names(table, spec)
    shared = {key for s in methods.values() for key in s.space if key.startswith(OF_THE_OPTIMIZER)}
    if shared and len(methods) > 1:
        told = "is shared by all methods of a spec; search one method at a time with --method."
        problems += [(f"tune.space.{key}", told) for key in sorted(shared)]
    if problems:
        raise ConfigError(source, problems)
    plan = Plan(
        wanted,
        spec,
        memory,
        while_searching,
        Budget(table.trials, table.seeds, table.finalists, table.fresh_seeds),
        table.ahead,
        table.prune,
        methods,
        {
            name: Inherited(tuple(said.sources), said.settings)
            for name, said in table.inherited.items()
            if all(source in methods for source in said.sources)
        },
    )
    _try_ends(plan, source)
    return plan


def _resolved(wanted: Wanted, memory: int | None, method: str, overrides: Sequence[str]) -> Cell:
    spec = load_spec(wanted.file, overrides=overrides, protocol=wanted.protocol, methods=[method])
    return cells(spec, methods=[method], memory=[memory] if memory else None)[0]


def _names(wanted: Wanted, spec: Spec) -> list[str]:
    """Return what is searched: as asked, else what is compared."""
    if wanted.methods is None:
        return list(spec.compare)
    return list(spec.methods) if "all" in wanted.methods else list(dict.fromkeys(wanted.methods))


def _unknown_names(table: TuneTable, spec: Spec) -> list[Problem]:
    """Say which tables of `[tune]` are about methods that the spec does not have."""
    used = {f"tune.methods.{name}": name for name in table.methods}
    for name, said in table.inherited.items():
        used |= {f"tune.inherited.{name}.from": source for source in said.sources}
    problems = [
        (f"tune.inherited.{name}", f"is no method of the library; {nearest(name, ROWS)}")
        for name in table.inherited
        if name not in ROWS
    ]
    return problems + [
        (path, f"is {name!r}, which has no table; {nearest(name, spec.methods)}")
        for path, name in used.items()
        if name not in spec.methods
    ]


def _fingerprint(
    cell: Cell, space: Mapping[str, Range], known: Sequence[Settings], table: TuneTable
) -> str:
    """Describe everything that decides which trials are made, and what each would give."""
    content = {
        "cell": json.loads(cell.canonical_json) | {"found": {}},
        "space": {key: as_said(looked) for key, looked in space.items()},
        "known": known,
        "seeds": table.seeds,
        "ahead": table.ahead,
        "prune": table.prune,
    }
    return json.dumps(content, sort_keys=True)


def _try_ends(plan: Plan, source: str) -> None:
    """Build every end of every range once, so that no trial fails at what could be seen before."""
    problems: list[Problem] = []
    for name, search in plan.methods.items():
        has_more = plan.budget.trials > len(search.known)
        ends = ends_of(search.space, search.example) if has_more else []
        for settings in (search.example, *search.known, *ends):
            try:
                refuse_test_data([plan.cell(name, settings)])
            except ConfigError as error:
                problems += [(f"tune: {path}", told) for path, told in error.problems]
    if problems:
        raise ConfigError(source, list(dict.fromkeys(problems)))
