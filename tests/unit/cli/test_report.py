from pathlib import Path

import pytest
from tests.unit.reports.runs import read_runs
from typer.testing import CliRunner

from recollect.cli import app, report
from recollect.errors import RecollectError
from recollect.reports.reading import read_store


def test_a_page_is_written_through_a_link_that_stays_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "read_store", lambda _path: read_runs())
    page = tmp_path / "report.html"
    page.symlink_to("elsewhere.html")
    ended = CliRunner().invoke(app, ["report", str(tmp_path), "-o", str(page)])
    assert ended.exit_code == 0, ended.output
    assert "63 runs" in ended.output
    assert page.is_symlink()
    assert (tmp_path / "elsewhere.html").read_text().startswith("<!doctype html>")


def test_a_missing_store_is_said_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(RecollectError, match=r"does not exist; run something first \(`recollect"):
        read_store(tmp_path / "nowhere")


def test_a_page_that_cannot_be_written_is_an_error_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "read_store", lambda _path: read_runs())
    for output, message in (
        (tmp_path, "is a folder; name a file in it"),
        (tmp_path / "nowhere" / "r.html", "is not a folder; create it"),
        (Path("/proc/r.html"), "`/proc/r.html` cannot be written"),
    ):
        ended = CliRunner().invoke(app, ["report", str(tmp_path), "-o", str(output)])
        assert isinstance(ended.exception, RecollectError)
        assert message in str(ended.exception)
