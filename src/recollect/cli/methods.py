"""`recollect methods`: what there is to choose from, and what can be set."""

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from recollect.choices import LEARNER, NEEDS, OPTIONS, ROWS


def methods(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List the methods with their parts and options.

    `recollect run --method NAME` runs one, `--set methods.NAME.OPTION=VALUE`
    changes it; in Python it is `recollect.method(NAME, ..., OPTION=VALUE)`.
    """
    if as_json:
        print(json.dumps(_facts()))
        return
    console = Console()
    console = console if console.is_terminal else Console(width=150)
    console.print(_methods())
    console.print("\n[bold]Options[/bold] of each part, and what they are if nothing is said")
    console.print(_options())
    console.print("\n[bold]What goes with what[/bold] follows from what each part needs")
    console.print(_needs())


def _methods() -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("name", "what it is", "storage", "retrieval", "rule", "objective, predictor"):
        table.add_column(heading, overflow="fold")
    usual = {"CrossEntropy", "Logits"}
    for name, row in ROWS.items():
        others = [part for part in (row.objective, row.predictor) if part not in usual]
        parts = (row.storage or "-", row.retrieval or "-", row.rule, ", ".join(others))
        table.add_row(Text(name, style="bold"), row.summary, *parts)
    return table


def _needs() -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("part", "needs"):
        table.add_column(heading, overflow="fold")
    for part, needs in NEEDS.items():
        table.add_row(part, needs)
    return table


def _options() -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("part", "option", "type", "default"):
        table.add_column(heading, overflow="fold")
    for part, options in {**OPTIONS, "every method": LEARNER}.items():
        for key, option in options.items():
            table.add_row(part, key, option.kind_in_words(), _in_words(option.default))
    return table


def _in_words(value: object) -> str:
    """Write a default as a spec does.

    Example:
        >>> _in_words(None), _in_words(True), _in_words(0.5)
        ('none', 'true', '0.5')
    """
    return (
        "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    )


def _facts() -> dict[str, object]:
    return {
        "methods": [
            {
                "name": name,
                "summary": row.summary,
                "parts": row.parts,
                "settings": dict(row.settings),
                "needs": {kind: NEEDS[kind] for kind in row.parts.values()},
                "needs_augment": row.augments,
                "options": {
                    key: {
                        "part": part,
                        "type": option.kind_in_words(),
                        "default": row.settings.get(key, option.default),
                    }
                    for part, kind in row.parts.items()
                    for key, option in OPTIONS[kind].items()
                },
            }
            for name, row in ROWS.items()
        ],
        "every method": {
            key: {"type": option.kind_in_words(), "default": option.default}
            for key, option in LEARNER.items()
        },
    }
