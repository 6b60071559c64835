"""What the pages say of optimizers is what the records say, and those ran as the specs say."""

import pytest
from studies import document
from studies.optimizers import SGD, Runs, comparisons, found_runs
from studies.tables import signed

from recollect.experiments.records.record import Record
from recollect.experiments.specs.cell import cells
from recollect.experiments.specs.configs import config_root
from recollect.experiments.specs.spec import load_spec
from recollect.reports.cells import final_accuracy

RECORDS = document.optimizer_records()
SPECS = sorted((config_root() / "optimizers").glob("*.toml"))
PAGES = {
    name: " ".join((document.ROOT / "docs" / name).read_text().split())
    for name in ("optimizers.md", "pgd.md")
}
FOUND = found_runs("mnist-split", RECORDS)


def cells_of(optimizer_spec: str) -> list[Record]:
    spec = load_spec(config_root() / "optimizers" / optimizer_spec)
    hashes = {cell.spec_hash for cell in cells(spec, methods=list(spec.methods))}
    return [record for record in RECORDS if record.spec_hash in hashes]


def test_every_record_is_of_a_setting_that_its_search_chose() -> None:
    assert sum(len(cells_of(path.name)) for path in SPECS) == len(RECORDS)


def test_every_method_ran_on_thirty_seeds_that_no_other_table_used() -> None:
    others = [
        *document.records(),
        *document.lineage_records(),
        *document.faster_lineage_records(),
        *document.records_elsewhere(),
    ]
    assert max(record.seed for record in others) < 500
    assert len(FOUND) == 18
    for cell in FOUND.values():
        assert sorted(cell.by_seed(final_accuracy)) == list(range(500, 530))


@pytest.mark.parametrize(
    ("optimizer", "said"),
    [("Adam", "{} points to ER under Adam and"), ("momentum", "and {} with momentum")],
)
def test_the_page_of_pgd_says_what_a_weight_adds(optimizer: str, said: str) -> None:
    difference = comparisons(FOUND)[Runs(optimizer, "er-w"), Runs(optimizer, "er")]
    assert difference.is_certain
    assert difference.summary is not None
    assert said.format(signed(difference.summary)) in PAGES["pgd.md"]


def test_a_weight_alone_has_no_clear_effect_under_plain_sgd_and_pgd_adds_nothing_certain() -> None:
    compared = comparisons(FOUND)
    assert not compared[Runs(SGD, "er-w"), Runs(SGD, "er")].is_certain
    for optimizer in (SGD, "momentum", "Adam"):
        assert not compared[Runs(optimizer, "er-p"), Runs(optimizer, "er-w")].is_certain


def test_seeds_differ_more_than_twice_as_much_under_plain_sgd() -> None:
    plain, adam = (FOUND[Runs(o, "er")].summary(final_accuracy).sd for o in (SGD, "Adam"))
    assert plain is not None
    assert adam is not None
    assert plain > 2 * adam
    assert "more than twice that under Adam" in PAGES["optimizers.md"]
