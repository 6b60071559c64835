"""What the documents say is what the committed records say, and the records can be made again."""

import json
import random
from functools import cache
from pathlib import Path

import pytest
from studies import document
from studies.batch_norm import recalibrate
from studies.gains.claims import HELD, UNDECIDED, claims_table
from studies.kept import read_kept, read_rows
from studies.machines.again import counts, drawn, is_same_kind_of_machine, made_again
from studies.machines.machines import NUM_FIRST
from studies.readings.studies import CIFAR, MNIST
from studies.tuning.committed import all_standings, committed_runs, committed_study
from studies.tuning.settings import same_settings
from typer.testing import CliRunner

from recollect.cli import app
from recollect.experiments.records.record import Record
from recollect.experiments.specs.cell import Cell, cells
from recollect.experiments.specs.configs import config_root
from recollect.experiments.specs.spec import load_spec
from recollect.experiments.tuning.choose import chosen
from recollect.experiments.tuning.study import FIRST_SEED, Study
from recollect.paper.numbers import EXHIBITS
from recollect.paper.tables import compare
from recollect.reports.tuning.markdown import markdown_page

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results"
STUDIES = sorted((RESULTS / "tuning").glob("*.parquet"))
PASSES = ("joint", "separate")
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
    assert printed.output.strip() == f"{document.paper('table')}\n\n{document.paper('figure')}"


@cache
def study_of(path: Path) -> Study:
    return committed_study(path.stem)


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_a_spec_has_the_settings_that_its_study_chose(path: Path) -> None:
    study, kept = study_of(path), committed_runs(path.stem)
    if study.config is None:  # it only looks, and no value may claim to be its choice
        specs = config_root().rglob("*.toml")
        assert [spec for spec in specs if f"studies.tune {study.name}:" in spec.read_text()] == []
        return
    spec = load_spec(config_root() / study.config)
    for method in study.trials:
        best = chosen(all_standings(study, kept)[method])
        (cell,) = cells(spec, methods=[method])
        if best is None:  # the study goes on, and no value may claim to be its choice
            assert "studies.tune" not in cell.found.get(f"methods.{method}", "")
            continue
        record = kept[best.trial.spec_hash, study.budget.first_seeds[0]]
        assert same_settings(cell, Cell.from_json(record.spec)), method
        assert f"trial {best.trial.number}" in cell.found[f"methods.{method}"]


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_a_study_has_its_page(path: Path) -> None:
    study, kept = study_of(path), committed_runs(path.stem)
    page = markdown_page(study, all_standings(study, kept), kept)
    assert path.with_suffix(".md").read_text() == page
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
    # `python -m studies.machines.again mnist-split` draws others each time.
    everywhere = [
        *document.records(),
        *document.lineage_records(),
        *document.faster_lineage_records(),
        *MNIST.records(),
        *document.optimizer_records(),
    ]
    records = [r for r in everywhere if r.benchmark.startswith("mnist")]
    # Rounding differs between processors and versions of torch.
    records = [record for record in records if is_same_kind_of_machine(record)]
    if not records:
        pytest.skip("no record was made on this kind of machine")
    for record in drawn(records, 2, random.Random("two records")):
        assert counts(made_again(record)) == counts(record)
