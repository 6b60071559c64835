"""A folder of records: append-only, safe with many writers, opened by anything that reads Parquet.

    records/BENCHMARK/METHOD-HASH-sSEED.parquet    one row, there whole or not at all
    records/BENCHMARK/METHOD-HASH.parquet          the seeds of one cell, once they were packed
    checkpoints/BENCHMARK/METHOD-HASH-sSEED/       where a run is, while it is not done
    checkpoints/BENCHMARK/METHOD-HASH-sSEED.kept-1/  where it was, when it could not be continued
    claims/BENCHMARK/METHOD-HASH-sSEED             held by the command that makes it
    code/DIGEST/                                   the code that made records: running/snapshots.py
    sweeps/                                        what was begun: running/begun.py
    set-aside/BENCHMARK/                           records of other code, after `--fresh`

All records in one line: `duckdb.sql("select * from 'STORE/records/*/*.parquet'")`.
"""

import errno
import gc
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Final, final
from uuid import uuid4

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from recollect.atomic_files import locked, locked_if_free, require_file, write_whole
from recollect.errors import StoreError
from recollect.experiments.records.columns import from_table, to_table
from recollect.experiments.records.record import Record
from recollect.experiments.specs.cell import Cell
from recollect.experiments.specs.request import Request

_MAX_RECORD_BYTES: Final = 1_000_000_000
_NOT_DONE: Final = ("failed", "pruned")


