from pathlib import Path

import pytest
from PIL import Image
from tests.unit.reports.runs import read_runs
from typer.testing import CliRunner

from recollect.cli import app, figure


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
