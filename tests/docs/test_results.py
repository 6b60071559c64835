"""What the documents say is what the committed records say, and the records can be made again."""

import json
import random
import re
from functools import cache
from pathlib import Path

import pytest
from studies import document, recalibrate
from studies.again import counts, drawn, is_same_kind_of_machine, made_again
from studies.any_time import Pair, pairs
from studies.choose import chosen, standings
from studies.claims import HELD, UNDECIDED, claims_table
from studies.kept import read_kept, read_rows
from studies.machines import NUM_FIRST
from studies.page import page
from studies.readings import CIFAR, CIFAR_GROUP_NORM, MINI_FIVE, MNIST
from studies.readings_mini_imagenet_split import PAIRS as MINI_PAIRS
from studies.settings import same_settings
from studies.space import FIRST_SEED, Study, load_study
from studies.tables import PAPER_METHODS, View, signed
from typer.testing import CliRunner

from recollect.cli import app
from recollect.experiments.cell import cells
from recollect.experiments.configs import config_root
from recollect.experiments.record import Record
from recollect.experiments.spec import load_spec
from recollect.reports.cells import (
    accuracy_just_learnt,
    final_accuracy,
    final_forgetting,
    flat_spec,
    group_cells,
)
from recollect.reports.numbers import percent, points
from recollect.reports.paper import compare
from recollect.reports.paper_numbers import EXHIBITS
from recollect.reports.statistics import paired_difference, summarise

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
STUDIES = sorted((RESULTS / "tuning").glob("*.parquet"))
PASSES = ("joint", "separate")
FIGURE_4 = ("er", "gss", "er-mir")  # beside VAN and ER-PC-MIR
READINGS = sorted((RESULTS / "readings").glob("*.parquet"))


@pytest.mark.parametrize("name", document.PAGES)
def test_a_page_says_what_the_records_say(name: str) -> None:
    text = (ROOT / name).read_text()
    assert text.count("<!-- begin: ") >= 1
    assert document.written(text, source=name) == text, "run python -m studies.document"


def test_the_document_has_the_tables_that_the_command_prints() -> None:
    words = ["paper", "all", "--store", str(RESULTS), "--no-run", "--format", "markdown"]
    printed = CliRunner().invoke(app, words)
    assert printed.exit_code == 0, printed.output
    assert printed.output.strip() in (ROOT / "docs" / "reproduction.md").read_text()


def test_links_of_the_document_lead_somewhere() -> None:
    page_path = ROOT / "docs" / "reproduction.md"
    linked = re.findall(r"\]\(([^)#]+)\)", page_path.read_text())
    assert linked
    assert [path for path in linked if not (page_path.parent / path).exists()] == []


@cache
def study_of(path: Path) -> Study:
    return load_study(ROOT / "studies" / f"{path.stem}.toml")


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_a_spec_has_the_settings_that_its_study_chose(path: Path) -> None:
    study, kept = study_of(path), read_kept(path)
    if study.config is None:  # it only looks, and no value may claim to be its choice
        specs = config_root().rglob("*.toml")
        assert [spec for spec in specs if f"studies.tune {study.name}:" in spec.read_text()] == []
        return
    spec = load_spec(config_root() / study.config)
    for method in study.trials:
        best = chosen(standings(study, method, kept))
        (cell,) = cells(spec, methods=[method])
        if best is None:  # the study goes on, and no value may claim to be its choice
            assert "studies.tune" not in cell.found.get(f"methods.{method}", "")
            continue
        assert same_settings(cell, best.trial.cell), method
        assert f"trial {best.trial.number}" in cell.found[f"methods.{method}"]


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_a_study_has_its_page(path: Path) -> None:
    study, kept = study_of(path), read_kept(path)
    found = {method: standings(study, method, kept) for method in study.trials}
    assert path.with_suffix(".md").read_text() == page(study, found, kept)
    assert path.with_suffix(".png").exists()


def test_tables_are_of_test_data_and_studies_of_other_seeds_and_validation_data() -> None:
    tables = document.records()
    assert {evaluated_on(record) for record in tables} == {"test"}
    assert max(record.seed for record in tables) < FIRST_SEED
    for path in (*STUDIES, *READINGS):
        studied = read_kept(path).values()
        assert {evaluated_on(record) for record in studied} == {"validation"}
        assert min(record.seed for record in studied) >= FIRST_SEED


def test_fresh_seeds_alone_change_the_verdicts_the_page_names_and_no_other() -> None:
    fresh = [r for r in document.records() if r.seed >= NUM_FIRST and r.benchmark == "mnist-split"]
    alone = [compare(exhibit, fresh) for exhibit in EXHIBITS.values()]
    verdicts = [
        {
            statement: verdict
            for _, statement, where, verdict, *_ in (
                [cell.strip() for cell in line.split("|")] for line in table.splitlines()
            )
            if where == "MNIST-S"
        }
        for table in (claims_table(document.comparisons()), claims_table(alone))
    ]
    everything, of_fresh = verdicts
    assert len(everything) == 13
    changed = [said for said in everything if everything[said] != of_fresh[said]]
    assert [said.partition(" (")[0].partition(":")[0] for said in changed] == [
        "ER-PC-MIR is more accurate than ER-MIR",
        "ER-PC-MIR has the best accuracy",
    ]
    for said in changed:
        assert (everything[said], of_fresh[said]) == (HELD, UNDECIDED)