@final
class Store:
    """Records of runs in one folder. Any number of processes may use it at once.

    Args:
        root: The folder; it need not exist to be read as empty.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root)

    def prepare(self) -> None:
        """Make the folders and see that they can be written to, before hours are spent.

        Raises:
            StoreError: They cannot.
        """
        with store_explained(self.root):
            for part in ("records", "checkpoints", "claims"):
                (self.root / part).mkdir(parents=True, exist_ok=True)
            probe = self.root / f".probe.{uuid4().hex}"
            write_whole(probe, b"recollect")
            probe.unlink()

    # --- records ----------------------------------------------------------------------------------

    def record_path(self, request: Request) -> Path:
        """Return where the record of a run that is done will be, or is."""
        return self.root / "records" / request.cell.benchmark / f"{request.key}.parquet"

    def is_done(self, request: Request) -> bool:
        """Say whether the run is in the store."""
        return self.record_path(request).exists() or request.seed in _packed_seeds(
            self._packed_path(request.cell)
        )

    def holds(self, benchmark: str, key: str) -> bool:
        """Say whether a run is in the store, by its benchmark and `Request.key`."""
        folder = self.root / "records" / benchmark
        cell, _, seed = key.rpartition("-s")
        return (folder / f"{key}.parquet").exists() or int(seed) in _packed_seeds(
            folder / f"{cell}.parquet"
        )

    def last_failure(self, benchmark: str, key: str) -> int:
        """Return when a run failed last, in nanoseconds since the epoch; 0 if it never did."""
        found = (self.root / "records" / benchmark).glob(f"{key}.failed-*.parquet")
        return max((int(path.stem.rpartition("-")[2]) for path in found), default=0)

    def set_aside(self, request: Request) -> None:
        """Move the record of a run away, so that the run can be made again.

        Raises:
            StoreError: It is packed together with others.
        """
        path = self.record_path(request)
        if not path.exists():
            raise StoreError(
                f"`{self._packed_path(request.cell)}` holds finished runs packed together, which "
                "cannot be set aside one by one; choose another folder with --out."
            )
        kept = self.root / "set-aside" / request.cell.benchmark
        with store_explained(self.root):
            kept.mkdir(parents=True, exist_ok=True)
            path.replace(kept / f"{request.key}.{time.time_ns()}.parquet")

    def done_seeds(self, cell: Cell) -> frozenset[int]:
        """Return the seeds with which a cell is in the store."""
        packed = self._packed_path(cell)
        begin = f"{packed.stem}-s"
        with self._while_nobody_packs():
            names = (path.stem for path in packed.parent.glob(f"{begin}*.parquet"))
            seeds = (name.removeprefix(begin) for name in names)
            return _packed_seeds(packed) | {int(seed) for seed in seeds if seed.isdecimal()}

    def add(self, request: Request, record: Record) -> Path:
        """Write the record of a run. One that failed or was pruned stands beside others of it.

        Raises:
            StoreError: The disk is full or not writable. Nothing half-written is left.
        """
        path = self.record_path(request)
        if record.status != "done":
            path = path.with_name(f"{request.key}.{record.status}-{time.time_ns()}.parquet")
        sink = pa.BufferOutputStream()
        # One row has nothing to share between rows and nothing to skip.
        pq.write_table(to_table(record), sink, use_dictionary=False, write_statistics=False)
        with store_explained(self.root):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, sink.getvalue())
        return path

    def record(self, request: Request) -> Record | None:
        """Return the record of a run: the one that is done, else the last other one."""
        path = self.record_path(request)
        with self._while_nobody_packs():
            others = [
                p for s in _NOT_DONE for p in path.parent.glob(f"{request.key}.{s}-*.parquet")
            ]
            for candidate in (path, *sorted(others, key=_order, reverse=True)):
                if candidate.exists():
                    return read_file(candidate)[0]
                packed_path = self._packed_path(request.cell)
                if candidate == path and request.seed in _packed_seeds(packed_path):
                    packed = read_file(packed_path)
                    return next(record for record in packed if record.seed == request.seed)
        return None

    def records(self) -> list[Record]:
        """Return one record for each run there is: the one that is done, else the last other one.

        Raises:
            StoreError: A file is damaged or of a newer layout.
        """
        latest: dict[tuple[str, int, str], Record] = {}
        with self._while_nobody_packs(), _uncollected():
            # Failures in the order they happened, then what is done, so that the last one stands.
            paths = sorted((self.root / "records").glob("*/*.parquet"), key=_order)
            for record in (record for path in paths for record in read_file(path)):
                latest[record.spec_hash, record.seed, record.protocol] = record
        return sorted(
            latest.values(), key=lambda r: (r.benchmark, r.method, r.capacity, r.spec_hash, r.seed)
        )

    def pack(self) -> list[Path]:
        """Put the finished runs of each cell into one file, which is smaller and quicker to read.

        Nothing is lost if it is interrupted; a run may then be there twice, which does no harm.
        Processes that pack at the same time take turns.

        Returns:
            The files of cells that had runs to pack.

        Raises:
            StoreError: The disk is full or not writable, or a file is damaged.
        """
        if not (self.root / "records").is_dir():
            return []
        with ExitStack() as held:
            with store_explained(self.root):
                held.enter_context(locked(self.root / "records"))
            return self._pack()

    def _pack(self) -> list[Path]:
        cells: dict[Path, list[Path]] = {}
        for path in sorted((self.root / "records").glob("*/*-s*.parquet")):
            key, dash, seed = path.stem.rpartition("-s")
            if dash and seed.isdigit():
                cells.setdefault(path.with_name(f"{key}.parquet"), []).append(path)
        for packed, singles in cells.items():
            sources = [*([packed] if packed.exists() else []), *singles]
            by_seed = {record.seed: record for path in sources for record in read_file(path)}
            table = to_table(*(by_seed[seed] for seed in sorted(by_seed)))
            sink = pa.BufferOutputStream()
            pq.write_table(table, sink, compression="zstd", compression_level=19)
            with store_explained(self.root):
                write_whole(packed, sink.getvalue())
                for path in singles:
                    path.unlink()
        return list(cells)

    @contextmanager
    def _while_nobody_packs(self) -> Iterator[None]:
        """Keep records where they are while the block reads them.

        A store that cannot be locked (some network disks) is read all the same: packing cannot lock
        it either, and says so.
        """
        with ExitStack() as held:
            records = self.root / "records"
            with suppress(OSError):
                if records.is_dir():
                    held.enter_context(locked(records, shared=True))
            yield

    def _packed_path(self, cell: Cell) -> Path:
        name = f"{cell.method}-{cell.spec_hash[:8]}.parquet"
        return self.root / "records" / cell.benchmark / name

    # --- runs that are not done -------------------------------------------------------------------

    def checkpoint_folder(self, request: Request) -> Path:
        """Return where a run keeps what it needs to continue."""
        return self.root / "checkpoints" / request.cell.benchmark / request.key

    def forget_checkpoint(self, request: Request) -> None:
        """Remove what a run needed to continue."""
        folder = self.checkpoint_folder(request)
        if folder.exists():
            shutil.rmtree(folder, ignore_errors=True)
        lock_of(folder).unlink(missing_ok=True)

    @contextmanager
    def claimed(self, request: Request) -> Iterator[bool]:
        """Hold the run for this command while the block runs; yield False if another holds it.

        The kernel drops the claim when its holder dies, so a killed run is free at once.
        """
        path = self.root / "claims" / request.cell.benchmark / request.key
        with ExitStack() as held:
            with store_explained(self.root):
                path.parent.mkdir(parents=True, exist_ok=True)
                is_ours = held.enter_context(locked_if_free(path))
            yield is_ours
            # Whoever opened the file before it goes will look for the record and find it.
            if is_ours and self.is_done(request):
                path.unlink(missing_ok=True)


def lock_of(checkpoints: Path) -> Path:
    """Return the file that a process locks while it works on the checkpoint in a folder."""
    return checkpoints.with_name(f"{checkpoints.name}.lock")


def read_records(root: str | os.PathLike[str]) -> list[Record]:
    """Return the records of a store: `Store(root).records()`."""
    return Store(root).records()


@contextmanager
def store_explained(root: Path) -> Iterator[None]:
    """Turn the system's errors inside the block into one that says what to do.

    Raises:
        StoreError: The disk is full, or the folder cannot be written to.
    """
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).rstrip(".")
        # Without a number it is from safetensors, which has no other way to say "disk full".
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, None):
            advice = "has no room left; free some, then give the same command again: it continues"
        elif error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            advice = "cannot be written to; choose another folder with --out"
        elif error.errno in (errno.ENOTDIR, errno.EEXIST):
            advice = "is not a folder; choose another with --out"
        else:
            advice = "cannot be used; choose another folder with --out"
        raise StoreError(
            f"the store `{root}` {advice}. The system says: {reason}. Finished runs are safe."
        ) from error


def _packed_seeds(path: Path) -> frozenset[int]:
    try:
        changed = path.stat().st_mtime_ns
    except OSError:
        return frozenset()
    return _seeds_in(path, changed)


@lru_cache(maxsize=1024)
def _seeds_in(path: Path, _changed: int) -> frozenset[int]:
    return frozenset(record.seed for record in read_file(path))


@contextmanager
def _uncollected() -> Iterator[None]:
    """Keep Python from looking for garbage in a block that makes a million tuples, and none.

    It would look through all of them again and again, for half of the time of reading.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _order(path: Path) -> tuple[bool, str, str]:
    """Sort runs that are not done before those that are, and each in the order of their times."""
    key, dot, rest = path.stem.partition(".")
    return not dot, key, rest.rpartition("-")[2]


def read_file(path: Path) -> list[Record]:
    """Return the records of one file.

    Raises:
        StoreError: It is damaged or of a newer layout.
    """
    try:
        require_file(path, max_bytes=_MAX_RECORD_BYTES)
        # One file at a time: a table read by its folder would take types from the first file. And
        # its bytes: pyarrow takes some paths for addresses, and none that is no text. On this
        # thread: one of pyarrow's that lets go of the bytes while Python ends aborts the command.
        file = pq.ParquetFile(pa.BufferReader(path.read_bytes()))
        found = from_table(file.read(use_threads=False))
        if not found:
            raise StoreError("it holds no run; move it away and run its cell again.")
        return found
    except StoreError as error:
        raise StoreError(f"`{path}`: {error}") from error
    except Exception as error:  # of damaged bytes pyarrow makes nearly any kind
        raise StoreError(
            f"`{path}` cannot be read ({error}); move it away and run its cell again."
        ) from error
