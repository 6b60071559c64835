import csv
import io
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.unit.reports.runs import read_runs
from typer.testing import CliRunner, Result

from recollect.cli import app, paper
from recollect.cli.terminal import sweeping
from recollect.errors import RecollectError
from recollect.experiments.records.store import Store
from recollect.paper.tables import WantedCell

Recollect = Callable[..., Result]


@pytest.fixture
def recollect(monkeypatch: pytest.MonkeyPatch) -> Recollect:
    monkeypatch.setattr(paper, "read_store", lambda _path: read_runs())
    return lambda *words: CliRunner().invoke(app, ["paper", *words, "--no-run"])


def test_a_table_is_printed_with_both_sides(recollect: Recollect) -> None:
    ended = recollect("table1")
    assert ended.exit_code == 0, ended.output
    assert "79.8 ± 3.2" in ended.output
    assert "(n=6)" in ended.output
    assert "not certain" in ended.output
    assert "no data for" in ended.output


def test_all_prints_every_table_and_figure(recollect: Recollect) -> None:
    ended = recollect("all", "--format", "markdown")
    assert ended.exit_code == 0, ended.output
    for title in ("Table 1.", "Table 4.", "Figure 1.", "Figure 4."):
        assert f"### {title}" in ended.output


def test_several_tables_end_in_a_tally(recollect: Recollect) -> None:
    last = recollect("table1", "table2").output.strip().splitlines()[-1]
    # 23 claims about accuracy, 21 about forgetting; those under BatchNorm are judged twice.
    assert last.startswith("64 claims: ")
    assert last.endswith("52 have no data.")


def test_fewer_seeds_can_be_asked_for(recollect: Recollect) -> None:
    rows = list(
        csv.DictReader(io.StringIO(recollect("table1", "--seeds", "2", "--format", "csv").output))
    )
    assert {row["n"] for row in rows} == {"0", "2"}


def test_a_text_or_a_picture_is_written(recollect: Recollect, tmp_path: Path) -> None:
    starts = {"t.md": "### Table 2", "t.tex": "% Table 2", "t.csv": "exhibit,", "t.txt": "Table 2"}
    for name, start in starts.items():
        ended = recollect("table2", "-o", str(tmp_path / name))
        assert ended.exit_code == 0, ended.output
        text = (tmp_path / name).read_text()
        assert text.strip().startswith(start)
        assert "19.2" in text
    assert "\x1b" not in (tmp_path / "t.txt").read_text()
    ended = recollect("table2", "--format", "csv", "-o", str(tmp_path / "no-ending"))
    assert (tmp_path / "no-ending").read_text() == (tmp_path / "t.csv").read_text()
    ended = recollect("figure1", "-o", str(tmp_path / "f.png"))
    assert ended.exit_code == 0, ended.output
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-o", "nowhere/table.md"), "`nowhere` is not a folder; create it"),
        (("-o", "table.foo"), "`table.foo` ends in '.foo'; end it in .md, .tex, .csv, .txt, .png"),
        (("-o", "table"), "`table` ends in ''; end it in .md"),
        (("-o", "t.md", "--format", "latex"), "`--format` is latex, but `t.md` ends in '.md'"),
        (("-o", "t.png", "--format", "csv"), "`--format` is csv, but `t.png` ends in '.png'"),
        (("-o", "folder.md"), "`folder.md` is a folder; name a file"),
    ],
)
def test_an_output_that_cannot_be_written_is_said_before_anything_is_run(
    words: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.md").mkdir()
    monkeypatch.setattr(sweeping, "sweep_shown", None)  # nothing may be run
    ended = CliRunner().invoke(app, ["paper", "table1", *words])
    assert isinstance(ended.exception, RecollectError)
    assert message in str(ended.exception)


def test_a_table_that_the_system_will_not_write_is_an_error_in_words(recollect: Recollect) -> None:
    ended = recollect("table1", "-o", "/proc/table.md")
    assert isinstance(ended.exception, RecollectError)
    assert "`/proc/table.md` cannot be written" in str(ended.exception)


def test_one_picture_shows_one_exhibit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "sweep_shown", None)  # and says so before anything is run
    ended = CliRunner().invoke(app, ["paper", "table1", "table2", "-o", str(tmp_path / "f.png")])
    assert ended.exit_code == 2
    assert "name one" in ended.output


