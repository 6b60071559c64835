"""Tables of the document: from records alone, and saying so where there are none."""

import dataclasses
from pathlib import Path

import pytest
from studies import document
from studies.batch_norm.draw_passes import PassesBlock, draw_passes, reading_lines, whole_lines
from studies.batch_norm.passes import passes_table, short_passes_table, weighing_table
from studies.crs.memory import age_at_eviction, crs_table, imbalance, share_of_the_first
from studies.gains.claims import (
    GLANCES,
    PLACES,
    STATEMENTS,
    claims_table,
    glance_table,
    verdict,
)
from studies.gains.draw_gains import draw_gains, gains
from studies.machines.draw_machines import draw_machines
from studies.machines.machines import machines_table, repeats_table
from studies.readings.segments import segments_table
from studies.readings.signs import signs_table
from studies.readings.studies import CIFAR, MINI_FIVE, MNIST, STUDIES, ReadingStudy, readings_table
from studies.tables import BEYOND, View, beyond_table, rates_table, results_table
from tests.unit.reports.runs import read_runs

from recollect.experiments.records.record import MemoryPoint, Record
from recollect.paper.numbers import EXHIBITS, Claim
from recollect.paper.tables import Comparison, JudgedClaim, Verdict, compare
from recollect.reports.statistics import PairedDifference, Summary


@pytest.fixture(scope="module")
def runs() -> list[Record]:
    """Real runs of ER, ER-P and others on the embedded MNIST, as test runs of the paper's size."""
    return [dataclasses.replace(r, spec=SPEC) for r in read_runs()]


SPEC = '{"evaluation":{"on":"test"},"optimizer":{"lr":0.05}}'


def judged(said: Verdict, num_seeds: int = 10) -> JudgedClaim:
    claim = Claim("accuracy", "mnist-split", 500, "er-p", "er")
    summary = None if said == "no data" else Summary(num_seeds, 0.1, 0.1, 0.0, 0.2)
    return JudgedClaim(claim, "any", PairedDifference(summary, 0.01, "paired t"), said)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (["holds", "holds"], "**held**"),
        (["holds", "does not hold"], "**not held**, reversed"),
        (["no data", "does not hold"], "**not held**, reversed"),
        (["holds", "less than the paper reports"], "**not held**, smaller"),
        (["less than the paper reports", "does not hold"], "**not held**, reversed"),
        (["holds", "points its way, not certain"], "not yet decided"),
        (["holds", "no data"], "not yet decided"),
        ([], "not yet decided"),
    ],
)
def test_a_statement_is_judged_by_all_its_parts(said: list[Verdict], expected: str) -> None:
    assert verdict([judged(one) for one in said]) == expected


def test_fewer_seeds_than_the_paper_had_refute_nothing() -> None:
    assert verdict([judged("does not hold", 9)]) == "not yet decided"
    assert verdict([judged("less than the paper reports", 9)]) == "not yet decided"


def test_noise_that_points_the_other_way_refutes_nothing() -> None:
    assert verdict([judged("points the other way, not certain", 30)]) == "not yet decided"


def test_every_claim_of_every_exhibit_belongs_to_a_statement() -> None:
    for exhibit in EXHIBITS.values():
        for part in compare(exhibit, []).claims:
            mine = [s for s in STATEMENTS if exhibit.name in s.exhibits and s.is_part(part)]
            assert mine, (exhibit.name, part.claim)
            assert (part.claim.benchmark, part.variant) in PLACES


def test_claims_without_runs_are_not_decided() -> None:
    table = claims_table([compare(exhibit, []) for exhibit in EXHIBITS.values()])
    assert "**" not in table
    assert "not yet run" in table


def test_claims_without_runs_can_be_left_out() -> None:
    table = claims_table(compared([]), with_missing=False)
    assert len(table.splitlines()) == 2


def test_a_glance_puts_tuned_runs_and_those_of_the_lineage_side_by_side(
    runs: list[Record],
) -> None:
    tuned = [dataclasses.replace(r, capacity=500 if r.capacity else 0) for r in runs]
    _, _, pgd, *_ = glance_table(compared(tuned), compared([])).splitlines()
    _, text, here, at_the_lineages_rate, *_ = (entry.strip() for entry in pgd.split("|"))
    assert text == "PGD improves the accuracy of ER"
    num_seeds = len({r.seed for r in runs if r.method == "er-p"})
    assert here.endswith(f"(n={num_seeds})")
    assert at_the_lineages_rate == "no runs"
    nothing = glance_table(compared([]), compared([])).splitlines()[2:]
    assert {row.count("|") for row in nothing} == {len(GLANCES) + 2}
    assert "(n" not in "".join(nothing)


