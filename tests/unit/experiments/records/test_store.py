import dataclasses
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.dataset as ds  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from recollect.errors import StoreError
from recollect.experiments.records.columns import SCHEMA, from_row, to_table
from recollect.experiments.records.record import SCHEMA_VERSION, Record
from recollect.experiments.records.store import Store, read_records
from recollect.experiments.running.execute import execute, failed_record
from recollect.experiments.specs.request import Request

RequestFor = Callable[..., Request]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(tmp_path / "store")
    made.prepare()
    return made


@pytest.fixture
def record(request_for: RequestFor) -> Record:
    return execute(request_for())


THREADS = """
import os, sys
from pathlib import Path
from recollect.experiments.records.store import read_file
before = len(os.listdir("/proc/self/task"))
read_file(Path(sys.argv[1]))
print(len(os.listdir("/proc/self/task")) - before)
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are listed by Linux")
def test_reading_records_starts_no_thread_that_could_outlive_python(
    store: Store, record: Record, request_for: RequestFor
) -> None:
    store.add(request_for(), record)
    (path,) = (store.root / "records").rglob("*.parquet")
    command = [sys.executable, "-c", THREADS, str(path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ended.stdout == "0\n"


def test_a_record_comes_back_as_it_was_written(
    store: Store, record: Record, request_for: RequestFor
) -> None:
    path = store.add(request_for(), record)
    hash8 = request_for().cell.spec_hash[:8]
    assert path == store.root / "records" / "mnist-split" / f"er-{hash8}-s0.parquet"
    assert store.records() == [record] == read_records(store.root)
    assert store.record(request_for()) == record
    assert record.curve
    assert record.memory


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted on Linux")
def test_reading_a_record_starts_no_threads(
    store: Store, record: Record, request_for: RequestFor
) -> None:
    """One of pyarrow's that lets go of a file while Python ends aborts the process."""
    path = store.add(request_for(), record)
    asked = (
        "import os, sys; from pathlib import Path\n"
        "from recollect.experiments.records.store import read_file\n"
        "before = len(os.listdir('/proc/self/task')); read_file(Path(sys.argv[1]))\n"
        "print(len(os.listdir('/proc/self/task')) - before)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", asked, str(path)], capture_output=True, text=True, check=True
    )
    assert int(ended.stdout) == 0


def test_every_field_of_a_record_has_its_column() -> None:
    assert {column.name for column in SCHEMA} == {
        field.name for field in dataclasses.fields(Record)
    }


def test_records_open_in_one_line_with_nested_columns(
    store: Store, record: Record, request_for: RequestFor
) -> None:
    store.add(request_for(), record)
    store.add(request_for(seed=1), dataclasses.replace(record, seed=1))
    table = ds.dataset(store.root / "records", format="parquet").to_table()
    assert sorted(table["seed"].to_pylist()) == [0, 1]
    assert table["curve"][0].as_py()[0]["total"] == list(record.curve[0].total)
    assert table["correct"][0].as_py() == [list(row) for row in record.correct]


def test_polars_and_duckdb_open_them_too(
    store: Store, record: Record, request_for: RequestFor
) -> None:
    store.add(request_for(), record)
    pattern = f"{store.root}/records/*/*.parquet"
    polars = pytest.importorskip("polars")
    assert polars.read_parquet(pattern)["num_steps"].to_list() == [record.num_steps]
    duckdb = pytest.importorskip("duckdb")
    assert duckdb.sql(f"select seed, curve[1].seen from '{pattern}'").fetchall()


def test_a_record_of_an_older_layout_is_read_with_nothing_where_it_lacks_columns(
    store: Store, record: Record, request_for: RequestFor
) -> None:
    path = store.add(request_for(), record)
    lacking = ["machine", "peak_bytes", "memory", "schema_version"]
    old = to_table(record).drop_columns(lacking).replace_schema_metadata()
    pq.write_table(old, path)
    (read,) = store.records()
    assert (read.machine, read.peak_bytes, read.memory, read.schema_version) == ({}, 0, (), 0)
    assert read.correct == record.correct


