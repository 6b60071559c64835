"""The code in the guides runs, from top to bottom of a page; its commands and specs are valid."""

import re
import shlex
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest
from pydantic import BaseModel
from typer.main import get_command

from recollect.cli import app
from recollect.experiments.specs.cell import cells
from recollect.experiments.specs.configs import config_path
from recollect.experiments.specs.spec import load_spec
from recollect.experiments.specs.tables import File

ROOT = Path(__file__).parents[2]


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text()
    found = re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)
    assert found
    return found


@pytest.mark.parametrize(
    "page",
    [
        *("benchmarks.md", "experiments.md", "integrations.md", "live-streams.md"),
        *("methods.md", "trackers.md", "tuning.md"),
    ],
)
def test_the_code_of_a_page_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "results").symlink_to(ROOT / "results")
    monkeypatch.chdir(tmp_path)
    exec(compile("\n".join(blocks(page, "python")), page, "exec"), {})


def test_the_spec_of_the_guide_is_one_with_every_key(tmp_path: Path) -> None:
    text, _ = blocks("experiments.md", "toml")
    spec = tmp_path / "spec.toml"
    spec.write_text(text)
    resolved = cells(load_spec(spec))
    assert [(cell.method, cell.capacity) for cell in resolved] == [
        (method, capacity) for capacity in (500, 100) for method in ("er", "bold")
    ]
    assert resolved[1].options["step_size"] == 30.0
    tables = {"": File} | {
        name: type(value)
        for name, value in File.model_validate(tomllib.loads(text))
        if isinstance(value, BaseModel)
    }
    assert len(tables) == 7
    page = (ROOT / "docs" / "experiments.md").read_text()  # not all keys of [stream] go together
    for name, table in tables.items():
        for key in table.model_fields:
            said = rf"^{key} = |^\[{key}|\b{key} = |^\[stream.{key}\]"
            where = page if name == "stream" else text
            assert re.search(said, where, flags=re.MULTILINE), f"{name}.{key}"


def test_the_budget_of_the_guide_is_one(tmp_path: Path) -> None:
    _, budget = blocks("experiments.md", "toml")
    spec = tmp_path / "spec.toml"
    methods = "".join(f"[methods.{name}]\n" for name in ("er", "er-p", "er-mir"))
    spec.write_text(f'benchmark = "mnist-split"\n{budget}{methods}')
    assert [cell.stream["cost"] for cell in cells(load_spec(spec))] == [1.0, 1.27, 2.29]


@pytest.mark.parametrize("page", sorted(p.name for p in (ROOT / "docs").glob("*.md")))
def test_every_command_of_a_page_is_one_that_the_program_takes(page: str) -> None:
    """Parsed, and not carried out."""
    text = (ROOT / "docs" / page).read_text()
    listed = re.findall(r"```console\n(.*?)```", text, flags=re.DOTALL)
    lines = [line for block in listed for line in block.replace("\\\n", " ").splitlines()]
    inline = re.findall(r"`(recollect (?:run|tune|cost|new|paper|report|verify) [^`…]+)`", text)
    program = get_command(app)
    for line in [*lines, *inline]:
        command = line.partition(" >> ")[0]  # what the shell does with the answer is its own
        name, *words = shlex.split(command, comments=True) or [""]
        if name == "recollect" and not {"FILE", "STORE", "NAME"} & set(words):
            with program.make_context(name, words) as context:
                called, found, rest = program.resolve_command(context, words)  # type: ignore[attr-defined]
                found.make_context(called, list(rest)).close()


@pytest.mark.parametrize("page", ["experiments.md", "../README.md"])
def test_the_command_with_an_own_rule_asks_for_what_it_says(
    page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    lines = [line for block in blocks(page, "console") for line in block.splitlines()]
    (command,) = [line for line in lines if "methods.mine" in line]
    pairs = list(pairwise(shlex.split(command)))
    asked = {option: [value for key, value in pairs if key == option] for option, _ in pairs}
    spec = load_spec(config_path(asked["run"][0]), overrides=asked["--set"])
    er, *_, mine = cells(spec, methods=asked["--method"])
    assert mine.parts["rule"]["where"] == "examples/custom_rule.py:Surgery"
    assert mine.optimizer == er.optimizer


@pytest.mark.parametrize(
    "page",
    [
        "batch-norm.md",
        "benchmarks.md",
        "cluster.md",
        "data.md",
        "experiments.md",
        "integrations.md",
        "live-streams.md",
        "methods.md",
        "paper-notes.md",
        "trackers.md",
        "tuning.md",
        "your-own-data.md",
    ],
)
def test_files_a_page_links_to_are_there(page: str) -> None:
    linked = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / "docs" / page).read_text())
    assert [path for path in linked if not (ROOT / "docs" / path).exists()] == []


@pytest.mark.parametrize(
    "page",
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))],
    ids=lambda page: page.name,
)
def test_links_to_headings_lead_to_one(page: Path) -> None:
    linked = re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", page.read_text())
    lost = [
        f"{path}#{anchor}"
        for path, anchor in linked
        if anchor not in anchors(page.parent / path if path else page)
    ]
    assert lost == []


def test_every_page_is_in_the_list_of_pages() -> None:
    docs = ROOT / "docs"
    listed = re.findall(r"\]\(([^)#]+)\)", (docs / "README.md").read_text())
    pages = [*docs.glob("*.md"), *(docs / "decisions").glob("*.md"), docs / "performance/README.md"]
    wanted = {page.relative_to(docs).as_posix() for page in pages} - {"README.md"}
    appendices = {page for page in listed if page.startswith("appendix/")}  # listed by their page
    assert set(listed) - appendices == wanted


def anchors(page: Path) -> list[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]


def test_the_search_of_the_guide_is_one_with_every_key(tmp_path: Path) -> None:
    from recollect.experiments.tuning.plan import Wanted, make_plan
    from recollect.experiments.tuning.table import TuneTable

    (text,) = blocks("tuning.md", "toml")
    path = tmp_path / "spec.toml"
    path.write_text(text)
    plan = make_plan(Wanted(path))
    assert list(plan.methods) == ["er", "er-p"]
    assert [settings["lr"] for settings in plan.methods["er-p"].known] == [0.05, 0.1]
    assert list(plan.inherited) == ["a-gem"]
    for key in TuneTable.model_fields:
        assert re.search(rf"^{key} = |^\[tune\.{key}", text, flags=re.MULTILINE), key
