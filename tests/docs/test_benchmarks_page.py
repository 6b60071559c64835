"""What the page of benchmarks says of MIR's learner is what the committed rows say."""

import random

import pytest
from studies import document
from studies.kept import made_here, read_rows
from studies.mir.learner import KEPT, OURS, SCRIPT, STEPS, THEIRS, accuracies, trial

from recollect.reports.numbers import points
from recollect.reports.statistics import Summary, paired_difference

ROWS = read_rows(KEPT)
PAGE = " ".join((document.ROOT / "docs" / "benchmarks.md").read_text().split())


def ours_less(method: str, name: str) -> Summary:
    mine, theirs = (accuracies(ROWS, method, which) for which in (OURS, name))
    summary = paired_difference(mine, theirs).summary
    assert summary is not None
    assert summary.low is not None
    assert summary.high is not None
    return summary


def test_every_learner_ran_on_the_same_forty_seeds() -> None:
    for step in STEPS:
        assert sorted(accuracies(ROWS, *step)) == list(range(40)), step


def test_the_page_says_what_leaving_out_the_current_segment_does() -> None:
    er, mir = (ours_less(method, "earlier") for method in ("er", "er-mir"))
    assert er.high is not None
    assert mir.high is not None
    assert er.high < 0
    assert mir.high < 0
    said = [points(-gain.mean).strip("+") for gain in (er, mir)]
    assert f"segment is {said[0]} points above ours for ER and {said[1]} for ER-MIR." in PAGE


@pytest.mark.parametrize(("method", "name"), [("er", THEIRS), ("er-mir", THEIRS)])
def test_with_their_reservoir_as_well_no_difference_is_certain(method: str, name: str) -> None:
    difference = ours_less(method, name)
    assert difference.low is not None
    assert difference.high is not None
    assert difference.low < 0 < difference.high


def test_a_row_of_mirs_learner_is_made_again_bit_for_bit() -> None:
    here = made_here()
    same = [
        row
        for row in ROWS
        if (row["machine"]["cpu"], row["versions"]["torch"])
        == (here["machine"]["cpu"], here["versions"]["torch"])
        and row["learner"] in (OURS, SCRIPT)
    ]
    if not same:
        pytest.skip("no row was made on this kind of machine")
    row = random.Random("a row").choice(same)
    made = trial(row["method"], row["learner"], row["seed"])
    assert made["correct"] == row["correct"]
    assert made.get("num_misread") == row.get("num_misread")
