import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from recollect.cli import main
from recollect.cli.terminal import sweeping
from recollect.experiments.records.record import CurvePoint
from recollect.experiments.records.store import Store
from recollect.experiments.running.execute import failed_record
from recollect.experiments.specs.cell import cells
from recollect.experiments.specs.configs import config_path
from recollect.experiments.specs.request import requests
from recollect.experiments.specs.spec import load_spec

Shown = Callable[..., list[str]]


CURVE = (CurvePoint(10, (9,), (10,)), CurvePoint(20, (3, 8), (10, 10)))


def fill(
    store: Store,
    right: Mapping[str, int],
    memory: tuple[int, ...],
    settings: Sequence[str] = (),
    curve: tuple[CurvePoint, ...] = (),
) -> None:
    """Put ten made-up runs of each method there, each with so many of 1000 answers right."""
    spec = load_spec(config_path("mnist-split"), overrides=settings)
    for request in requests(cells(spec, methods=list(right), memory=memory), range(10)):
        correct = right[request.cell.method] + 2 * request.seed
        record = replace(
            failed_record(request, ""),
            status="done",
            correct=((correct,),),
            total=(1000,),
            curve=curve,
        )
        store.add(request, record)


@pytest.fixture
def shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shown:
    """Runs a command whose runs are all there, in a terminal of that width, or into a file."""

    def command(
        right: Mapping[str, int],
        *,
        width: int | None = None,
        memory: tuple[int, ...] = (500,),
        settings: Sequence[str] = (),
        curve: tuple[CurvePoint, ...] = (),
    ) -> list[str]:
        fill(Store(tmp_path / "runs"), right, memory, settings, curve)
        words = ["recollect", "run", "--out", str(tmp_path / "runs"), "--quiet", "--seeds", "10"]
        words += [word for method in right for word in ("--method", method)]
        words += [word for setting in settings for word in ("--set", setting)]
        words += [word for size in memory for word in ("--memory", str(size))]
        monkeypatch.setattr(sys, "argv", words)
        monkeypatch.setattr(sweeping, "write_report", lambda *_, **__: None)
        if width is not None:
            monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes the output for a terminal
            monkeypatch.setenv("COLUMNS", str(width))
        with pytest.raises(SystemExit):
            main()
        told = capsys.readouterr()
        assert told.err == ""
        return re.sub(r"\x1b\[[0-9;]*m", "", told.out).splitlines()

    return command


MAIN_JOB = {"er": 800, "er-pc-mir": 860}


def test_a_terminal_of_80_columns_shows_methods_and_seeds_and_leaves_out_spreads(
    shown: Shown,
) -> None:
    heading, er, best, *about = shown(MAIN_JOB, width=80)
    assert heading.split()[:5] == ["method", "memory", "n", "accuracy", "forgetting"]
    assert heading.endswith("less er (95 % interval)      p")
    assert er.split()[:4] == ["er", "500", "10", "80.9"]
    assert best.split()[:4] == ["er-pc-mir", "500", "10", "86.9"]
    assert "+6.0 (+6.0 to +6.0)" in best
    told = " ".join(" ".join(about).split())
    assert told.endswith("Left out of a narrow terminal: sd, 95 % interval.")
    assert "sd over seeds" not in told


def test_a_terminal_of_60_columns_still_shows_what_a_comparison_needs(shown: Shown) -> None:
    heading, er, best, *about = shown(MAIN_JOB, width=60)
    assert heading.split()[:4] == ["method", "n", "accuracy", "forgetting"]
    assert er.split()[:3] == ["er", "10", "80.9"]
    assert best.split()[:3] == ["er-pc-mir", "10", "86.9"]
    assert "mnist-split, protocol paper, 500 slots." in about[0]


def test_a_narrow_terminal_keeps_memory_sizes_that_tell_rows_apart(shown: Shown) -> None:
    heading, *rows = shown(MAIN_JOB, width=60, memory=(100, 500))
    assert heading.split()[:5] == ["method", "memory", "n", "accuracy", "forgetting"]
    assert [row.split()[1] for row in rows[:4]] == ["100", "100", "500", "500"]


def test_a_wide_terminal_and_a_file_show_every_column(shown: Shown) -> None:
    table = shown(MAIN_JOB)
    assert re.split(r"  +", table[0]) == [
        *("method", "memory", "n", "accuracy", "sd", "95 % interval", "forgetting"),
        *("less er (95 % interval)", "p"),
    ]
    assert "Left out" not in " ".join(table)
    assert shown(MAIN_JOB, width=120) == table


def test_runs_with_a_curve_show_what_was_known_along_the_stream(shown: Shown) -> None:
    heading, er, *about = shown(MAIN_JOB, curve=CURVE)
    assert re.split(r"  +", heading)[6:9] == ["forgetting", "any-time", "worst case"]
    # (10 * 0.9 + 10 * 0.55) / 20, and 0.8 / 2 + 0.3 / 2
    assert [word for word in er.split() if word in ("72.5", "55.0")] == ["72.5", "55.0"]
    assert "area under accuracy over the stream. Worst case: WC-ACC." in " ".join(
        " ".join(about).split()
    )


def test_a_budget_shows_what_share_of_the_stream_each_method_saw(shown: Shown) -> None:
    said = ["stream.budget=1.0", "stream.cost.er-pc-mir=4.0"]
    heading, er, best, *about = shown(MAIN_JOB, settings=said)
    assert "seen" in heading.split()
    assert "100.0" in er.split()
    assert "25.0" in best.split()
    assert "Seen: batches that the budget left time for." in " ".join(" ".join(about).split())


def test_a_method_without_a_memory_is_the_baseline_of_every_size(shown: Shown) -> None:
    heading, van, er_p, er_c, *_ = shown({"van": 600, "er-p": 850, "er-c": 740})
    assert "less van (95 % interval)" in heading
    assert "(" not in van
    assert "+25.0 (" in er_p
    assert "+14.0 (" in er_c


def test_baselines_that_differ_are_named_in_each_row(shown: Shown) -> None:
    # The only method without a memory is compared with ER of one size; the others with their own.
    heading, *rows = shown({"er": 800, "gss": 820, "van": 600}, memory=(100, 500))
    assert re.split(r"  +", heading)[-3:] == ["baseline", "difference (95 % interval)", "p"]
    named = {tuple(row.split()[:2]): re.split(r"  +", row)[-3:-1] for row in rows[:5]}
    same = "+2.0 (+2.0 to +2.0)"
    assert named["gss", "100"] == ["er", same]
    assert named["gss", "500"] == ["er", same]
    assert named["van", "-"] == ["er, 100 slots", "-20.0 (-20.0 to -20.0)"]
