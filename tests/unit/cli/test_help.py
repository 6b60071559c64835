"""Help says what is written: no word of it is taken for markup."""

import importlib
import inspect
import re

import pytest
import typer
from typer.testing import CliRunner

from recollect.cli import COMMANDS, app


def shown(*words: str) -> str:
    result = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "120"})
    assert result.exit_code == 0
    return " ".join(re.sub("[│╭╮╰╯─]", " ", result.output).split())


@pytest.mark.parametrize("name", COMMANDS)
def test_help_holds_every_sentence_that_a_command_is_described_by(name: str) -> None:
    called, _ = COMMANDS[name]
    found = getattr(importlib.import_module(f"recollect.cli.{name}"), called)
    described = found.info.help if isinstance(found, typer.Typer) else inspect.getdoc(found)
    assert " ".join(str(described).split()) in shown(name)


def test_help_of_a_command_names_every_option_with_its_words() -> None:
    for name, (called, _) in COMMANDS.items():
        found = getattr(importlib.import_module(f"recollect.cli.{name}"), called)
        if isinstance(found, typer.Typer):
            continue
        helped = shown(name).replace(" ", "")
        for parameter in inspect.signature(found).parameters.values():
            (told,) = (m for m in parameter.annotation.__metadata__ if hasattr(m, "help"))
            if not told.hidden and told.help:
                assert "".join(told.help.split()) in helped, f"{name} {parameter.name}"
