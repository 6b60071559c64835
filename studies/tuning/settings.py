"""From what a study chose to the tables of a spec."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from recollect.experiments.specs.cell import Cell
from recollect.experiments.tuning.best import found_in_words, inherited_settings, toml_text
from recollect.experiments.tuning.choose import Standing, chosen
from recollect.experiments.tuning.study import Study

BEGIN: Final = "# Chosen by the study, written by `python -m studies.tuning {} --write`: begin."
END: Final = "# Chosen by the study: end."
_FORERUNNER: Final = "studies.tune"


def found_text(study: Study, standing: Standing) -> str:
    """Say in one line how the settings of a method were found."""
    budget = study.budget
    if study.command or budget.fresh_seeds:
        told = found_in_words(study, standing)
        return told if study.command else told.replace("recollect tune", _FORERUNNER)
    return (
        f"{_FORERUNNER} {study.name}: best of {budget.all_trials} trials on validation data, "
        f"{budget.seeds} seed(s), short streams; trial {standing.trial.number}"
    )


def method_table(study: Study, standing: Standing) -> str:
    """Return `[methods.NAME]` of a spec as TOML."""
    trial = standing.trial
    base = {"base": study.bases[trial.method]} if trial.method in study.bases else {}
    table = {**base, **trial.settings, "found": found_text(study, standing)}
    return toml_text(table, f"methods.{trial.method}").rstrip()


def inherited_table(study: Study, name: str, best: Mapping[str, Standing]) -> str:
    """Return `[methods.NAME]` of a method that takes over what was found for others."""
    by = "recollect tune" if study.command else _FORERUNNER
    how = f"as {' and '.join(study.inherited[name].sources)}, {by} {study.name}; not searched for"
    table = {**inherited_settings(study, name, best), "found": how}
    return toml_text(table, f"methods.{name}").rstrip()


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
