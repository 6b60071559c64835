"""What the README shows runs, and what it says was measured."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from recollect.cli import app

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_the_python_of_the_readme_runs_from_top_to_bottom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code = "\n".join(blocks("python"))
    assert code.count("import torch") == 1
    exec(compile(code, "README.md", "exec"), {})
    assert (tmp_path / "learner.ckpt").is_file()


def commands() -> list[str]:
    lines = [
        line.split("#")[0].strip() for block in blocks("console") for line in block.splitlines()
    ]
    return [line for line in lines if line.startswith("recollect")]


@pytest.mark.parametrize("command", commands())
def test_a_command_of_the_readme_has_options_that_exist(command: str) -> None:
    _, *words = shlex.split(command)
    names = [word for word in words if word.startswith("-")]
    leading = [word for word in words[:2] if not word.startswith("-")]
    subcommand = leading if words[0] == "data" else leading[:1]
    shown = CliRunner().invoke(app, [*subcommand, "--help"], env={"COLUMNS": "200"})
    assert shown.exit_code == 0
    assert [name for name in names if name not in shown.output] == []


def test_make_has_the_two_commands_of_the_readme() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert all(f"\n{target}:" in makefile for target in ("run", "test"))
    assert all(f"make {target}" in README for target in ("run", "test"))


def test_files_the_readme_links_to_are_there() -> None:
    linked = re.findall(r"\]\(([^)#]+)\)", README)
    assert linked
    assert [path for path in linked if not (ROOT / path).exists()] == []


def test_the_readme_has_at_most_700_words() -> None:
    assert len(README.split()) <= 700


def test_nothing_pretends_that_the_package_is_on_an_index() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")]
    # A message in the source may be cut between two lines, and quoted twice.
    from_an_index = re.compile(r"pip install[\s\"']+recollect")
    assert [page for page in pages if from_an_index.search(page.read_text())] == []
