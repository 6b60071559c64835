from pathlib import Path

import pytest
from PIL import Image
from tests.unit.reports.runs import read_runs
from typer.testing import CliRunner

from recollect.cli import app, figure
from recollect.errors import RecollectError


def test_a_figure_of_one_benchmark_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figure, "read_store", lambda _path: read_runs())
    picture = tmp_path / "bars.png"
    command = ["figure", "bars", str(tmp_path), "-o", str(picture), "--benchmark", "mnist-split"]
    ended = CliRunner().invoke(app, [*command, "--method", "er", "--method", "gss"])
    assert ended.exit_code == 0, ended.output
    with Image.open(picture) as drawn:
        assert drawn.format == "PNG"


def test_an_unknown_kind_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    ended = CliRunner().invoke(app, ["figure", "pie", str(tmp_path), "-o", "x.png"])
    assert ended.exit_code == 2
    assert "curves" in ended.output


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("x.foo", "`x.foo` ends in '.foo'; end it in .png, .svg, .pdf."),
        ("folder.png", "`folder.png` is a folder; name a file in it"),
        ("nowhere/x.png", "`nowhere` is not a folder; create it"),
        ("/proc/x.png", "`/proc/x.png` cannot be written"),
    ],
)
def test_a_figure_that_cannot_be_written_is_an_error_in_words(
    output: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.png").mkdir()
    monkeypatch.setattr(figure, "read_store", lambda _path: read_runs())
    ended = CliRunner().invoke(app, ["figure", "bars", "store", "-o", output])
    assert isinstance(ended.exception, RecollectError)
    assert message in str(ended.exception)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--benchmark", "mnist-split", "--benchmark", "mnist-spilt"),
            "`--benchmark` is 'mnist-spilt', of which `store` holds no run; "
            "did you mean `mnist-split`?",
        ),
        (("--method", "er-cp"), "`--method` is 'er-cp', of which `store` holds no run; did you"),
        (("--method", "zzz"), "holds no run; known are er,"),
        (
            ("--benchmark", "mnist-permuted", "--method", "gss"),
            "`store` holds no run of gss on mnist-permuted; leave one of the two out.",
        ),
    ],
)
def test_a_filter_that_finds_nothing_is_named_with_the_nearest_of_the_store(
    words: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(figure, "read_store", lambda _path: read_runs())
    ended = CliRunner().invoke(app, ["figure", "bars", "store", "-o", "x.png", *words])
    assert isinstance(ended.exception, RecollectError)
    assert message in str(ended.exception)
