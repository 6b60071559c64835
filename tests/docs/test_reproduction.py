"""The page about the paper and its appendices: short, linked, and true to the records.

Tables are made by `studies.document`, which `test_results.py` holds them to. Here is the prose
between them: what it says is looked up in the records, and it has no decimals of its own.
"""

import math
import re
from functools import cache
from pathlib import Path

import pytest
from scipy import stats
from studies import document
from studies.gains.any_time import Pair, pairs
from studies.gains.claims import glance_table
from studies.machines.machines import NUM_FIRST
from studies.readings.mini_imagenet_split import PAIRS
from studies.readings.studies import CIFAR, CIFAR_GROUP_NORM, MINI_FIVE
from studies.tables import PAPER_METHODS, View

from recollect.reports.cells import (
    CellRuns,
    accuracy_just_learnt,
    final_accuracy,
    final_forgetting,
    group_cells,
)
from recollect.reports.statistics import paired_difference, summarise

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "reproduction.md"
MAIN_PAGES = (PAGE, DOCS / "batch-norm.md", DOCS / "crs.md")
APPENDICES = sorted((DOCS / "appendix").glob("*.md"))
_MADE = re.compile(r"<!-- begin: ([a-z0-9-]+) -->\n(.*?)<!-- end: \1 -->", re.DOTALL)

# Decimals that are no results: versions, learning rates, and a section of the paper.
_SETTINGS = {"3.11", "2.13", "0.05", "0.1", "0.11", "0.12", "2.4", "0.01"}


def test_the_page_has_at_most_200_lines() -> None:
    assert len(PAGE.read_text().splitlines()) <= 200


@pytest.mark.parametrize("page", APPENDICES, ids=lambda page: page.stem)
def test_an_appendix_has_at_most_300_lines_and_a_page_links_to_it(page: Path) -> None:
    assert len(page.read_text().splitlines()) <= 300
    assert any(f"](appendix/{page.name}" in main.read_text() for main in MAIN_PAGES)


@pytest.mark.parametrize("page", [*MAIN_PAGES, *APPENDICES], ids=lambda page: page.stem)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    linked = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text())
    assert linked
    assert [path for path in linked if not (page.parent / path).exists()] == []


@pytest.mark.parametrize("page", [*MAIN_PAGES, *APPENDICES], ids=lambda page: page.stem)
def test_a_decimal_in_prose_stands_in_a_table_of_the_page_too(page: Path) -> None:
    text = page.read_text()
    made = "".join(match[2] for match in _MADE.finditer(text))
    text = re.sub(
        r"^\| \d+ \| .* of .*$", "", text, flags=re.MULTILINE
    )  # printed by studies.machines.rounding
    prose = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)", "", _MADE.sub("", text), flags=re.DOTALL)
    decimals = set(re.findall(r"\d+\.\d+", prose))
    assert decimals - set(re.findall(r"\d+\.\d+", made)) <= _SETTINGS


@cache
def verdicts() -> dict[str, list[str]]:
    """Return the table at a glance: the verdicts of a claim, column by column."""
    table = glance_table(document.comparisons(), document.lineage_comparisons())
    rows = [[entry.strip() for entry in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
    return {text: [re.sub(r"[:(].*", "", v).strip(" *") for v in found] for text, *found in rows}


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        # Columns: MNIST-S, at MIR's rate; MNIST-P, at MIR's rate; CIFAR10-S, at MIR's rate.
        (
            "PGD improves the accuracy of ER",
            ["held", "held", "not held**, smaller", "held", "open", "not held**, smaller"],
        ),
        (
            "CRS improves the accuracy of ER",
            ["not held**, reversed", "open", "open", "open", "open", "held"],
        ),
        (
            "ER-PC-MIR is more accurate than ER-MIR",
            ["held", "open", "not held**, smaller", "not held**, smaller", "open", "no runs"],
        ),
    ],
    ids=["PGD", "CRS", "both on MIR"],
)
def test_the_answer_in_words_rests_on_these_verdicts(claim: str, expected: list[str]) -> None:
    # If one of them changes, rewrite "The answer" of reproduction.md and its first paragraph.
    assert verdicts()[claim][:6] == expected


def test_crs_at_mirs_rate_gains_more_than_half_of_the_papers_gain_and_less_than_all() -> None:
    assert 0.078 / 2 < gain(lineage_cifar(), "er-c", "er") < 0.078


@cache
def lineage_cifar() -> dict[str, CellRuns]:
    return View("cifar10-split", "separate").cells(document.lineage_records())


def by_seed(cells: dict[str, CellRuns], method: str, baseline: str) -> list[float]:
    one, other = (cells[name].by_seed(final_accuracy) for name in (method, baseline))
    return [one[seed] - other[seed] for seed in sorted(one.keys() & other.keys())]


def gain(cells: dict[str, CellRuns], method: str, baseline: str) -> float:
    gains = by_seed(cells, method, baseline)
    return math.fsum(gains) / len(gains)


def test_on_cifar_pgds_first_seed_gains_as_in_the_paper_the_next_four_lose_and_two_gain() -> None:
    first, *rest = by_seed(lineage_cifar(), "er-p", "er")
    assert abs(first - 0.054) < 0.002
    assert max(rest[:4]) < 0 < min(rest[4:6])


def test_on_cifar_both_parts_together_are_above_er_at_each_of_four_seeds() -> None:
    gains = by_seed(lineage_cifar(), "er-pc", "er")
    assert len(gains) == 4
    assert min(gains) > 0


