"""The `recollect` command: one file a subcommand."""

import sys

import typer

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


@app.callback()
def _recollect() -> None:
    """Task-free online continual learning."""


def main() -> None:
    """Run the command; an error of ours ends it with its message alone."""
    try:
        app()
    except RecollectError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
