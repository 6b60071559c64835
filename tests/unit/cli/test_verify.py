import dataclasses
from pathlib import Path

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from tests.unit.reports.runs import read_runs
from typer.testing import CliRunner, Result

from recollect.cli import app
from recollect.errors import RecollectError
from recollect.experiments.records.columns import to_table
from recollect.experiments.records.record import Record
from recollect.experiments.records.store import Store
from recollect.experiments.running.execute import Stopped, execute
from recollect.experiments.specs.cell import cells
from recollect.experiments.specs.request import Request, requests
from recollect.experiments.specs.spec import load_spec

SMALL = """
benchmark = "mnist-split"
memory = [20]
[stream]
examples_per_segment = 40
validation_per_segment = 20
[evaluation]
on = "validation"
[methods.er]
"""


@pytest.fixture
def request_0(tmp_path: Path) -> Request:
    (tmp_path / "small.toml").write_text(SMALL)
    return requests(cells(load_spec(tmp_path / "small.toml")), [0])[0]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "store")
    made.prepare()
    return made


@pytest.fixture
def record() -> Record:
    return read_runs()[0]


def verify(store: Store) -> Result:
    return CliRunner().invoke(app, ["verify", str(store.root)])


def test_a_whole_store_is_as_written(store: Store, record: Record, request_0: Request) -> None:
    store.add(request_0, dataclasses.replace(record, schema_version=2))
    with pytest.raises(Stopped):
        execute(
            dataclasses.replace(request_0, seed=1),
            checkpoints=store.checkpoint_folder(request_0),
            should_stop=lambda: True,
        )
    ended = verify(store)
    assert (ended.exit_code, ended.output) == (0, "1 record and 1 checkpoint as written\n")


def test_records_without_a_digest_are_named(
    store: Store, record: Record, request_0: Request
) -> None:
    old = dataclasses.replace(record, schema_version=1)
    path = store.add(request_0, old)
    pq.write_table(to_table(old, old).replace_schema_metadata(), path)
    ended = verify(store)
    assert ended.exit_code == 0
    assert f"without digest  {path} (2 records)" in ended.output
    assert "2 records without a digest, from before records had one" in ended.output


def test_damaged_records_and_checkpoints_are_named_and_end_with_an_error(
    store: Store, record: Record, request_0: Request
) -> None:
    place = store.checkpoint_folder(request_0)
    with pytest.raises(Stopped):
        execute(request_0, checkpoints=place, should_stop=lambda: True)
    (learner,) = place.glob("*.ckpt")
    learner.write_bytes(learner.read_bytes()[:-1])
    path = store.add(request_0, record)
    path.write_bytes(path.read_bytes()[:-1])
    ended = verify(store)
    assert isinstance(ended.exception, RecollectError)
    assert "2 damaged, see above" in str(ended.exception)
    assert f"damaged         `{path}` cannot be read" in ended.output
    assert f"damaged         `{place}`: `{learner}` is truncated" in ended.output


def test_the_committed_records_can_be_read() -> None:
    ended = verify(Store(Path(__file__).parents[3] / "results" / "another-machine"))
    assert ended.exit_code == 0
    assert " records" in ended.output
    assert "damaged" not in ended.output


def test_a_store_that_is_not_there_is_said(tmp_path: Path) -> None:
    ended = verify(Store(tmp_path / "nowhere"))
    assert isinstance(ended.exception, RecollectError)
    assert "is not a folder; give one that `recollect run` wrote to" in str(ended.exception)