def test_a_run_of_cifar_takes_7_to_38_minutes() -> None:
    cells = View("cifar10-split", "joint").cells(document.records())
    medians = [
        sorted(run.cpu_seconds for run in cell.records)[len(cell.records) // 2] / 60
        for cell in cells.values()
    ]
    assert (round(min(medians)), round(max(medians))) == (7, 38)


def test_seeds_of_mnist_are_of_the_processors_that_the_limits_name() -> None:
    clipped = {"er-w", "er-clip", "er-w-mir", "er-clip-mir"}
    for benchmark in ("mnist-split", "mnist-permuted"):
        runs = [r for r in document.records() if r.benchmark == benchmark]
        first = {
            r.machine["cpu"].split("(")[0].split()[0]
            for r in runs
            if r.seed < NUM_FIRST and r.method not in clipped
        }
        fresh = {
            r.machine["cpu"].split("(")[0].split()[0]
            for r in runs
            if r.seed >= NUM_FIRST or r.method in clipped
        }
        assert (first, fresh) == ({"Intel"}, {"AMD"})


@cache
def over_time() -> dict[tuple[str, bool, str, str], Pair]:
    return {
        (benchmark, pair.is_lineage, *names): pair
        for benchmark in ("mnist-split", "mnist-permuted", "cifar10-split")
        for names, pair in pairs(benchmark, document.records(), document.lineage_records())
    }


def test_on_mnist_p_pgd_gains_ten_points_early_and_nothing_at_the_end() -> None:
    found = over_time()["mnist-permuted", False, "er-p", "er"].over_time()
    assert round(100 * found[500].mean) == 10
    at_the_end = found[max(found)]
    assert at_the_end.low is not None
    assert at_the_end.high is not None
    assert at_the_end.low < 0 < at_the_end.high


def test_on_mnist_s_pgd_costs_when_classes_have_just_come_and_both_on_mir_cost_more() -> None:
    pgd = over_time()["mnist-split", False, "er-p", "er"].over_time()[1250]
    both = over_time()["mnist-split", False, "er-pc-mir", "er-mir"].over_time()[1250]
    assert both.mean < pgd.mean < 0


def test_on_cifar_crs_shows_nothing_until_two_thirds_of_the_stream_are_over() -> None:
    found = over_time()["cifar10-split", True, "er-c", "er"].over_time()
    until = [summary for seen, summary in found.items() if seen < 48750 * 2 / 3]
    assert until
    assert all(summary.low is not None and summary.low < 0 for summary in until)


def test_a_spread_from_five_seeds_is_known_within_the_factor_that_the_page_says() -> None:
    low, high = (math.sqrt(4 / stats.chi2.ppf(share, 4)) for share in (0.975, 0.025))
    assert (
        f"within a factor of {low:.1f} to {high:.1f}"
        in (DOCS / "appendix" / "seeds.md").read_text()
    )


def test_in_ten_of_eleven_pairs_a_joint_pass_knew_more_of_each_segment_just_learnt() -> None:
    joint, separate = (
        View("cifar10-split", passes).cells(document.records()) for passes in ("joint", "separate")
    )
    more = [
        theirs < joint[method].by_seed(accuracy_just_learnt)[seed]
        for method, cell in separate.items()
        if method in PAPER_METHODS and method != "van"
        for seed, theirs in cell.by_seed(accuracy_just_learnt).items()
        if seed in joint[method].seeds
    ]
    assert (len(more), sum(more)) == (11, 10), "batch-norm.md says ten of eleven"


@cache
def five() -> dict[str, CellRuns]:
    return {cell.method: cell for cell in group_cells(MINI_FIVE.records())}


def test_on_mini_neither_way_of_passing_is_ahead_and_five_of_seven_pairs_knew_more() -> None:
    found = [(five()[one], five()[two]) for _, one, two in PAIRS if {one, two} <= five().keys()]
    assert [(one.seeds, two.seeds) for one, two in found] == [((3000,), (3000,))] * 7
    at_the_end, just_learnt = (
        [metric(one.records[0]) - metric(two.records[0]) for one, two in found]
        for metric in (final_accuracy, accuracy_just_learnt)
    )
    summary = summarise(at_the_end)
    assert summary.low is not None
    assert summary.high is not None
    assert summary.low < 0 < summary.high
    assert sum(gain > 0 for gain in just_learnt) == 5, "batch-norm-passes.md says five of seven"


@pytest.mark.parametrize("passes", ["", "-separate"])
@pytest.mark.parametrize("method", ["er-p", "er-pc"])
def test_on_mini_pgd_is_above_its_er_and_forgets_less(method: str, passes: str) -> None:
    pgd, plain = (five()[f"{name}{passes}"].records[0] for name in (method, "er"))
    assert final_accuracy(pgd) > final_accuracy(plain)
    assert final_forgetting(pgd) < final_forgetting(plain)


def test_on_mini_both_parts_on_mir_are_above_it_with_a_joint_pass_and_below_with_two() -> None:
    joint, separate = (
        final_accuracy(five()[f"er-pc-mir{p}"].records[0])
        - final_accuracy(five()[f"er-mir{p}"].records[0])
        for p in ("", "-separate")
    )
    assert separate < 0 < joint


def test_er_under_group_norm_is_below_a_joint_er_and_not_certainly_apart_from_separate() -> None:
    group, batch = (
        {cell.method: cell.by_seed(final_accuracy) for cell in group_cells(study.records())}
        for study in (CIFAR_GROUP_NORM, CIFAR)
    )
    joint, separate = (
        paired_difference(group["er"], batch[name]).summary for name in ("er", "er-separate")
    )
    assert joint is not None
    assert separate is not None
    assert joint.n == separate.n == 4
    assert joint.high is not None
    assert joint.high < 0
    assert separate.low is not None
    assert separate.high is not None
    assert separate.low < 0 < separate.high