def test_a_record_of_a_newer_layout_is_refused(record: Record) -> None:
    row = to_table(record).to_pylist()[0]
    with pytest.raises(StoreError, match=f"`schema_version` is {SCHEMA_VERSION + 1}"):
        from_row({**row, "schema_version": SCHEMA_VERSION + 1})


def test_a_damaged_record_is_named(store: Store, record: Record, request_for: RequestFor) -> None:
    path = store.add(request_for(), record)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(
        StoreError, match=r"er-.*-s0\.parquet` cannot be read .* run its cell again"
    ):
        store.records()


def test_what_failed_stays_but_what_is_done_counts(
    store: Store, record: Record, request_for: RequestFor
) -> None:
    request = request_for()
    store.add(request, failed_record(request, "first"))
    store.add(request, failed_record(request, "second"))
    assert [found.error for found in store.records()] == ["second"]
    assert not store.is_done(request)
    store.add(request, record)
    assert store.is_done(request)
    assert [found.status for found in store.records()] == ["done"]
    assert len(list((store.root / "records").rglob("*.parquet"))) == 3


def test_a_run_is_claimed_by_one_process_until_it_ends_or_dies(
    store: Store, request_for: RequestFor
) -> None:
    request = request_for()
    context = multiprocessing.get_context("fork")
    ready, go = context.Event(), context.Event()

    def hold() -> None:
        with store.claimed(request) as is_ours:
            assert is_ours
            ready.set()
            go.wait()

    holder = context.Process(target=hold, daemon=True)
    holder.start()
    assert ready.wait(10)
    with store.claimed(request) as is_ours:
        assert not is_ours
    with store.claimed(request_for(seed=1)) as is_ours:
        assert is_ours
    holder.kill()
    holder.join(10)
    with store.claimed(request) as is_ours:
        assert is_ours


def test_a_file_in_place_of_the_folder_is_explained(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("")
    with pytest.raises(StoreError, match="is not a folder; choose another with --out"):
        Store(tmp_path / "store").prepare()


def test_a_folder_that_cannot_be_written_is_explained() -> None:
    with pytest.raises(StoreError, match=r"the store `/proc/store` cannot be .*--out"):
        Store("/proc/store").prepare()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_read_only_disk_is_explained_and_can_still_be_read(
    tmp_path: Path, record: Record, request_for: RequestFor
) -> None:
    store = Store(tmp_path / "store")
    store.add(request_for(), record)
    script = (
        f"mount --bind {store.root} {store.root} && mount -o remount,ro,bind {store.root} && "
        f"exec {sys.executable} -c 'from recollect.experiments.records.store import Store\n"
        f's = Store("{store.root}")\nprint(len(s.records()))\ns.prepare()\''
    )
    ended = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True)
    if "unshare" in ended.stderr or "mount" in ended.stderr:
        pytest.skip(f"no private mounts here: {ended.stderr.strip()}")
    assert ended.stdout == "1\n"
    assert "cannot be written to; choose another folder with --out" in ended.stderr


def test_a_full_disk_is_explained_and_leaves_the_old_records_as_they_were(
    tmp_path: Path, store: Store, record: Record, request_for: RequestFor
) -> None:
    path = store.add(request_for(), record)
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))  # no file beyond 1000 bytes
    try:
        with pytest.raises(StoreError, match="has no room left; free some"):
            store.add(request_for(seed=1), record)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert store.records() == [record]


def test_a_record_names_no_host(record: Record) -> None:
    assert os.uname().nodename not in json.dumps(record.machine)
    assert record.machine.keys() == {"cpu", "kernels", "cores", "system"}


def test_packed_runs_are_as_good_as_single_ones(
    store: Store, record: Record, request_for: RequestFor
) -> None:
    for seed in (0, 1, 2):
        store.add(request_for(seed=seed), dataclasses.replace(record, seed=seed))
    before = store.records()
    (packed,) = store.pack()
    assert [path.name for path in packed.parent.iterdir()] == [packed.name]
    assert store.records() == before
    assert store.is_done(request_for(seed=2))
    assert not store.is_done(request_for(seed=3))
    assert store.record(request_for(seed=1)) == dataclasses.replace(record, seed=1)
    assert store.pack() == []


