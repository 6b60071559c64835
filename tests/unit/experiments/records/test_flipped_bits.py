"""One flipped bit anywhere in what a store keeps is noticed, or has changed nothing."""

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from tests.unit.flipping import PARTS, silent_flips

from recollect.errors import StoreError
from recollect.experiments.records.columns import to_table
from recollect.experiments.records.record import Record
from recollect.experiments.records.store import Store
from recollect.experiments.running.execute import execute
from recollect.experiments.specs.request import Request

RequestFor = Callable[..., Request]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "store")
    made.prepare()
    return made


@pytest.fixture(scope="module")
def made() -> dict[str, Record]:
    return {}


@pytest.fixture
def record(made: dict[str, Record], request_for: RequestFor) -> Record:
    if not made:
        made["er"] = execute(request_for())
    return made["er"]


@pytest.mark.parametrize("part", PARTS)
def test_no_flipped_bit_of_a_record_passes(
    part: int, store: Store, record: Record, request_for: RequestFor
) -> None:
    path = store.add(request_for(), record)
    assert silent_flips(path, part, store.records, StoreError) == []


@pytest.mark.parametrize("part", PARTS)
def test_no_flipped_bit_of_packed_records_passes(
    part: int, store: Store, record: Record, request_for: RequestFor
) -> None:
    for seed in range(3):
        store.add(request_for(seed=seed), dataclasses.replace(record, seed=seed))
    (path,) = store.pack()
    assert silent_flips(path, part, store.records, StoreError) == []


def test_a_record_with_another_number_under_its_digest_is_refused(
    store: Store, record: Record, request_for: RequestFor
) -> None:
    path = store.add(request_for(), record)
    other = to_table(dataclasses.replace(record, prequential_correct=7))
    kept = to_table(record).schema.metadata
    pq.write_table(other.replace_schema_metadata(kept), path)
    with pytest.raises(StoreError, match=r"s0\.parquet`: .* altered .* digest of a row differs"):
        store.records()


def test_a_record_of_this_layout_without_its_digest_is_refused(
    store: Store, record: Record, request_for: RequestFor
) -> None:
    path = store.add(request_for(), record)
    pq.write_table(to_table(record).replace_schema_metadata(), path)
    with pytest.raises(StoreError, match="its digests are gone"):
        store.records()


def test_a_file_without_rows_is_refused(
    store: Store, record: Record, request_for: RequestFor
) -> None:
    path = store.add(request_for(), record)
    pq.write_table(to_table(record).slice(0, 0), path)
    with pytest.raises(StoreError, match="holds no record"):
        store.record(request_for())


def test_a_packed_file_that_lost_a_row_is_refused(
    store: Store, record: Record, request_for: RequestFor
) -> None:
    both = to_table(record, dataclasses.replace(record, seed=1))
    path = store.add(request_for(), record)
    pq.write_table(both.slice(0, 1), path)
    with pytest.raises(StoreError, match="altered"):
        store.records()


def test_a_record_of_the_first_layout_is_read_without_a_digest(
    store: Store, record: Record, request_for: RequestFor
) -> None:
    old = dataclasses.replace(record, schema_version=1)
    path = store.add(request_for(), record)
    pq.write_table(to_table(old).replace_schema_metadata(), path)
    assert store.records() == [old]


def test_packing_gives_records_of_the_first_layout_a_digest(
    store: Store, record: Record, request_for: RequestFor
) -> None:
    old = dataclasses.replace(record, schema_version=1)
    pq.write_table(to_table(old).replace_schema_metadata(), store.add(request_for(), record))
    (packed,) = store.pack()
    assert store.records() == [old]
    assert silent_flips(packed, 0, store.records, StoreError) == []
