"""The page: targets first, then every section with what it measured."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from perf.asking.answer import Answer, Ratio, Table, quartiles
from perf.asking.plots import plot_capacity, plot_growth, plot_steps, plot_targets
from perf.asking.targets import all_targets

PAGE, NUMBERS = "speed.md", "speed.json"
NOTES = Path(__file__).with_name("notes.md")
_GROWING = {
    "capacity": "Cost of a step over that with 500 slots, by capacity",
    "growth": "Cost of a step over ER's, by replay size, classes and width",
}
_HOW = """\
Every figure is a ratio of costs measured in one run: contestants take turns, block by block, on one
thread; a repetition gives one ratio, the table gives the median and the quartiles of all
repetitions. Cost is CPU time unless a section says otherwise. Inputs are random numbers of the
right shape and labels random classes, except where a section names a stream; only GSS, which stops
comparing once the outcome is certain, costs more or less by what it sees. The memory is full and
admits newcomers at the mean rate of the stream that the shape stands for: 0.33 on MNIST-S, 0.06 on
CIFAR10-S, 0.52 on MINI-S.
Written by `make perf`; all raw numbers are in [speed.json](speed.json)."""


def write_page(stored: Mapping[str, Any], folder: Path, *, notes: Path = NOTES) -> Path:
    """Write the page and its plots into `folder`; return the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    date = str(stored["date"])
    answers = {
        name: Answer.from_json(section["answer"])
        for name, section in stored["sections"].items()
        if "answer" in section
    }
    ratios = [found for answer in answers.values() for found in answer.ratios]
    plots = {
        "targets": plot_targets(ratios, folder / "targets.png"),
        "steps": plot_steps(answers, folder / "steps.png"),
        "capacity": plot_capacity(answers.get("capacity"), folder / "capacity.png"),
        "growth": plot_growth(answers.get("growth"), folder / "growth.png"),
    }
    parts = [
        f"# Speed, {date}",
        _HOW,
        *_warning(stored),
        "## Targets",
        _targets(ratios),
        *_plot(plots["targets"], "Measured ratios over their targets"),
        notes.read_text().strip() if notes.exists() else "",
        "## Steps",
        *_plot(plots["steps"], "Cost of a step over the bare loop's, by model"),
        "## Where it was measured",
        _surroundings(stored),
        *(
            _section(name, section, answers.get(name), plots)
            for name, section in stored["sections"].items()
        ),
    ]
    path = folder / PAGE
    path.write_text("\n\n".join(part for part in parts if part) + "\n")
    return path


def _warning(stored: Mapping[str, Any]) -> list[str]:
    sections = stored["sections"].values()
    said = []
    if any(section.get("is_quick") for section in sections):
        said.append("**A quick trial: too few repetitions to quote.**")
    if len({section.get("commit") for section in sections}) > 1:
        said.append("Sections were measured at different commits; each names its own.")
    return said


def _targets(ratios: Sequence[Ratio]) -> str:
    found = {(ratio.what, ratio.than, ratio.shape): ratio for ratio in ratios}
    rows = []
    met = 0
    for what, than, shape, target in all_targets():
        ratio = found.get((what, than, shape))
        if ratio is None:
            rows.append([what, than, shape, "not measured", "", "", f"{target:g}", ""])
            continue
        met += ratio.is_met is True
        sign = "≥" if ratio.at_least else "≤"
        verdict = "met" if ratio.is_met else "**missed**"
        rows.append([*_ratio_cells(ratio), f"{sign} {target:g}", verdict])
    columns = ["ours", "÷ contestant", "model or state", "ratio", "quartiles", "n", "target", ""]
    return f"{met} of {len(rows)} met.\n\n{_markdown(columns, rows)}"


def _ratio_cells(ratio: Ratio) -> list[str]:
    spread = f"{_number(ratio.low)} to {_number(ratio.high)}"
    cells = [ratio.what, ratio.than, ratio.shape, f"**{_number(ratio.median)}**", spread]
    return [*cells, str(ratio.repetitions)]


def _surroundings(stored: Mapping[str, Any]) -> str:
    lines = []
    for part in ("machine", "versions"):
        facts = ", ".join(f"{name} {value}" for name, value in stored.get(part, {}).items())
        lines.append(f"- {part}: {facts}")
    return "\n".join(lines)


def _section(
    name: str, section: Mapping[str, Any], answer: Answer | None, plots: Mapping[str, Path | None]
) -> str:
    commit = str(section.get("commit", ""))[:10] or "unknown"
    when = f"{section.get('began', '')}, {section.get('seconds', 0):.0f} s, load {section['load']}"
    if answer is None:
        return f"## {name}\n\nNo answer: {section.get('error')} (commit `{commit}`, {when})."
    parts = [f"## {answer.title}", f"`{answer.command}` (commit `{commit}`, {when})"]
    if answer.settings:
        parts.append(", ".join(f"{key} {value}" for key, value in answer.settings.items()) + ".")
    if answer.ratios:
        columns = ["", "÷", "model or state", "ratio", "quartiles", "n"]
        parts.append(_markdown(columns, [_ratio_cells(ratio) for ratio in answer.ratios]))
    if name in _GROWING:
        parts += _plot(plots[name], _GROWING[name])
    parts += [f"*{table.title}*\n\n{_table(table)}" for table in answer.tables]
    if answer.times and not any(len(row) for table in answer.tables for row in table.rows):
        parts.append(_times(answer))
    parts += answer.remarks
    if answer.printed:
        parts.append(f"```text\n{answer.printed}\n```")
    return "\n\n".join(parts)


def _times(answer: Answer) -> str:
    rows = []
    for name, values in answer.times.items():
        low, high = quartiles(values)
        rows.append([name, *(f"{value:.3g}" for value in (median(values), low, high))])
    return _markdown(["", f"median, {answer.unit}", "lower quartile", "upper"], rows)


def _table(table: Table) -> str:
    rows = [[cell if isinstance(cell, str) else _number(cell) for cell in r] for r in table.rows]
    return _markdown(table.columns, rows)


def _plot(path: Path | None, words: str) -> list[str]:
    return [] if path is None else [f"![{words}]({path.name})"]


def _markdown(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _number(value: float) -> str:
    return f"{value:.3f}" if value < 0.1 else f"{value:.2f}" if value < 20 else f"{value:.0f}"
