import csv
import dataclasses
import io
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from rich.console import Console

from recollect.experiments.records.record import Record
from recollect.paper.formats import as_csv, as_latex, as_markdown, as_terminal
from recollect.paper.numbers import EXHIBITS, Claim, Exhibit
from recollect.paper.tables import (
    Comparison,
    JudgedClaim,
    compare,
    exhibit_named,
    variants,
    wanted_cells,
)
from recollect.reports.cells import final_accuracy
from recollect.reports.sizes import Reported

PAPER = Path(os.environ.get("RECOLLECT_PAPER", ""))


def shifted(record: Record, points: int) -> Record:
    """Move every final count by hundredths of its segment: a real run, moved by a known amount."""
    last = tuple(
        min(total, max(0, correct + points * total // 100))
        for correct, total in zip(record.correct[-1], record.total, strict=True)
    )
    return dataclasses.replace(record, correct=(*record.correct[:-1], last))


def named(record: Record, **changes: object) -> Record:
    return dataclasses.replace(record, **changes)  # type: ignore[arg-type]


@pytest.mark.skipif(not PAPER.is_file(), reason="RECOLLECT_PAPER does not name the paper's source")
def test_every_number_stands_in_the_paper() -> None:
    printed = re.findall(r"(\d+\.\d)\$\\pm\$\s*(\d+\.\d)", PAPER.read_text())
    ours = [
        (str(cell.reported.mean), str(cell.reported.spread))
        for name in ("table1", "table2", "table3", "table4")
        for cell in EXHIBITS[name].cells
        if cell.reported is not None
    ]
    assert ours == printed


@pytest.mark.parametrize("name", EXHIBITS)
def test_every_claim_agrees_with_the_papers_own_numbers(name: str) -> None:
    exhibit = EXHIBITS[name]
    for claim in exhibit.claims:
        better, worse = (
            next(
                cell.reported
                for cell in exhibit.cells
                if (cell.metric, cell.benchmark, cell.method)
                == (claim.metric, claim.benchmark, method)
                and cell.capacity in (claim.capacity, 0)
            )
            for method in (claim.better, claim.worse)
        )
        if better is not None and worse is not None:
            gain = better.mean - worse.mean
            assert gain > 0 if claim.metric == "accuracy" else gain < 0, claim


def test_batch_norm_benchmarks_are_wanted_with_both_passes() -> None:
    wanted = wanted_cells(exhibit_named("table1"))
    passes = {cell.passes for cell in wanted if cell.benchmark == "cifar10-split"}
    assert passes == {"joint", "separate"}
    assert {c.passes for c in wanted if c.benchmark == "mnist-split"} == {"joint"}
    assert variants("mini-imagenet-split") == ("separate", "joint")


def test_gss_on_mini_imagenet_is_run_though_the_paper_left_it_out() -> None:
    wanted = wanted_cells(exhibit_named("figure4"))
    assert any(cell.method == "gss" for cell in wanted)
    assert all("gss" not in (c.better, c.worse) for c in EXHIBITS["figure4"].claims)


def test_cells_hold_our_means_and_say_when_there_is_no_run(runs: list[Record]) -> None:
    compared = compare(exhibit_named("table1"), runs)
    found = {(c.paper.benchmark, c.paper.method, c.variant): c for c in compared.cells}
    own = [r for r in runs if (r.benchmark, r.method) == ("mnist-split", "er")]
    summary = found["mnist-split", "er", "any"].ours
    assert summary is not None
    assert summary.n == 6
    assert summary.mean == pytest.approx(sum(map(final_accuracy, own)) / 6)
    assert found["cifar10-split", "er", "joint"].ours is None
    assert found["cifar10-split", "er", "separate"].ours is None


def test_memory_tables_choose_records_by_capacity(runs: list[Record]) -> None:
    compared = compare(exhibit_named("table3"), runs)
    found = {
        (c.paper.method, c.paper.capacity): c.ours
        for c in compared.cells
        if c.paper.benchmark == "mnist-permuted"
    }
    small = [r for r in runs if (r.method, r.capacity) == ("er-mir", 100)]
    assert found["er-mir", 1000] is None
    ours = found["er-mir", 100]
    assert ours is not None
    assert ours.mean == pytest.approx(sum(map(final_accuracy, small)) / 3)


def test_verdicts_follow_direction_and_test(runs: list[Record]) -> None:
    # ER copies of a real run: better by 5 hundredths, worse by 5, and unequal over two seeds only.
    er = [r for r in runs if (r.benchmark, r.method) == ("mnist-split", "er")]
    er_p = [named(shifted(r, 5), method="er-p", spec_hash="p") for r in er]
    er_c = [named(shifted(r, -5), method="er-c", spec_hash="c") for r in er]
    er_pc = [named(shifted(r, 9), method="er-pc", spec_hash="pc") for r in er[:2]]
    exhibit = dataclasses.replace(
        exhibit_named("table1"),
        claims=tuple(
            c
            for c in exhibit_named("table1").claims
            if c.benchmark != "cifar10-split" and c.worse == "er"
        ),
    )
    judged = compare(exhibit, [*er, *er_p, *er_c, *er_pc]).claims
    found = {c.claim.better: c for c in judged if c.claim.benchmark == "mnist-split"}
    # Five points below ER without spread, where the paper has 1.7 above.
    assert found["er-c"].verdict == "less than the paper reports"
    assert found["er-pc"].verdict == "points its way, not certain"
    # Six seeds: 2/64, times two for the two claims that reach it first, 0.09 by Holm over three.
    assert found["er-p"].difference.p_value == 2 / 64
    assert found["er-p"].verdict == "points its way, not certain"
    alone = dataclasses.replace(exhibit, claims=(found["er-p"].claim,))
    assert compare(alone, [*er, *er_p]).claims[0].verdict == "holds"
    alone = dataclasses.replace(exhibit, claims=(found["er-c"].claim,))
    assert compare(alone, [*er, *er_c]).claims[0].verdict == "does not hold"
    assert compare(alone, [er[0], er_c[0]]).claims[0].verdict == (
        "points the other way, not certain"
    )
    elsewhere = [c for c in judged if c.claim.benchmark == "mnist-permuted"]
    assert {c.verdict for c in elsewhere} == {"no data"}


def alone(exhibit: str, better: str, benchmark: str = "mnist-split") -> Exhibit:
    """Return an exhibit with one claim, so that nothing is corrected for."""
    whole = exhibit_named(exhibit)
    (claim,) = (
        c for c in whole.claims if (c.benchmark, c.better, c.worse) == (benchmark, better, "er")
    )
    return dataclasses.replace(whole, claims=(claim,))


def test_a_gain_smaller_than_the_papers_is_told_from_noise(runs: list[Record]) -> None:
    # The paper has ER-P 2.6 points above ER on MNIST-S, with 3.2 and 2.1 over ten runs.
    exhibit = alone("table1", "er-p")
    er = [r for r in runs if (r.benchmark, r.method) == ("mnist-split", "er")]

    def judged(changes: Sequence[int], *, times: int = 1) -> JudgedClaim:
        many = [
            (named(r, seed=r.seed + 100 * k), change)
            for k in range(times)
            for r, change in zip(er, changes, strict=True)
        ]
        ours = [named(shifted(r, change), method="er-p", spec_hash="p") for r, change in many]
        return compare(exhibit, [*(r for r, _ in many), *ours]).claims[0]

    around_zero = (-1, 1, -1, 1, -2, 2)
    assert judged(around_zero, times=5).verdict == "less than the paper reports"
    # Six seeds of the same differ as little, but the paper's own ten runs are not known better.
    assert judged((-6, 6, -5, 5, -7, 7)).verdict.endswith("not certain")
    # What is certainly there holds, also where the paper has more; more than the paper is not less.
    assert judged((1,) * 6, times=5).verdict == "holds"
    assert judged((-9, 30, -9, 30, -8, 30)).verdict == "points its way, not certain"
    assert judged(around_zero).theirs == pytest.approx(0.026)


def test_two_seeds_that_agree_do_not_refute_what_their_interval_holds(runs: list[Record]) -> None:
    # One hundredth below ER and one above: Welch alone calls that certainly less than the paper's
    # +7.8 on CIFAR10-S, and the interval over two seeds, 0 +- 13 points, holds it.
    exhibit = alone("table1", "er-c", "cifar10-split")
    er = [
        named(r, benchmark="cifar10-split", spec_hash="er")
        for r in runs
        if (r.benchmark, r.method) == ("mnist-split", "er")
    ][:2]
    ours = [
        named(shifted(r, change), method="er-c", spec_hash="c")
        for r, change in zip(er, (-1, 1), strict=True)
    ]
    (joint,) = (c for c in compare(exhibit, [*er, *ours]).claims if c.verdict != "no data")
    ours_over_two = joint.difference.summary
    assert joint.theirs == pytest.approx(0.078)
    assert ours_over_two is not None
    assert ours_over_two.high is not None
    assert ours_over_two.high > 0.078
    assert joint.verdict.endswith("not certain")


def test_less_forgetting_than_in_the_paper_is_no_shortfall(runs: list[Record]) -> None:
    # Table 2: ER-P forgets 6.0 points less. Seeds on both sides of more than that.
    er = [r for r in runs if (r.benchmark, r.method) == ("mnist-split", "er")]
    ours = [
        named(shifted(r, change), method="er-p", spec_hash="p")
        for r, change in zip(er, (40, -6, 40, -6, 40, -6), strict=True)
    ]
    (claim,) = compare(alone("table2", "er-p"), [*er, *ours]).claims
    assert claim.theirs == pytest.approx(-0.06)
    assert claim.difference.summary is not None
    assert claim.difference.summary.mean < -0.06
    assert claim.verdict == "points its way, not certain"


def test_the_papers_own_difference_needs_both_numbers() -> None:
    exhibit = exhibit_named("table1")
    claim = Claim("accuracy", "cifar10-split", 500, "er-c", "er")
    assert exhibit.reported(claim) == (Reported(38.5, 1.1), Reported(30.7, 2.0))
    for nowhere in ({"better": "van"}, {"capacity": 123}, {"metric": "forgetting"}):
        assert exhibit.reported(named_claim(claim, **nowhere)) is None
    figure = exhibit_named("figure1")  # bars without numbers but ER's
    assert {figure.reported(claim) for claim in figure.claims} == {None}


def named_claim(claim: Claim, **changes: object) -> Claim:
    return dataclasses.replace(claim, **changes)  # type: ignore[arg-type]


def test_less_forgetting_is_better(runs: list[Record]) -> None:
    er = [r for r in runs if (r.benchmark, r.method) == ("mnist-split", "er")]
    er_p = [named(shifted(r, 5), method="er-p", spec_hash="p") for r in er]
    judged = compare(exhibit_named("table2"), [*er, *er_p]).claims
    claim = next(c for c in judged if (c.claim.better, c.claim.worse) == ("er-p", "er"))
    assert claim.difference.summary is not None
    assert claim.difference.summary.mean < 0
    assert claim.verdict.startswith("holds")


def test_joint_and_separate_runs_stand_apart(runs: list[Record]) -> None:
    joint = [
        named(r, benchmark="cifar10-split")
        for r in runs
        if (r.benchmark, r.method) == ("mnist-split", "er")
    ]
    apart = [named(shifted(r, -3), passes="separate", spec_hash="s") for r in joint[:4]]
    compared = compare(exhibit_named("table1"), [*joint, *apart])
    ours = {
        c.variant: c.ours
        for c in compared.cells
        if (c.paper.benchmark, c.paper.method) == ("cifar10-split", "er")
    }
    assert ours["joint"] is not None
    assert ours["separate"] is not None
    assert (ours["joint"].n, ours["separate"].n) == (6, 4)
    assert ours["joint"].mean > ours["separate"].mean


def test_validation_runs_and_other_protocols_stay_out(runs: list[Record]) -> None:
    er = next(r for r in runs if r.method == "er")
    other = named(er, protocol="mir-official")
    tuning = named(er, spec='{"evaluation":{"on":"validation"}}')
    other_model = named(er, spec='{"model":{"norm":"group"}}')
    compared = compare(exhibit_named("table1"), [other, tuning, other_model])
    assert all(cell.ours is None for cell in compared.cells)


def test_several_fitting_specs_are_said(runs: list[Record]) -> None:
    er = [r for r in runs if (r.benchmark, r.method) == ("mnist-split", "er")]
    other = named(er[0], spec_hash="another")
    notes = compare(exhibit_named("table1"), [*er, other]).notes
    assert len(notes) == 1
    assert "2 specs fit" in notes[0]
    assert er[0].spec_hash[:8] in notes[0]


def test_markdown_has_both_sides_with_n_and_the_meaning_of_the_spread(runs: list[Record]) -> None:
    text = as_markdown(compare(exhibit_named("table1"), runs))
    assert "| MNIST-S | paper | 79.8 ± 3.2 |" in text
    assert re.search(r"\|  \| ours \| \d\d\.\d ± \d+\.\d \(n=6\) \|", text)
    assert "95 % Student t interval" in text
    assert "does not name, n = 10" in text
    widths = {line.count("|") for line in text.split("\n\n")[1].splitlines()}
    assert widths == {7}


@pytest.mark.parametrize("form", [as_markdown, as_latex])
def test_claims_without_runs_take_one_line(
    form: Callable[[Comparison], str], runs: list[Record]
) -> None:
    lines = form(compare(exhibit_named("table1"), runs)).splitlines()
    told = [line for line in lines if "no data" in line]
    assert len(told) == 1
    assert "MINI-S (joint) (5)" in told[0]
    assert sum("MNIST-S: ER-P above ER" in line for line in lines) == 2  # above ER, above ER-C
    assert "claim of the paper" not in form(compare(exhibit_named("figure4"), runs))


def test_the_legend_says_over_which_claims_it_corrects(runs: list[Record]) -> None:
    split = [r for r in runs if r.benchmark == "mnist-split"]
    assert "Holm-corrected over the claims below; it" in as_markdown(
        compare(exhibit_named("table1"), split)
    )
    joint = [named(r, benchmark="cifar10-split") for r in split]
    apart = [named(r, passes="separate", spec_hash=f"{r.method} apart") for r in joint]
    both = as_markdown(compare(exhibit_named("table1"), [*joint, *apart]))
    assert (
        "Holm-corrected over the claims below, those marked (separate) and those marked (joint) "
        "each by themselves; it"
    ) in both
    every = as_markdown(compare(exhibit_named("table1"), [*split, *joint, *apart]))
    assert "those marked (separate), those marked (joint) and those without a mark each" in every


def test_latex_escapes_what_latex_would_eat(runs: list[Record]) -> None:
    text = as_latex(compare(exhibit_named("table2"), runs))
    assert r"79.8" not in text
    assert r"19.2 $\pm$ 4.0" in text
    assert r"95 \% interval" in text
    assert "±" not in "".join(line for line in text.splitlines() if not line.startswith("%"))


def test_csv_is_one_long_table_in_percent(runs: list[Record]) -> None:
    comparisons = [compare(exhibit, runs) for exhibit in EXHIBITS.values()]
    rows = list(csv.DictReader(io.StringIO(as_csv(comparisons))))
    assert {row["exhibit"] for row in rows} == set(EXHIBITS)
    er = next(row for row in rows if row["method"] == "er" and row["benchmark"] == "mnist-split")
    assert float(er["paper_mean"]) == 79.8
    assert 50 < float(er["mean"]) < 100
    assert float(er["low"]) < float(er["mean"]) < float(er["high"])
    claims = [row for row in rows if row["kind"] == "claim"]
    assert {row["verdict"] for row in claims} <= {
        "holds",
        "points its way, not certain",
        "points the other way, not certain",
        "less than the paper reports",
        "does not hold",
        "no data",
    }


def test_one_seed_has_no_spread_and_no_p(runs: list[Record]) -> None:
    text = as_markdown(compare(exhibit_named("table1"), [r for r in runs if r.seed == 0]))
    assert re.search(r"\| \d\d\.\d \(n=1\) \|", text)
    assert "| one seed | 1 |  | +2.6 |" in text


def test_the_terminal_table_fits_a_hundred_and_forty_columns(runs: list[Record]) -> None:
    console = Console(width=140, file=io.StringIO())
    for exhibit in EXHIBITS.values():
        with console.capture() as shown:
            console.print(as_terminal(compare(exhibit, runs)))
        assert "…" not in shown.get()


def test_an_unknown_exhibit_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"`name` is 'table9'; choose one of table1"):
        exhibit_named("table9")
