"""The `recollect` command: one file per subcommand, imported when it is given."""

import sys
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from recollect import __version__
from recollect.cli.terminal.output import survive_any_text
from recollect.errors import RecollectError

# Where each is, and its first sentence: help need not import what takes seconds.
COMMANDS: Final = {
    "run": ("run", "Run methods on a benchmark and compare them over seeds."),
    "new": (
        "new",
        "Write a first spec for data of your own, with comments, from what is found there.",
    ),
    "tune": ("tune", "Search settings on validation data, and write the best as a spec."),
    "cost": (
        "cost",
        "Measure what a step of each method costs, in steps of ER, as a table for a spec.",
    ),
    "methods": ("methods", "List the methods with their parts and options."),
    "data": ("app", "List, fetch, verify and show data sets."),
    "paper": (
        "paper",
        "Put the paper's tables and figures beside ours and judge each ordering it claims.",
    ),
    "report": (
        "report",
        "Write one page with everything a store holds. It needs no network and opens anywhere.",
    ),
    "figure": (
        "figure",
        "Draw a store: accuracy bars, any-time curves, matrices, memories, or memory sizes.",
    ),
    "inspect": (
        "inspect",
        "Show what a memory holds: classes, ages, replays and scores, and its extreme images.",
    ),
    "verify": ("verify", "Compare every record and every checkpoint of a store with its digest."),
}


class _OnDemand(TyperGroup):
    """Gives a placeholder for each subcommand in help, and imports the one that is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, placeholder, rest = super().resolve_command(ctx, args)
        return name, placeholder if name is None else _imported(name), rest


def _imported(name: str) -> Any:
    called, _ = COMMANDS[name]
    found = getattr(import_module(f"recollect.cli.{name}"), called)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False)
        alone.command(name)(found)
        found = alone
    return typer.main.get_command(found)


app = typer.Typer(
    name="recollect",
    cls=_OnDemand,
    help="Task-free online continual learning.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _placeholder() -> None:
    raise AssertionError("the subcommand itself is called")


for _name, (_, _summary) in COMMANDS.items():
    app.command(_name, help=_summary)(_placeholder)


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
    """Run the command; an error of ours, or of the system, ends it with its message alone."""
    survive_any_text()
    try:
        try:
            app()
        finally:
            sys.stdout.flush()  # a full disk behind the output is told below, not after the end
    except RecollectError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    except OSError as error:  # a path that is too long, a folder that may not be read
        if error.errno is None:  # not of the system but of ours, in words of its own
            print(f"error: {error}", file=sys.stderr)
            sys.exit(1)
        where = "the output" if error.filename is None else f"`{error.filename}`"
        print(f"error: {where} cannot be used ({error.strerror or error}).", file=sys.stderr)
        sys.exit(1)