def test_runs_that_came_later_join_the_packed_ones(
    store: Store, record: Record, request_for: RequestFor
) -> None:
    for seed in (5, 1):
        store.add(request_for(seed=seed), dataclasses.replace(record, seed=seed))
        (packed,) = store.pack()
        assert store.is_done(request_for(seed=seed))
    assert [found.seed for found in store.records()] == [1, 5]
    assert list(packed.parent.iterdir()) == [packed]


def test_a_failed_run_is_not_packed(store: Store, record: Record, request_for: RequestFor) -> None:
    store.add(request_for(), failed_record(request_for(), "boom"))
    assert store.pack() == []
    assert not store.is_done(request_for())
    assert [found.status for found in store.records()] == ["failed"]


def test_processes_that_pack_while_runs_finish_lose_none(
    store: Store, record: Record, request_for: RequestFor
) -> None:
    """Three packers go on until no run is left to add; each run is then there once."""
    context = multiprocessing.get_context("fork")
    last = context.Event()
    seeds = range(30)

    def pack() -> None:
        while not last.is_set():
            store.pack()
        store.pack()

    packers = [context.Process(target=pack, daemon=True) for _ in range(3)]
    for packer in packers:
        packer.start()
    for seed in seeds:
        store.add(request_for(seed=seed), dataclasses.replace(record, seed=seed))
    last.set()
    for packer in packers:
        packer.join(60)
    assert [packer.exitcode for packer in packers] == [0] * 3
    assert [found.seed for found in store.records()] == list(seeds)
    assert len(list((store.root / "records").rglob("*.parquet"))) == 1


def test_who_reads_while_another_process_packs_sees_every_run(
    store: Store, record: Record, request_for: RequestFor
) -> None:
    context = multiprocessing.get_context("fork")
    seeds = range(20)

    def add_and_pack() -> None:
        for seed in seeds:
            store.add(request_for(seed=seed), dataclasses.replace(record, seed=seed))
            if seed % 4 == 3:
                store.pack()

    writer = context.Process(target=add_and_pack, daemon=True)
    writer.start()
    most = 0
    while writer.is_alive():
        number = len(store.records())
        assert number >= most
        most = number
        time.sleep(0.005)  # a lock is not fair
    writer.join(60)
    assert writer.exitcode == 0
    assert [found.seed for found in store.records()] == list(seeds)


@pytest.mark.parametrize("is_of_old", [False, True])
def test_a_record_without_rows_is_named_and_not_an_index_error(
    store: Store, record: Record, request_for: RequestFor, is_of_old: bool
) -> None:
    path = store.add(request_for(), record)
    empty = to_table(record).slice(0, 0)
    pq.write_table(empty.replace_schema_metadata(None) if is_of_old else empty, path)
    for read in (store.records, lambda: store.record(request_for())):
        with pytest.raises(StoreError, match=r"`.*parquet`: .* holds no r(ecord|un)"):
            read()


def test_a_named_pipe_in_place_of_a_record_is_not_waited_for(
    store: Store, record: Record, request_for: RequestFor
) -> None:
    path = store.add(request_for(), record)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(StoreError, match="it is a named pipe, not a file"):
        store.records()


def test_the_seeds_of_a_cell_are_those_packed_and_those_beside(
    store: Store, record: Record, request_for: RequestFor
) -> None:
    cell = request_for().cell
    for seed in (3, 11):
        store.add(request_for("er", seed), dataclasses.replace(record, seed=seed))
    store.pack()
    store.add(request_for("er", 7), dataclasses.replace(record, seed=7))
    store.add(request_for("er", 8), failed_record(request_for("er", 8), "it broke"))
    assert store.done_seeds(cell) == {3, 7, 11}
    assert store.done_seeds(request_for("van").cell) == set()