def compared(records: list[Record]) -> list[Comparison]:
    return [compare(exhibit, records) for exhibit in EXHIBITS.values()]


def test_a_table_says_what_was_not_run(runs: list[Record]) -> None:
    view = View("mnist-split", capacity=runs[0].capacity)
    table = results_table(view, runs, ("er", "er-p", "no-such"))
    er, er_p, missing = table.splitlines()[2:]
    assert er.startswith("| ER | ")
    assert "not yet run" not in er + er_p
    assert "79.8 ± 3.2" in er
    assert missing.split("|")[3].strip() == "not yet run"


def test_validation_runs_and_other_models_are_in_no_table(runs: list[Record]) -> None:
    spoilt = [
        dataclasses.replace(runs[0], spec='{"evaluation":{"on":"validation"}}'),
        dataclasses.replace(runs[0], spec='{"evaluation":{"on":"test"},"model":{"norm":"group"}}'),
        dataclasses.replace(runs[0], spec=SPEC, protocol="mir-official"),
    ]
    assert View(runs[0].benchmark, capacity=runs[0].capacity).cells(spoilt) == {}


def test_separate_passes_include_grouped_ones(runs: list[Record]) -> None:
    er = next(r for r in runs if r.method == "er")
    view = View(er.benchmark, "separate", capacity=er.capacity)
    assert view.cells([er]) == {}
    assert "er" in view.cells([dataclasses.replace(er, passes="grouped")])


def test_ours_stand_beside_what_they_change() -> None:
    table = beyond_table(View("mnist-split"), [], list(BEYOND))
    assert table.count("not yet run") == len(BEYOND)


def test_learning_rates_are_compared_on_common_seeds(runs: list[Record]) -> None:
    grown = [dataclasses.replace(r, capacity=500 if r.capacity else 0) for r in runs]
    table = rates_table(grown, grown)
    assert "| MNIST-S | ER |" in table
    assert "0.0 [0.0, 0.0]" in table


def test_on_cifar_a_joint_pass_is_compared_with_the_lineages_separate_ones(
    runs: list[Record],
) -> None:
    er = [record for record in runs if record.method == "er"][:3]
    ours = [as_cifar(record, "joint", 40) for record in er]
    theirs = [as_cifar(record, "separate", 30) for record in er]
    alone = dataclasses.replace(as_cifar(er[0], "joint", 90), seed=99)  # no seed of both: left out
    (row,) = rates_table([*ours, *theirs, alone], [*theirs, *ours]).splitlines()[2:]
    assert row == "| CIFAR10-S | ER | 3 | 0.05 | 60.0 ± 0.0 | 55.0 ± 0.0 | +5.0 [+5.0, +5.0] |"


def made_on(record: Record, method: str, seed: int, right: int, cpu: str) -> Record:
    return dataclasses.replace(
        record,
        method=method,
        seed=seed,
        capacity=500,
        segment_names=("only",),
        correct=((right,),),
        total=(100,),
        machine={"cpu": cpu},
    )


def test_two_processors_are_compared_seed_by_seed(runs: list[Record]) -> None:
    view = View("mnist-split")
    here = [
        made_on(runs[0], "er", seed, right, "Intel(R) Xeon") for seed, right in [(0, 80), (1, 84)]
    ]
    fresh = made_on(runs[0], "er", 30, 10, "AMD EPYC")
    there = [made_on(runs[0], "er", seed, right, "AMD EPYC") for seed, right in [(0, 80), (1, 82)]]
    head, _, row = machines_table(view, [*here, fresh], there).splitlines()
    assert "accuracy, Intel | accuracy, AMD |" in head
    # sd of (0, 2) is 1.4, and sqrt(2.83^2 + 1.41^2) = 3.2; one run of two is the same
    assert row.startswith("| ER | 2 | 82.0 ± 2.8 | 81.0 ± 1.4 | +1.0 [")
    assert row.endswith("| 1.4 | 3.2 | 1 of 2 |")
    assert machines_table(view, here, []) == "not yet run"


def test_fresh_seeds_stand_beside_the_first_and_the_same(runs: list[Record]) -> None:
    view, gains = View("mnist-split"), {"Intel": (0, 1, 9), "AMD": (0, 1, 4), "fresh": (30, 31, 2)}
    made = {
        name: [
            made_on(runs[0], method, seed, right, "AMD EPYC")
            for seed in seeds
            for method, right in (("er", 80), ("er-p", 80 + gain))
        ]
        for name, (*seeds, gain) in gains.items()
    }
    rows = repeats_table(view, made["Intel"] + made["fresh"], made["AMD"]).splitlines()[2:]
    found = [cell.strip().partition(" ")[0] for cell in rows[0].split("|")[2:-1]]
    assert found == ["+9.0", "+4.0", "+2.0", "+3.0"]  # the last: all on the one processor
    assert rows[1].count("not yet run") == 4
    assert repeats_table(view, [], []) == "not yet run"


