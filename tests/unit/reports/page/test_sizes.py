"""Lines over memory sizes: which runs are joined, and what is drawn."""

import html
import json
import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from tests.unit.reports.test_cells import record_like

from recollect.errors import RecollectError
from recollect.experiments.records.record import Record
from recollect.paper.figures import compared_size_lines, draw_comparison
from recollect.paper.tables import compare, exhibit_named
from recollect.reports.cells import final_accuracy, group_cells
from recollect.reports.figures import write_figure
from recollect.reports.html import report_page
from recollect.reports.sizes import draw_sizes, size_lines


@pytest.fixture
def permuted(runs: list[Record]) -> list[Record]:
    """ER with 500 slots, ER-MIR and ER-PC-MIR with 500 and 100."""
    return [record for record in runs if record.benchmark == "mnist-permuted"]


def test_runs_that_differ_in_their_memory_alone_are_a_line(permuted: list[Record]) -> None:
    lines = size_lines(group_cells(permuted), final_accuracy)
    assert [line.label for line in lines] == ["ER-MIR", "ER-PC-MIR"]  # ER has one size
    assert all(sorted(line.ours) == [100, 500] for line in lines)
    small = [r for r in permuted if (r.method, r.capacity) == ("er-mir", 100)]
    mean = sum(final_accuracy(record) for record in small) / len(small)
    assert lines[0].ours[100].mean == pytest.approx(mean)
    assert lines[0].ours[100].n == 3


def test_another_setting_is_another_line(permuted: list[Record]) -> None:
    """Two learning rates at each size are two lines, not one that jumps between them."""
    own = [record for record in permuted if record.method == "er-mir"]
    others = []
    for record in own:
        spec = json.loads(record.spec)
        spec["optimizer"]["lr"] = 0.5
        others.append(
            record_like(record, spec_hash=f"other{record.capacity}", spec=json.dumps(spec))
        )
    lines = size_lines(group_cells([*own, *others]), final_accuracy)
    assert [sorted(line.ours) for line in lines] == [[100, 500], [100, 500]]
    assert {line.label.split(" · ")[0] for line in lines} == {"ER-MIR"}
    assert "ER-MIR · lr=0.5" in {line.label for line in lines}
    # A size that only one of them has lengthens that one.
    lines = size_lines(group_cells([*own, *others[:3]]), final_accuracy)
    assert [sorted(line.ours) for line in lines] == [[100, 500]]


def test_sizes_whose_settings_were_found_differently_are_one_line(permuted: list[Record]) -> None:
    told = [
        record_like(
            record,
            spec=json.dumps(
                json.loads(record.spec)
                | {"found": {"methods.er-mir": f"for {record.capacity}"}}
                | {"parts": {"rule": {"where": f"{record.capacity}/a.py:R", "sha256": "a" * 64}}}
            ),
        )
        for record in permuted
        if record.method == "er-mir"
    ]
    (line,) = size_lines(group_cells(told), final_accuracy)
    assert sorted(line.ours) == [100, 500]


def test_the_papers_numbers_stand_by_ours_and_alone_without_runs(permuted: list[Record]) -> None:
    cells = compare(exhibit_named("table3"), permuted).cells
    lines = compared_size_lines([c for c in cells if c.paper.benchmark == "mnist-permuted"])
    assert [(line.label, sorted(line.ours)) for line in lines] == [
        ("ER-MIR", [100, 500]),
        ("ER-PC-MIR", [100, 500]),
    ]
    assert [line.theirs[1000].mean for line in lines] == [82.7, 84.4]
    lines = compared_size_lines([c for c in cells if c.paper.benchmark == "cifar10-split"])
    assert [(line.label, len(line.ours)) for line in lines] == [("ER-MIR", 0), ("ER-PC-MIR", 0)]
    assert [line.theirs[100].mean for line in lines] == [22.0, 26.6]


def test_passes_are_lines_of_their_own_and_the_paper_is_drawn_once(permuted: list[Record]) -> None:
    cifar = [
        record_like(record, benchmark="cifar10-split", passes=passes, spec_hash=f"{n}{passes}")
        for n, record in enumerate(permuted)
        if record.method == "er-mir" and record.seed == 0
        for passes in ("joint", "separate")
    ]
    cells = compare(exhibit_named("table3"), cifar).cells
    lines = compared_size_lines(
        [c for c in cells if (c.paper.benchmark, c.paper.method) == ("cifar10-split", "er-mir")]
    )
    assert {line.label: len(line.theirs) for line in lines} == {
        "ER-MIR, separate passes": 4,
        "ER-MIR, joint pass": 0,
    }


def test_both_pictures_name_lines_and_seeds(permuted: list[Record], tmp_path: Path) -> None:
    own = write_figure(permuted, "sizes", tmp_path / "sizes.svg").read_text()
    assert "ER-PC-MIR (n=3)" in own
    assert "slots of the memory" in own
    table = draw_comparison(compare(exhibit_named("table4"), permuted), tmp_path / "table4.svg")
    assert "ER-PC-MIR, the paper" in table.read_text()


@pytest.mark.parametrize("num_seeds", [1, 2])
def test_a_mean_of_one_or_two_seeds_is_an_empty_dot_without_whiskers(
    permuted: list[Record], num_seeds: int
) -> None:
    own = [record for record in permuted if record.method == "er-mir"]
    few = [r for r in own if r.capacity == 500 or r.seed < num_seeds]
    panel = Figure().subplots()
    draw_sizes(panel, size_lines(group_cells(few), final_accuracy))
    empty = [line for line in panel.lines if line.get_markerfacecolor() == "white"]
    assert [np.asarray(line.get_xdata()).tolist() for line in empty] == [[100]]
    assert len(panel.containers) == 1  # whiskers of 500 slots alone


def test_one_size_is_nothing_to_draw(runs: list[Record], tmp_path: Path) -> None:
    split = [record for record in runs if record.benchmark == "mnist-split"]
    with pytest.raises(RecollectError, match=r"several memories.*--memory 100 --memory 500"):
        write_figure(split, "sizes", tmp_path / "sizes.png")


def test_the_page_has_a_chart_by_size_where_there_are_several(runs: list[Record]) -> None:
    page = report_page(runs)
    parts = dict(re.findall(r'id="(mnist-\w+)">(.*?)</section>', page))
    assert "By memory size" not in parts["mnist-split"]
    by_size = parts["mnist-permuted"].split("By memory size")[1].split("<h3>")[0]
    (accuracy, forgetting) = re.findall(r'data-plot="([^"]+)"', by_size)
    content = json.loads(html.unescape(accuracy))
    assert content["x"] == [100, 500]
    assert content["unit"] == "slots"
    small = [r for r in runs if (r.method, r.capacity) == ("er-mir", 100)]
    mean = sum(final_accuracy(record) for record in small) / len(small)
    assert content["series"][0]["label"] == "ER-MIR"
    assert content["series"][0]["shown"][0].startswith(f"{100 * mean:.1f} ± ")
    assert accuracy != forgetting
    assert "100 slots" in by_size


def test_sizes_that_methods_do_not_share_are_not_drawn_over_each_other(
    permuted: list[Record],
) -> None:
    moved = [
        record_like(record, capacity=900, spec_hash="moved")
        if (record.method, record.capacity) == ("er-mir", 100)
        else record
        for record in permuted
    ]
    assert "By memory size" not in report_page(moved)
