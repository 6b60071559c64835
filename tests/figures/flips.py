"""Flip 600 bits each of a record, a checkpoint and a run.json: `python -m tests.figures.flips`.

Each bit is flipped alone. Prints how many flips were refused in words, how many changed nothing of
what is read, and how many were read as something else without a word.
"""

import tempfile
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path

from tests.unit.flipping import FLIPS, PARTS, Flips, flipped
from tests.unit.learner.support import fingerprint, learner, run, stream

from recollect.errors import CheckpointError, StoreError
from recollect.experiments.records.store import Store
from recollect.experiments.running.execute import Stopped, execute
from recollect.experiments.running.resume import read_run
from recollect.experiments.specs.cell import cells
from recollect.experiments.specs.request import Request, requests
from recollect.experiments.specs.spec import load_spec

SPEC = """
benchmark = "mnist-split"
memory = [20]
[stream]
examples_per_segment = 40
[evaluation]
points = 7
examples = 50
[methods.er]
"""


def main() -> None:
    """Flip, read and count.

    Raises:
        AssertionError: A flip was silent.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spec = folder / "spec.toml"
        spec.write_text(SPEC)
        (request,) = requests(cells(load_spec(spec)), [0])
        totals = [
            of_record(folder, request),
            of_checkpoint(folder / "checkpoint"),
            of_run_json(folder / "place", request),
        ]
    for what, total in zip(("record", "checkpoint", "run.json"), totals, strict=True):
        counts = f"{total.refused} refused, {total.harmless} harmless, {len(total.silent)} silent"
        print(f"{what}: {FLIPS * len(PARTS)} flips, {counts}")
    assert not any(total.silent for total in totals)


def of_record(folder: Path, request: Request) -> Flips:
    store = Store(folder / "store")
    store.prepare()
    path = store.add(request, execute(request))
    return in_parts(path, store.records, StoreError)


def of_checkpoint(path: Path) -> Flips:
    run(learner("er-cb", "batch norm"), stream(4)).save(path)
    victim = learner("er-cb", "batch norm")

    def load() -> dict[str, object]:
        victim.load(path)
        return fingerprint(victim)

    return in_parts(path, load, CheckpointError)


def of_run_json(place: Path, request: Request) -> Flips:
    asked = count(1)
    with suppress(Stopped):
        execute(request, checkpoints=place, should_stop=lambda: next(asked) >= 5)
    return in_parts(place / "run.json", lambda: read_run(place), CheckpointError)


def in_parts(path: Path, read: Callable[[], object], refusal: type[Exception]) -> Flips:
    total = Flips()
    for part in PARTS:
        found = flipped(path, part, read, refusal)
        total.refused += found.refused
        total.harmless += found.harmless
        total.silent += found.silent
    return total


if __name__ == "__main__":
    main()