def test_rounding_is_drawn_from_the_runs_there_are(runs: list[Record], tmp_path: Path) -> None:
    made = [
        made_on(runs[0], method, seed, 80 + seed % 7, "AMD EPYC")
        for method in ("er", "er-p", "er-pc-mir")
        for seed in (0, 1, 2, 30, 31, 32)
    ]
    draw_machines(View("mnist-split"), made, made[:3] + made[6:9] + made[12:15], tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def point(counts: tuple[int, ...], evicted: int, age: float | None) -> MemoryPoint:
    return MemoryPoint(
        seen=10,
        classes=tuple(range(len(counts))),
        counts=counts,
        age_quantiles=(0.0, 1.0, 2.0, 3.0, 4.0),
        replay_quantiles=(),
        evicted_classes=(0,) if evicted else (),
        evicted_counts=(evicted,) if evicted else (),
        evicted_mean_age=age,
    )


def test_numbers_of_a_memory_by_hand(runs: list[Record]) -> None:
    memory = (point((5, 5), 0, None), point((4,) * 5, 1, 10.0), point((6, 6, 4, 4), 3, 2.0))
    record = dataclasses.replace(runs[0], memory=memory)
    assert age_at_eviction(record) == (10.0 + 3 * 2.0) / 4
    assert share_of_the_first(record) == 12 / 20
    assert imbalance(record) == pytest.approx(0.6)  # 30+30+20+20 % in 4 of 10 classes


@pytest.mark.parametrize("study", STUDIES.values(), ids=lambda study: study.name)
def test_readings_look_at_validation_data_and_are_told_apart(study: ReadingStudy) -> None:
    found = study.cells()
    assert len({cell.spec_hash for cell in found}) == len(study.readings)
    assert {cell.evaluation["on"] for cell in found} == {"validation"}
    assert {reading.against for reading in study.readings} <= {r.name for r in study.readings}


def test_readings_without_records_say_so() -> None:
    assert readings_table(MNIST, []).count("not yet run") == len(MNIST.readings)
    assert crs_table(MNIST, []) == "not yet run"


def test_a_reading_counts_the_slots_of_every_class_and_none_where_nothing_is_stored(
    runs: list[Record],
) -> None:
    run = next(run for run in runs if run.memory)
    point = dataclasses.replace(run.memory[-1], classes=(0, 11), counts=(4, 6))
    stored = dataclasses.replace(run, method="er", memory=(point,))
    nothing = dataclasses.replace(run, method="van", memory=())
    rows = readings_table(MINI_FIVE, [stored, nothing]).splitlines()
    assert next(row for row in rows if "| ER |" in row).endswith("| 4 " + "0 " * 10 + "6 |")
    assert next(row for row in rows if "| VAN |" in row).endswith("|  |")


def test_a_reading_that_diverges_says_how_often(runs: list[Record]) -> None:
    failed = dataclasses.replace(runs[0], method="p-no-floor", status="failed", error="diverged")
    assert "| 1 | 1 diverge |" in readings_table(MNIST, [failed])


def test_a_page_keeps_its_words_and_gets_its_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "BLOCKS", {"one": lambda: "| table |"})
    text = "before\n<!-- begin: one -->\nold\n<!-- end: one -->\nafter\n"
    made = document.written(text, source="page")
    assert made == "before\n<!-- begin: one -->\n| table |\n<!-- end: one -->\nafter\n"
    assert document.written(made, source="page") == made
    with pytest.raises(SystemExit, match="has a block 'two'"):
        document.written("<!-- begin: two -->\n<!-- end: two -->", source="page")


def as_cifar(record: Record, passes: str, first: int) -> Record:
    """Make a run of two segments, 50 right of 100 in the first at first and `first` at the end."""
    correct, total = ((50, 0), (first, 80)), (100, 100)
    return dataclasses.replace(
        record, benchmark="cifar10-split", capacity=500, passes=passes, correct=correct, total=total
    )


