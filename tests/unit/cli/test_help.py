import inspect
from importlib import import_module

import pytest
import typer
from typer.testing import CliRunner

from recollect.cli import COMMANDS, app


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_every_word_of_a_command(name: str) -> None:
    """What stands in square brackets, such as an extra, is markup to rich, and not shown."""
    called = getattr(import_module(f"recollect.cli.{name}"), COMMANDS[name][0])
    if isinstance(called, typer.Typer):
        pytest.skip("its commands have docstrings of their own")
    shown = CliRunner().invoke(app, [name, "--help"]).output
    for word in (inspect.getdoc(called) or "").partition("Args:")[0].split():
        assert word in shown
