"""The page on one's own data: its commands, specs and files, from a folder of photos to a table."""

import re
import shlex
from pathlib import Path

import pytest
from tests.unit.experiments.own_data import write_photos
from typer.testing import CliRunner

from recollect.cli import app
from recollect.experiments.records.store import Store

PAGE = (Path(__file__).parents[2] / "docs" / "your-own-data.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.DOTALL | re.MULTILINE)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_photos(tmp_path / "photos", side=40)
    for code in blocks("python"):
        (name,) = re.findall(r"^# (\w+\.py)$", code, flags=re.MULTILINE)
        Path(name).write_text(code)


def run(*words: str) -> str:
    ended = CliRunner().invoke(app, list(words))
    assert ended.exit_code == 0, (ended.output, ended.exception)
    return ended.output


def test_its_two_commands_lead_from_photos_to_a_table() -> None:
    (commands,) = blocks("console")
    new, first = [shlex.split(line)[1:] for line in commands.splitlines()]
    assert "wrote photos.toml" in run(*new)
    # Six seeds of a ResNet take a minute; a small MLP learns nothing else.
    given = ["--seeds", "1", "--workers", "1", "--quiet", "--set", "model.name=mlp"]
    assert "photos, protocol own" in run(*first, *given)
    assert {record.method for record in Store("runs").records()} == {"van", "er", "er-clip"}
    assert Path("runs/report.html").exists()


def test_its_specs_run_with_the_model_and_the_function_that_it_shows() -> None:
    data, model, function = blocks("toml")
    Path("whole.toml").write_text(data + model)
    Path("made.toml").write_text(function)
    for name in ("whole.toml", "made.toml"):
        run("run", name, "--seeds", "1", "--workers", "1", "--quiet")
    records = {(r.benchmark, r.method): r for r in Store("runs").records()}
    assert records.keys() == {("photos", "er"), ("photos", "van"), ("my-data-make", "er")}
    assert {record.status for record in records.values()} == {"done"}
    assert records["my-data-make", "er"].segment_names == ("first pair", "second pair")