def test_an_unknown_table_is_refused(recollect: Recollect) -> None:
    ended = recollect("table9")
    assert ended.exit_code == 2
    assert "table1" in ended.output


def test_what_is_missing_is_run_first_and_failures_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, str, int, str]] = []

    def requests_for(cells: Iterable[WantedCell], seeds: range) -> list[str]:
        asked.extend((c.benchmark, c.method, c.capacity, c.passes) for c in cells)
        assert seeds == range(2)
        return ["wanted"]

    def sweep_shown(
        wanted: list[str], store: Store, wishes: sweeping.Wishes
    ) -> tuple[SimpleNamespace, None]:
        assert (wanted, store.root) == (["wanted"], Path("there"))
        return SimpleNamespace(failed=("one",)), None

    monkeypatch.setattr(paper, "requests_for", requests_for)
    monkeypatch.setattr(sweeping, "sweep_shown", sweep_shown)
    monkeypatch.setattr(paper, "read_store", lambda _path: read_runs())
    words = ["paper", "figure1", "--seeds", "2", "--store", "there"]
    ended = CliRunner().invoke(app, words)
    assert asked == [
        ("mnist-split", "van", 0, "joint"),
        ("mnist-split", "er", 500, "joint"),
        ("mnist-split", "er-mir", 500, "joint"),
        ("mnist-split", "gss", 500, "joint"),
        ("mnist-split", "er-pc-mir", 500, "joint"),
    ]
    assert ended.exit_code == 1
    assert "1 runs failed and are not in the table; `recollect report there`" in ended.output


def test_a_dry_run_counts_what_a_table_lacks(tmp_path: Path) -> None:
    ended = CliRunner().invoke(
        app, ["paper", "figure1", "--seeds", "2", "--store", str(tmp_path), "--dry-run"]
    )
    assert ended.exit_code == 0, ended.output
    assert "10 of 10 runs are missing. No record tells how long 10 of them take." in ended.output
    assert ended.output.count("mnist-split") == 5


def test_a_table_can_be_limited_to_a_benchmark(recollect: Recollect) -> None:
    ended = recollect("table1", "table3", "figure4", "--benchmark", "mnist-split")
    assert ended.exit_code == 0, ended.output
    assert "MNIST-S" in ended.output
    assert "CIFAR10-S" not in ended.output
    assert "Table 3" not in ended.output
    for wrong, said in (("mnist", "the paper has mnist-split"), ("mini-imagenet-split", "nothing")):
        ended = recollect("table3", "--benchmark", wrong)
        assert ended.exit_code == 2
        assert said in ended.output


@pytest.mark.slow
def test_a_table_from_nothing_to_the_page_and_again_for_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = str(tmp_path / "store")

    def recollect(*words: str) -> str:
        ended = CliRunner().invoke(app, [*words], catch_exceptions=False)
        assert ended.exit_code == 0, ended.output
        return ended.stdout

    table = ["paper", "table1", "--seeds", "1", "--format", "csv", "--benchmark", "mnist-split"]
    first = recollect(*table, "--store", store)
    cells = [row for row in csv.DictReader(io.StringIO(first)) if row["kind"] == "cell"]
    assert [row["method"] for row in cells] == ["er", "er-p", "er-c", "er-pc"]
    assert all(row["n"] == "1" and row["spec_hash"] for row in cells)
    monkeypatch.setattr(subprocess, "Popen", None)  # nothing may be run any more
    assert recollect(*table, "--store", store) == first
    assert recollect(*table, "--store", store, "--no-run") == first
    recollect("report", store, "-o", str(tmp_path / "report.html"))
    page = (tmp_path / "report.html").read_text()
    assert all(row["spec_hash"] in page for row in cells)