def test_recalibrated_runs_are_those_of_the_readings() -> None:
    readings = {(r.spec_hash, r.seed): r for r in CIFAR.records()}
    rows = read_rows(recalibrate.KEPT)
    assert rows
    for row in rows:
        record = readings[row["spec_hash"], row["seed"]]
        assert evaluated_on(record) == "validation"
        if row["machine"]["cpu"] == record.machine["cpu"]:  # rounding differs between processors
            assert tuple(row["correct"]) == record.correct[-1]


def evaluated_on(record: Record) -> str:
    on: str = json.loads(record.spec)["evaluation"]["on"]
    return on


def test_records_of_mnist_are_made_again_bit_for_bit() -> None:
    # `python -m studies.again mnist-split` draws others each time.
    everywhere = [
        *document.records(),
        *document.lineage_records(),
        *document.faster_lineage_records(),
        *MNIST.records(),
    ]
    records = [r for r in everywhere if r.benchmark.startswith("mnist")]
    # Rounding differs between processors and versions of torch.
    records = [record for record in records if is_same_kind_of_machine(record)]
    if not records:
        pytest.skip("no record was made on this kind of machine")
    for record in drawn(records, 2, random.Random("two records")):
        assert counts(made_again(record)) == counts(record)


def test_the_page_says_of_crs_on_cifar_what_the_records_say() -> None:
    page = (document.ROOT / "docs" / "reproduction.md").read_text()
    found = View("cifar10-split", "separate").cells(document.lineage_records())
    plain, crs = (found[method].by_seed(final_accuracy) for method in ("er", "er-c"))
    gains = [points(crs[seed] - plain[seed]) for seed in sorted(crs)]
    assert f"{', '.join(gains[:-1])} and {gains[-1]}:" in page
    joint = View("cifar10-split", "joint").cells(document.records())
    tuned, replayed = (joint[method].by_seed(final_accuracy) for method in ("er", "er-c-replay"))
    gains = [points(replayed[seed] - tuned[seed]) for seed in sorted(replayed)]
    assert f"{', '.join(gains[:-1])} and {gains[-1]}:" in page
    pgd = found["er-p"].by_seed(final_accuracy)
    gains = [points(pgd[seed] - plain[seed]) for seed in sorted(pgd)]
    assert f"{gains[0].strip('+')} points\nabove it on the first seed" in page
    below = sorted(gain.strip("\N{MINUS SIGN}") for gain in gains[1:5])
    assert f"{below[0]} to {below[-1]} below it on each of the next four" in page
    above = [gain.strip("+") for gain in gains[5:7]]
    assert f"{above[0]} and {above[1]} above it on two more" in page
    assert f"and {gains[7]}, {gains[8]} and {gains[9]} from it on the last three" in page
    slots = {
        method: sorted(run.memory[-1].counts[0] for run in found[method].records)
        for method in ("er", "er-c")
    }
    half = slots["er-c"][len(slots["er-c"]) // 2 :]
    assert f"in half of the runs the first class holds {half[0]} to {half[-1]} of" in page
    assert f"a reservoir gives it {slots['er'][0]} to {slots['er'][-1]}." in page


def test_the_page_says_of_the_way_what_the_records_say() -> None:
    page = (document.ROOT / "docs" / "reproduction.md").read_text()
    found = {
        (benchmark, pair.is_lineage, *names): pair
        for benchmark in ("mnist-split", "mnist-permuted", "cifar10-split")
        for names, pair in pairs(benchmark, document.records(), document.lineage_records())
    }
    early = found["mnist-permuted", False, "er-p", "er"]
    assert 0.095 < early.over_time()[500].mean < 0.105
    assert "Ten points after the first 500 examples" in page
    rates = {flat_spec(cell.records[0])["optimizer.lr"] for cell in (early.one, early.other)}
    assert len(rates) == 1
    assert f"it is {on_the_way(early)}, certainly there" in page
    at_the_lineages = on_the_way(found["mnist-permuted", True, "er-p", "er"])
    assert f"at the lineage's rate {at_the_lineages.split()[0]}." in page
    clipped = on_the_way(found["mnist-permuted", False, "er-clip", "er"])
    assert f"ER-CLIP gains {clipped.split()[0]} so" in page
    pgd = found["mnist-split", False, "er-p", "er"]
    both = found["mnist-split", False, "er-pc-mir", "er-mir"]
    lost = [points(-pair.over_time()[1250].mean).strip("+") for pair in (pgd, both)]
    assert f"{lost[0]} points after the first quarter of the second segment" in page
    assert f"and {lost[1]} for ER-PC-MIR against ER-MIR" in page
    assert f"leaves ER-P {on_the_way(pgd).split()[0]} of its 2.7 points" in page
    assert both.on_the_way.summary is not None
    assert f"a certain {signed(both.on_the_way.summary)}" in page
    crs = found["cifar10-split", True, "er-c", "er"]
    assert f"are {on_the_way(crs).replace(' points', '')} over the stream" in page
    until = [summary for seen, summary in crs.over_time().items() if seen < 48750 * 2 / 3]
    assert all(summary.low is not None and summary.low < 0 for summary in until)


def on_the_way(pair: Pair) -> str:
    summary = pair.on_the_way.summary
    assert summary is not None
    assert summary.low is not None
    assert summary.high is not None
    mean, low, high = (
        points(value).strip("+") for value in (summary.mean, summary.low, summary.high)
    )
    return f"{mean} points [{low}, {high}]"


def test_the_page_counts_in_how_many_pairs_a_joint_pass_knew_more_just_learnt() -> None:
    joint, separate = (View("cifar10-split", p).cells(document.records()) for p in PASSES)
    more = [
        theirs < joint[method].by_seed(accuracy_just_learnt)[seed]
        for method, cell in separate.items()
        if method in PAPER_METHODS and method != "van"
        for seed, theirs in cell.by_seed(accuracy_just_learnt).items()
        if seed in joint[method].seeds
    ]
    text = (ROOT / "docs" / "batch-norm.md").read_text()
    assert (len(more), sum(more)) == (11, 10), "the words eleven and ten of the page are these"
    assert text.count("eleven pairs of runs") == 2
    assert "in ten of the eleven pairs more" in text


def test_the_page_says_of_passes_on_mini_imagenet_what_the_records_say() -> None:
    found = {cell.method: cell for cell in group_cells(MINI_FIVE.records())}
    pairs = [(found[one], found[two]) for _, one, two in MINI_PAIRS if {one, two} <= found.keys()]
    assert [(one.seeds, two.seeds) for one, two in pairs] == [((3000,), (3000,))] * 7
    text = (ROOT / "docs" / "batch-norm.md").read_text()
    at_the_end, just_learnt = (
        [metric(one.records[0]) - metric(two.records[0]) for one, two in pairs]
        for metric in (final_accuracy, accuracy_just_learnt)
    )
    summary = summarise(at_the_end)
    assert summary.sd is not None
    told = f"{points(summary.mean)} ± {percent(summary.sd)} over seven pairs"
    assert told in text
    assert told.replace(" over", " points over") in (ROOT / "README.md").read_text()
    low, high = (points(end).strip("+\N{MINUS SIGN}") for end in (min(at_the_end), max(at_the_end)))
    assert f"from {low} points below to {high} above" in text
    assert sum(gain > 0 for gain in just_learnt) == 5, "the page says five of the seven"
    assert "in five of the seven, by" in text
    assert f"by {points(summarise(just_learnt).mean).strip('+')} points on average" in text
    for name in ("er-p", "er-pc"):
        for passes in ("", "-separate"):
            pgd, plain = (found[f"{method}{passes}"].records[0] for method in (name, "er"))
            assert final_accuracy(pgd) > final_accuracy(plain)
            assert -0.155 < final_forgetting(pgd) - final_forgetting(plain) < -0.095
    joint, separate = (
        points(final_accuracy(found[f"er-pc-mir{p}"].records[0]) - final_accuracy(mir.records[0]))
        for p, mir in (("", found["er-mir"]), ("-separate", found["er-mir-separate"]))
    )
    below = separate.strip("\N{MINUS SIGN}")
    assert f"{joint.strip('+')} points above it with a joint pass and {below} below it" in text
    known = {method: percent(final_accuracy(cell.records[0])) for method, cell in found.items()}
    bars = [f"{title} {known[name]}" for title, name, _ in MINI_PAIRS if name in FIGURE_4]
    page = (ROOT / "docs" / "reproduction.md").read_text()
    assert f"({known['er-pc-mir']}; VAN {known['van']}, {', '.join(bars)})" in page
    assert f"({known['er-mir-separate']} and {known['er-pc-mir-separate']})" in page


def test_the_page_says_of_group_norm_beside_batch_norm_what_the_records_say() -> None:
    page = (ROOT / "docs" / "batch-norm.md").read_text()
    group, batch = (
        {cell.method: cell.by_seed(final_accuracy) for cell in group_cells(study.records())}
        for study in (CIFAR_GROUP_NORM, CIFAR)
    )
    for first, second, words in (
        (batch["er"], group["er"], "below ER with BatchNorm and a joint pass"),
        (group["er"], batch["er-separate"], "above it with separate passes"),
    ):
        summary = paired_difference(first, second).summary
        assert summary is not None
        assert summary.n == 4
        assert summary.low is not None
        assert summary.high is not None
        mean, *ends = (
            points(value).strip("+") for value in (summary.mean, summary.low, summary.high)
        )
        assert re.search(rf"{mean} (points )?\[{', '.join(ends)}\] {words}", page)
