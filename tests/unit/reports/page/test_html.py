import base64
import dataclasses
import errno
import gzip
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.unit.reports.runs import many

from recollect.errors import RecollectError
from recollect.experiments.records.record import Record
from recollect.reports.cells import final_accuracy, group_cells
from recollect.reports.html import report_page, write_report
from recollect.reports.numbers import percent
from recollect.reports.page import parts
from recollect.reports.statistics import summarise


class Reader(HTMLParser):
    """Checks nesting and collects what is asked of a page."""

    VOID = ("meta", "link")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("style", "script"):
            self.text.append(data)


def changed(record: Record, **changes: object) -> Record:
    return dataclasses.replace(record, **changes)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def page(runs: list[Record]) -> str:
    return report_page(runs)


def test_every_tag_is_closed_in_order(page: str) -> None:
    assert Reader(page).open == []


def test_nothing_is_asked_of_a_network(page: str) -> None:
    read = Reader(page)
    addresses = [
        value
        for _, attributes in read.attributes
        for name, value in attributes.items()
        if name in ("src", "href", "action", "srcset", "poster") and value
    ]
    assert all(address.startswith(("#", "data:")) for address in addresses)
    outside = [a for a in re.findall(r"https?://[^\s\"']+", page) if "w3.org" not in a]
    assert outside == []
    assert "@import" not in page
    assert "url(" not in page


def test_a_page_stays_small(page: str) -> None:
    assert len(page) < 1_000_000


def test_the_same_records_give_the_same_page(runs: list[Record], page: str) -> None:
    assert report_page(list(reversed(runs))) == page


def test_means_and_intervals_are_those_of_the_statistics(runs: list[Record], page: str) -> None:
    own = [r for r in runs if (r.benchmark, r.method) == ("mnist-split", "er-mir")]
    summary = summarise([final_accuracy(record) for record in own])
    assert summary.half_width is not None
    assert f"{percent(summary.mean)} ± {percent(summary.half_width)} " in page


def test_every_run_has_its_spec_its_command_and_its_versions(runs: list[Record], page: str) -> None:
    for record in runs:
        assert page.count(f'data-copy="{record.command}"') == 1
    for cell in group_cells(runs):
        assert f"<code>{cell.spec_hash}</code>" in page
    assert f"torch {runs[0].versions['torch']}" in page
    assert "&quot;lr&quot;: 0.05" in page


def test_every_plot_says_what_it_is_and_carries_all_its_numbers(page: str) -> None:
    plots = [a for tag, a in Reader(page).attributes if tag == "div" and "data-plot" in a]
    assert len(plots) > 10
    for plot in plots:
        assert plot["role"] == "img"
        assert plot["aria-label"]
        content = json.loads(plot["data-plot"] or "")
        assert all(len(series["shown"]) == len(content["x"]) for series in content["series"])


def test_one_seed_is_said_to_have_no_interval(runs: list[Record]) -> None:
    page = report_page([record for record in runs if record.seed == 0])
    assert "one seed: no interval" in page
    assert "nothing can be said from one" in page
    assert Reader(page).open == []


def test_a_single_method_is_compared_with_nobody(runs: list[Record]) -> None:
    page = report_page([record for record in runs if record.method == "van"])
    assert "Differences are against" not in page
    assert "What the memory holds" not in page


def test_methods_without_common_seeds_are_not_compared(runs: list[Record]) -> None:
    split = [r for r in runs if r.benchmark == "mnist-split" and r.method in ("er", "er-p")]
    apart = [r for r in split if (r.method == "er") == (r.seed < 3)]
    page = report_page(apart)
    assert "no common seed" in page
    assert Reader(page).open == []


def test_the_finding_compares_memories_of_one_size_and_says_which(runs: list[Record]) -> None:
    """Three methods with 500 slots, two of them also with 1000, which no ER has."""
    permuted = [
        changed(r, capacity=1000, correct=(r.total,) * len(r.total)) if r.capacity == 100 else r
        for r in runs
        if r.benchmark == "mnist-permuted"
    ]
    page = report_page(permuted)
    (finding,) = re.findall(r'<ul class="findings"><li>(.*?)</li>', page)
    assert "Highest mean accuracy with 500 slots: ER-" in finding
    assert "1000 slots" not in finding
    assert re.search(r"ER(-\w+)* · 500 slots.*ER(-\w+)* · 500 slots", finding)
    assert '<option value="0" selected>ER · 500 slots</option>' in page


def test_passes_that_are_compared_are_said(runs: list[Record]) -> None:
    split = [r for r in runs if r.benchmark == "mnist-split"]
    apart = [changed(r, passes="separate", spec_hash="s") for r in split if r.method == "er"]
    assert "Highest mean accuracy with joint pass: " in report_page([*split, *apart])
    assert "Highest mean accuracy: " in report_page(split)


def test_failed_runs_are_listed_and_left_out(runs: list[Record]) -> None:
    failed = changed(runs[1], seed=77, status="failed", error="Boom <script>alert(1)</script>")
    page = report_page([*runs, failed])
    assert "1 failed" in page
    assert "Boom &lt;script&gt;" in page
    assert "<script>alert" not in page
    own = [r for r in runs if (r.benchmark, r.method) == ("mnist-split", "er")]
    assert f"{percent(summarise([final_accuracy(r) for r in own]).mean)} ±" in page


def test_only_failed_runs_still_make_a_page(runs: list[Record]) -> None:
    page = report_page([changed(runs[0], status="failed", error="Boom", correct=(), curve=())])
    assert "Boom" in page
    assert Reader(page).open == []


