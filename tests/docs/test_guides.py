"""The code in the guides runs, from top to bottom of a page; its commands and specs are valid."""

import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from recollect.experiments.cell import cells
from recollect.experiments.configs import config_path
from recollect.experiments.spec import load_spec

ROOT = Path(__file__).parents[2]


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text()
    found = re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)
    assert found
    return found


@pytest.mark.parametrize("page", ["benchmarks.md", "experiments.md", "live-streams.md"])
def test_the_code_of_a_page_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "results").symlink_to(ROOT / "results")
    monkeypatch.chdir(tmp_path)
    exec(compile("\n".join(blocks(page, "python")), page, "exec"), {})


def test_the_spec_of_the_guide_is_one_with_every_key(tmp_path: Path) -> None:
    (text,) = blocks("experiments.md", "toml")
    spec = tmp_path / "spec.toml"
    spec.write_text(text)
    resolved = cells(load_spec(spec))
    assert [(cell.method, cell.capacity) for cell in resolved] == [
        (method, capacity) for capacity in (500, 100) for method in ("er", "bold")
    ]
    assert resolved[1].options["step_size"] == 30.0
    for table in ("stream", "optimizer", "learner", "evaluation"):
        for key in type(getattr(load_spec(spec), table)).model_fields:
            assert re.search(rf"^{key} = ", text, flags=re.MULTILINE), f"{table}.{key}"


def test_the_command_of_the_guide_asks_for_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (command,) = blocks("experiments.md", "console")
    words = shlex.split(command)
    given = dict(pairwise(words))
    spec = load_spec(config_path(words[2]), overrides=[given["--set"]])
    er, mine = cells(spec, methods=["er", "mine"])
    assert mine.parts["rule"]["where"] == "examples/custom_rule.py:Surgery"
    assert mine.optimizer == er.optimizer


@pytest.mark.parametrize(
    "page", ["benchmarks.md", "data.md", "experiments.md", "live-streams.md", "paper-notes.md"]
)
def test_files_a_page_links_to_are_there(page: str) -> None:
    linked = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / "docs" / page).read_text())
    assert [path for path in linked if not (ROOT / "docs" / path).exists()] == []