def test_passes_are_compared_on_the_seeds_both_have(runs: list[Record]) -> None:
    er = [record for record in runs if record.method == "er"][:2]
    assert len({record.seed for record in er}) == 2
    shown = [as_cifar(er[0], "joint", 40), as_cifar(er[1], "joint", 90)]
    shown.append(as_cifar(er[0], "separate", 20))
    row, *others = passes_table(shown).splitlines()[2:]
    cells = [cell.strip() for cell in row.split("|")[1:-1]]
    assert cells[:4] == ["ER", "1", "60.0", "50.0"]
    assert cells[4].startswith("+10.0")
    assert cells[5:7] == ["10.0", "30.0"]
    assert cells[7].startswith("\N{MINUS SIGN}20.0")
    assert all("not yet run" in line for line in others)
    short = [as_cifar(er[0], "joint", 40), as_cifar(er[0], "separate", 20)]
    short[1] = dataclasses.replace(short[1], method="er-separate", spec_hash="separate")
    first, *rest = short_passes_table(short).splitlines()[2:]
    assert first == row.replace("| ER |", "| ER, lr 0.05 |")
    assert len(rest) == 2
    assert all("not yet run" in line for line in rest)
    strangers = [as_cifar(er[0], "joint", 40), as_cifar(er[1], "separate", 20)]
    assert "not yet run" in passes_table(strangers).splitlines()[2]


def test_all_pairs_of_runs_are_told_with_their_spread_once_three_methods_have_some(
    runs: list[Record],
) -> None:
    (er,) = [record for record in runs if record.method == "er"][:1]
    shown = []
    for method, separate in (("er", 20), ("er-p", 40), ("gss", 60)):
        for passes, first in (("joint", 40), ("separate", separate)):
            run = as_cifar(er, passes, first)
            shown.append(dataclasses.replace(run, method=method, spec_hash=method + passes))
    assert "all pairs" not in passes_table(shown[:4])
    last = passes_table(shown).splitlines()[-1]
    cells = [cell.strip() for cell in last.split("|")[1:-1]]
    # 10, 0 and -10 points of accuracy; 20 less, as much and 20 more forgotten.
    assert cells[:5] == ["all pairs of runs", "3", "60.0 ± 0.0", "60.0 ± 10.0", "0.0 ± 10.0"]
    assert cells[5:8] == ["10.0 ± 0.0", "10.0 ± 20.0", "0.0 ± 20.0"]
    assert cells[8] == "0.0 ± 0.0"  # all of them knew each segment equally well when it ended


def test_weighing_tells_losses_from_contributions(runs: list[Record]) -> None:
    spec = '{"base":"er-p","options":{"step_size":20.0},"learner":%s,"optimizer":{"lr":0.05}}'
    kept = [
        dataclasses.replace(runs[0], spec=spec % learner)
        for learner in ("{}", '{"weighs":"contributions"}')
    ]
    kept.append(dataclasses.replace(runs[0], spec=(spec % "{}").replace("er-p", "er-c")))
    rows = weighing_table(kept).splitlines()[2:]
    assert [row.split("|")[2].strip() for row in rows] == ["contributions", "losses"]
    assert all(row.split("|")[3:5] == [" 0.05 ", " 20 "] for row in rows)


def test_readings_of_crs_stand_below_the_reservoir_they_are_tested_against(
    runs: list[Record],
) -> None:
    er = [record for record in runs if record.method == "er"][:3]
    older = [dataclasses.replace(record, memory=(point((5, 5), 3, 10.0),)) for record in er]
    younger = [dataclasses.replace(record, memory=(point((8, 2), 3, 4.0),)) for record in er]
    renamed = [
        dataclasses.replace(record, method=name, spec_hash=name)
        for name, memories in (
            ("er", older),
            ("s1-insertion", younger),
            ("er-lineage", younger),
            ("s1-insertion-lineage", older),
            ("s2-insertion", []),
        )
        for record in memories
    ]
    rows = [line.split(" | ") for line in crs_table(CIFAR, renamed).splitlines()[2:]]
    assert [row[0].strip("| ") for row in rows] == [
        "reservoir (ER)",
        "s1, MI at insertion",
        "reservoir (ER), lr 0.1, separate passes",
        "s1, MI at insertion, lr 0.1, separate passes",
    ]
    assert [row[2] for row in rows] == ["10", "4", "4", "10"]
    assert rows[1][3].startswith("\N{MINUS SIGN}6 [")
    assert rows[3][3].startswith("+6 [")
    assert len(crs_table(CIFAR, renamed, against=["er"]).splitlines()) == 2 + 2