def test_hostile_names_stay_text(runs: list[Record]) -> None:
    evil = '"><img src=x onerror=alert(1)>'
    own = changed(runs[1], method=evil, benchmark=evil, command=evil, spec=evil, commit=evil)
    page = report_page([own])
    assert "<img" not in page
    assert Reader(page).open == []


def test_runs_without_curves_or_memories_make_a_page(runs: list[Record]) -> None:
    bare = [changed(record, curve=(), memory=()) for record in runs]
    page = report_page(bare)
    assert "Any-time accuracy</h3>" not in page
    assert "no curve" in page
    assert Reader(page).open == []


def test_validation_numbers_and_mixed_commits_are_said(runs: list[Record]) -> None:
    tuning = [changed(r, spec='{"evaluation":{"on":"validation"}}') for r in runs]
    assert "read on validation examples" in report_page(tuning)
    mixed = [changed(runs[1], commit="a"), changed(runs[9], commit="b")]
    assert {r.method for r in mixed} == {"er"}
    assert "Runs of several commits are averaged in ER" in report_page(mixed)
    assert "kinds of processor" not in report_page(mixed)


def test_runs_of_several_kinds_of_processor_are_said(runs: list[Record]) -> None:
    mixed = [changed(runs[1], machine={"cpu": "B"}), changed(runs[9], machine={"cpu": "A"})]
    assert "kinds of processor are compared here (A, B)" in report_page(mixed)


def test_a_report_is_written_whole_or_not_at_all(runs: list[Record], tmp_path: Path) -> None:
    path = write_report(runs[:2], tmp_path / "report.html")
    assert path.read_text().startswith("<!doctype html>")
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(RecollectError, match="is not a folder"):
        write_report(runs, tmp_path / "nowhere" / "report.html")
    with pytest.raises(RecollectError, match="0 records"):
        write_report([], tmp_path / "report.html")
    assert path.exists()


def test_the_first_error_of_a_page_that_cannot_be_written_comes_through(
    runs: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is full may refuse to tidy up as well; what it said first is what helps."""

    def full(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(Path, "write_bytes", full)
    monkeypatch.setattr(Path, "unlink", refused)
    with pytest.raises(OSError, match="No space left on device"):
        write_report(runs[:2], tmp_path / "report.html")


def test_a_page_that_cannot_take_its_place_leaves_nothing_behind(
    runs: list[Record], tmp_path: Path
) -> None:
    (tmp_path / "report.html").mkdir()
    with pytest.raises(IsADirectoryError):
        write_report(runs[:2], tmp_path / "report.html")
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_many_segments_and_classes_stay_readable(runs: list[Record]) -> None:
    """A run as long as MINI-S: 20 segments, 100 classes; real counts, repeated."""
    record = next(r for r in runs if r.method == "er" and r.benchmark == "mnist-split")
    row = tuple(record.correct[-1][i % 5] for i in range(20))
    long = changed(
        record,
        segment_names=tuple(f"s{i}" for i in range(20)),
        correct=tuple(row[: i + 1] for i in range(20)),
        total=tuple(record.total[i % 5] for i in range(20)),
        memory=tuple(
            dataclasses.replace(p, classes=tuple(range(100)), counts=(5,) * 100)
            for p in record.memory
        ),
    )
    page = report_page([long])
    assert 'class="heat dense"' in page
    assert "500 slots" in page
    assert Reader(page).open == []


def test_a_thousand_runs_make_a_page_below_three_megabytes(runs: list[Record]) -> None:
    page = report_page(many(runs, 1000))
    assert "1000 runs" in page
    assert len(page) < 3_000_000
    Reader(page)


def test_what_is_packed_is_what_a_small_page_says_plainly(
    runs: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    some = many(runs, 300)
    small = report_page(some)
    monkeypatch.setattr(parts, "_WORTH_PACKING", {"seen": 1e9, "opened": 1e9, "chosen": 1e9})
    plain = report_page(some)
    packed = re.compile(r'<div data-packed="([^"]*)" data-when="[a-z]*"></div>')
    assert len(packed.findall(small)) > 3
    unpacked = packed.sub(lambda m: gzip.decompress(base64.b64decode(m[1])).decode(), small)
    assert unpacked == plain
    assert report_page(some) == plain  # and again the same


def test_the_page_begins_with_a_sentence_about_each_benchmark(page: str) -> None:
    leads = re.findall(r'<p class="lead">([^<]*)</p>', page)
    assert len(leads) == 2
    for lead, title in zip(leads, ("MNIST-S", "MNIST-P"), strict=True):
        assert lead.startswith(f"On {title}")
        assert re.search(r"ends with \d+\.\d % of the test answers right", lead)
        assert re.search(r"(above|level with) [A-Z-]+: .*seeds", lead)
    assert page.index('class="lead"') < page.index('class="facts"')


def test_a_lead_names_the_size_once_where_sizes_differ(runs: list[Record]) -> None:
    on_split = [run for run in runs if run.benchmark == "mnist-split"]
    smaller = [changed(run, capacity=100, spec_hash="s" * 64) for run in on_split[:6]]
    (lead,) = re.findall(r'<p class="lead">([^<]*)</p>', report_page([*on_split, *smaller]))
    assert lead.count("slots") == 1


def test_single_runs_are_drawn_where_they_can_be_told_apart(runs: list[Record]) -> None:
    er = [run for run in runs if (run.benchmark, run.method) == ("mnist-split", "er")]
    assert report_page(er).count("<u ") > 0
    assert report_page([changed(er[0], seed=seed) for seed in range(41)]).count("<u ") == 0
