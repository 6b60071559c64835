"""From what a study chose to the tables of a spec."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from recollect.experiments.specs.cell import Cell
from recollect.experiments.specs.method_tables import read_method
from studies.tuning.choose import Standing, chosen
from studies.tuning.space import Study

BEGIN: Final = "# Chosen by the study, written by `python -m studies.tune {} --write`: begin."
END: Final = "# Chosen by the study: end."


def found_text(study: Study, standing: Standing) -> str:
    """Say in one line how the settings of a method were found."""
    budget = study.budget
    if not budget.fresh_seeds:
        return (
            f"studies.tune {study.name}: best of {budget.all_trials} trials on validation data, "
            f"{budget.seeds} seed(s), short streams; trial {standing.trial.number}"
        )
    return (
        f"studies.tune {study.name}: best of {budget.all_trials} trials on validation data "
        f"(seeds {_span(budget.first_seeds)}), chosen among {budget.finalists} on fresh seeds "
        f"{_span(budget.second_seeds)}; trial {standing.trial.number}"
    )


def method_table(study: Study, standing: Standing) -> str:
    """Return `[methods.NAME]` of a spec as TOML."""
    trial = standing.trial
    settings = {key: value for key, value in trial.settings.items() if key != "base"}
    lines = [f"[methods.{trial.method}]"]
    if trial.cell.base != trial.method:
        lines.append(f'base = "{trial.cell.base}"')
    lines += [f"{key} = {toml(value)}" for key, value in settings.items()]
    lines.append(f"found = {json.dumps(found_text(study, standing))}")
    return "\n".join(lines)


def inherited_table(study: Study, name: str, best: Mapping[str, Standing]) -> str:
    """Return `[methods.NAME]` of a method that takes over what was found for others."""
    inherited = study.inherited[name]
    known = _options_of(name)
    settings: dict[str, Any] = {}
    for source in reversed(inherited.sources):
        found = best[source].trial.settings
        settings |= {key: found[key] for key in found if key in known or key == "lr"}
    settings = {**inherited.settings, **settings}
    how = f"as {' and '.join(inherited.sources)}, studies.tune {study.name}; not searched for"
    lines = [f"[methods.{name}]", *(f"{key} = {toml(value)}" for key, value in settings.items())]
    return "\n".join([*lines, f"found = {json.dumps(how)}"])


def _options_of(method: str) -> set[str]:
    table, _ = read_method(method, {method: {}})
    assert table is not None
    return set(table.options)


def toml(value: Any) -> str:
    """Write a number, text or truth value as TOML does."""
    return json.dumps(value)


def write_settings(study: Study, found: Mapping[str, Sequence[Standing]], path: Path) -> None:
    """Put the chosen settings between the markers of a spec file."""
    begin = BEGIN.format(study.name)
    text = path.read_text(encoding="utf-8")
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(END)
    if not rest or not after:
        raise SystemExit(f"{path} lacks the lines between which settings go:\n{begin}\n{END}")
    best = {m: standing for m in found if (standing := chosen(found[m])) is not None}
    if missing := [method for method in found if method not in best]:
        raise SystemExit(f"the study is not over: nothing is chosen for {', '.join(missing)} yet.")
    tables = [method_table(study, standing) for standing in best.values()]
    tables += [inherited_table(study, name, best) for name in study.inherited]
    text = "\n\n".join(tables)
    path.write_text(f"{before}{begin}\n\n{text}\n\n{END}{after}", encoding="utf-8")


def same_settings(first: Cell, second: Cell) -> bool:
    """Whether two cells learn alike, whatever they are evaluated on."""
    return _learning(first) == _learning(second)


def _learning(cell: Cell) -> tuple[object, ...]:
    return cell.base, cell.capacity, cell.learner, cell.options, cell.optimizer, cell.model


def _span(seeds: range) -> str:
    return f"{seeds[0]} to {seeds[-1]}"