def test_readings_of_a_method_say_which_segments_are_known(runs: list[Record]) -> None:
    first = next(record for record in runs if record.method == "er")
    known = [
        dataclasses.replace(
            as_cifar(first, "joint", share), method=name, spec_hash=name, correct=((9, 9), right)
        )
        for name, share, right in (
            ("er", 0, (4, 80)),
            ("s1-insertion", 0, (7, 91)),
            ("p-groups", 0, (4, 50)),
        )
    ]
    er, s1 = segments_table(CIFAR, known, "er-c").splitlines()[2:]
    assert er == "| ER | 1 | 42.0 |  | 5.0 |  | 9 80 | 4 80 |"
    less = "2.0 | \N{MINUS SIGN}3.0 one seed"
    assert s1 == f"| ER-C, s1, MI at insertion | 1 | 49.0 | +7.0 one seed | {less} | 9 91 | 7 91 |"
    _, grouped = segments_table(CIFAR, known, "er-p").splitlines()[2:]
    assert grouped.startswith("| ER-P, two groups | 1 | 27.0 |")
    both = segments_table(CIFAR, known, "er-p", "er-c").splitlines()[2:]
    assert both == [er, s1, grouped]


def test_the_picture_of_passes_is_drawn_with_what_there_is(
    runs: list[Record], tmp_path: Path
) -> None:
    er = [record for record in runs if record.method == "er"][:3]
    joint = [as_cifar(record, "joint", 40) for record in er]
    separate = [as_cifar(record, "separate", 20) for record in er]
    assert whole_lines(joint) == []  # nothing to stand beside
    (line,) = whole_lines([*joint, *separate])
    assert [cell is None for cell in line.runs.values()] == [False, False, True]
    assert line.runs["separate passes"].passes == "separate"  # type: ignore[union-attr]
    # Seeds that one of them lacks would make the difference of means one of streams.
    (line,) = whole_lines([*joint, *separate[1:]])
    assert [cell.seeds for cell in line.runs.values() if cell is not None] == [(1, 2), (1, 2)]
    path = tmp_path / "passes.png"
    pairs = [("ER", "er", "not run")]
    assert reading_lines(pairs, joint) == []
    draw_passes([PassesBlock("short", []), PassesBlock("whole", [line])], path)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_gains_are_the_papers_and_ours_of_a_joint_pass_and_the_lineages_of_separate_ones(
    runs: list[Record], tmp_path: Path
) -> None:
    er = [record for record in runs if record.method == "er"][:3]

    def both(passes: str, first: int) -> list[Record]:
        better = [dataclasses.replace(r, method="er-c", spec_hash="c") for r in er]
        return [as_cifar(r, passes, 20) for r in er] + [as_cifar(r, passes, first) for r in better]

    # 40 of 100 in one of two segments instead of 20: ten points; 30: five.
    tuned, lineage = compared(both("joint", 40)), compared(both("separate", 30))
    p, c, *_ = gains("cifar10-split", "accuracy", tuned, lineage)
    assert (p.label, p.tuned, p.lineage) == ("ER-P minus ER", None, None)
    assert p.theirs == pytest.approx(0.054)
    assert c.tuned is not None
    assert c.lineage is not None
    assert [c.tuned.mean, c.lineage.mean] == pytest.approx([0.1, 0.05])
    (*_, on_mir) = gains("mnist-permuted", "forgetting", tuned, lineage)
    assert on_mir.theirs == pytest.approx(-0.02)  # printed in Table 4, drawn without in Figure 2
    path = tmp_path / "gains.png"
    draw_gains(tuned, lineage, path)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_signs_are_set_against_each_other_at_the_same_rate(runs: list[Record]) -> None:
    er = [record for record in runs if record.method == "er"][:3]
    assert signs_table([]) == "not yet run"
    ends = {"er": 20, "ex": 30, "insertion-up": 20, "insertion-down": 20}
    ends |= {"replay-up": 10, "replay-down": 40}
    known = [
        dataclasses.replace(as_cifar(r, "joint", first), method=name + suffix, spec_hash=name)
        for suffix in ("", "-fast")
        for name, first in ends.items()
        for r in er
    ]
    ex, insertion, replay, *fast = signs_table(known).splitlines()[2:]
    assert ex.startswith("| 0.05 | never (EX alone) | 3 | 50.0 ± 0.0 | 55.0 ± 0.0 | +5.0 ")
    assert insertion.split(" | ")[8].startswith("0.0 ")
    minus = "\N{MINUS SIGN}"
    # 10 and 40 of 100 in one of two segments: 15 points apart, 5 below ER and 10 above.
    assert [entry.split()[0] for entry in replay.split(" | ")[4:9]] == [
        "45.0", f"{minus}5.0", "60.0", "+10.0", f"{minus}15.0"
    ]  # fmt: skip
    assert [line.split(" | ")[0] for line in fast] == ["| 0.1"] * 3
