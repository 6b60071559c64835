from collections.abc import Callable
from dataclasses import replace

import pytest

from recollect.experiments.execute import failed_record
from recollect.experiments.record import Record
from recollect.experiments.request import Request
from recollect.experiments.scores import accuracy_and_forgetting
from recollect.reports.summary import summarise_runs


@pytest.fixture
def runs(request_for: Callable[..., Request]) -> list[Record]:
    """Two methods on two segments of ten examples; ER has 5, 6, 7 right, the other 7, 8, 9."""
    made = []
    for method, right in (("er", 5), ("gss", 7)):
        request = request_for(method)
        for seed in range(3):
            last = (right + seed, right + seed)
            made.append(
                replace(
                    failed_record(request, ""),
                    status="done",
                    seed=seed,
                    correct=((10, 0), last),
                    total=(10, 10),
                )
            )
    return made


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


def test_only_common_seeds_are_paired_and_failed_runs_do_not_count(runs: list[Record]) -> None:
    broken = replace(runs[-1], status="failed")
    _, gss = summarise_runs([*runs[1:5], broken])
    assert gss.accuracy.n == 2
    assert gss.difference is not None
    assert gss.difference.summary is not None
    assert gss.difference.summary.n == 1
    assert gss.difference.summary.half_width is None
