"""The `recollect` command: one file a subcommand."""

import sys
from typing import Annotated

import typer

from recollect import __version__
from recollect.cli import data, figure, inspect, paper, report, run
from recollect.errors import RecollectError

app = typer.Typer(
    name="recollect",
    help="Task-free online continual learning.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("run")(run.run)
app.add_typer(data.app, name="data")
app.command("paper")(paper.paper)
app.command("report")(report.report)
app.command("figure")(figure.figure)
app.command("inspect")(inspect.inspect)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"recollect {__version__}")
        raise typer.Exit


@app.callback()
def _recollect(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print and exit."),
    ] = False,
) -> None:
    """Task-free online continual learning."""


def main() -> None:
    """Run the command; an error of ours ends it with its message alone."""
    try:
        app()
    except RecollectError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
