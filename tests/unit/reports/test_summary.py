from collections.abc import Callable
from dataclasses import replace

import pytest

from recollect.experiments.records.record import CurvePoint, Record
from recollect.experiments.records.scores import accuracy_and_forgetting
from recollect.experiments.running.execute import failed_record
from recollect.experiments.specs.request import Request
from recollect.reports.summary import summarise_runs


def finished(request: Request, right: int) -> list[Record]:
    """Make up three runs on two segments of ten examples, with more right at each seed."""
    return [
        replace(
            failed_record(request, ""),
            status="done",
            seed=seed,
            correct=((10, 0), (right + seed, right + seed)),
            total=(10, 10),
        )
        for seed in range(3)
    ]


@pytest.fixture
def runs(request_for: Callable[..., Request]) -> list[Record]:
    """Two methods on two segments of ten examples; ER has 5, 6, 7 right, the other 7, 8, 9."""
    return [*finished(request_for("er"), 5), *finished(request_for("gss"), 7)]


def test_accuracy_and_forgetting_come_from_counts(runs: list[Record]) -> None:
    assert accuracy_and_forgetting(runs[0]) == (0.5, 0.5)


def test_each_cell_has_mean_spread_interval_and_paired_difference(runs: list[Record]) -> None:
    er, gss = summarise_runs(runs)
    assert (er.method, er.accuracy.n, er.difference) == ("er", 3, None)
    assert er.accuracy.mean == pytest.approx(0.6)
    assert er.accuracy.sd == pytest.approx(0.1)
    # Student's t with 2 degrees of freedom: 4.3027 * 0.1 / sqrt(3)
    assert er.accuracy.half_width == pytest.approx(0.248414, abs=1e-5)
    assert gss.baseline == "er"
    assert gss.difference is not None
    assert gss.difference.summary is not None
    assert gss.difference.summary.n == 3
    assert gss.difference.summary.mean == pytest.approx(0.2)
    assert gss.difference.summary.sd == pytest.approx(0, abs=1e-12)
    assert gss.difference.adjusted == pytest.approx(0.25)  # 2 / 2^3, one comparison


def test_measures_along_the_stream_are_there_where_runs_have_a_curve(runs: list[Record]) -> None:
    er, _ = summarise_runs(runs)
    assert (er.area, er.minimum, er.worst_case, er.seen) == (None, None, None, None)
    points = (CurvePoint(10, (8,), (10,)), CurvePoint(20, (3, 9), (10, 10)))
    er, gss = summarise_runs([*(replace(run, curve=points) for run in runs[:2]), *runs[2:]])
    for found, mean in ((er.area, 0.7), (er.minimum, 0.3), (er.worst_case, 0.6)):
        assert found is not None
        assert found.n == 2
        assert found.mean == pytest.approx(mean)
    assert gss.area is None


def test_only_common_seeds_are_paired_and_failed_runs_do_not_count(runs: list[Record]) -> None:
    broken = replace(runs[-1], status="failed")
    _, gss = summarise_runs([*runs[1:5], broken])
    assert gss.accuracy.n == 2
    assert gss.difference is not None
    assert gss.difference.summary is not None
    assert gss.difference.summary.n == 1
    assert gss.difference.summary.half_width is None


def test_a_baseline_without_a_memory_is_compared_with_every_size(
    request_for: Callable[..., Request],
) -> None:
    van, gss = finished(request_for("van"), 2), finished(request_for("gss"), 7)
    larger = [replace(run, capacity=200, spec_hash="larger") for run in gss]
    rows = summarise_runs([*van, *gss, *larger])
    assert [row.baseline for row in rows] == ["van", "van", "van"]
    assert rows[0].difference is None
    for row in rows[1:]:
        assert row.difference is not None
        assert row.difference.summary is not None
        assert row.difference.summary.mean == pytest.approx(0.5)


def test_every_size_has_the_first_method_as_its_baseline_also_if_another_has_no_memory(
    request_for: Callable[..., Request],
) -> None:
    gss, van = finished(request_for("gss"), 7), finished(request_for("van"), 2)
    larger = [replace(run, capacity=200, spec_hash="larger") for run in gss]
    rows = summarise_runs([*gss, *van, *larger])
    assert [(row.baseline, row.baseline_capacity) for row in rows] == [
        ("gss", 20),
        ("gss", 20),
        ("gss", 200),
    ]
    assert [row.difference is None for row in rows] == [True, False, True]
