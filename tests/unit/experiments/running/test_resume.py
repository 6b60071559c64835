"""What cannot be continued is told, kept, and leaves no trace in the run that starts anew."""

import json
import re
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.unit.flipping import PARTS, silent_flips

from recollect.errors import CheckpointError, StoreError
from recollect.experiments.records.compare_records import without_times
from recollect.experiments.running import resume
from recollect.experiments.running.execute import Stopped, execute
from recollect.experiments.running.resume import read_run, signed
from recollect.experiments.specs.cell import cells
from recollect.experiments.specs.request import Request, requests
from recollect.experiments.specs.spec import load_spec

RequestFor = Callable[..., Request]


def stop_after(request: Request, place: Path, asks: int = 5) -> None:
    asked = count(1)
    with pytest.raises(Stopped):
        execute(request, checkpoints=place, should_stop=lambda: next(asked) >= asks)


def write(content: bytes) -> Callable[[Path], object]:
    return lambda place: (place / "run.json").write_bytes(content)


def edit(**changes: Any) -> Callable[[Path], object]:
    """Change what `run.json` says, and sign it again."""

    def change(place: Path) -> None:
        content = json.loads((place / "run.json").read_bytes())
        (place / "run.json").write_bytes(signed({**content, **changes}))

    return change


def cut_learner(place: Path) -> None:
    (learner,) = place.glob("*.ckpt")
    learner.write_bytes(learner.read_bytes()[:-1])


def lose_learner(place: Path) -> None:
    (learner,) = place.glob("*.ckpt")
    learner.unlink()


def move_stream(place: Path) -> None:
    stream = json.loads((place / "run.json").read_bytes())["stream"]
    edit(stream={**stream, "cursor": 50})(place)


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "cut json": (write(b"{"), "its run.json is damaged"),
    "deep json": (write(b"[" * 100_000 + b"]" * 100_000), "its run.json is damaged"),
    "no text": (write(b"\xff\xfe"), "its run.json is damaged"),
    "a list": (write(b"[]"), "its digest differs"),
    "null": (write(b"null"), "its digest differs"),
    "no digest": (write(b"{}"), "its digest differs"),
    "a cut learner": (cut_learner, "truncated or not a checkpoint"),
    "no learner": (lose_learner, "is not a file"),
    "another stream": (edit(stream={"cursor": 40, "fingerprint": "0" * 64}), "of another stream"),
    "another step": (move_stream, "has seen 40 examples where its stream has given 50"),
    "other code": (edit(code="yesterday's"), r"by other code .* \(code differs\)"),
    "other versions": (edit(versions={}), r"or other versions \(versions differs\)"),
    "another run": (edit(seed=1, spec_hash=""), r"\(spec_hash, seed differ\)"),
    "a tally that is none": (edit(tally=[]), r"TypeError while it was read: .*tally.py, line \d+"),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_what_cannot_be_continued_is_kept_and_the_run_starts_anew(
    what: str, request_for: RequestFor, tmp_path: Path
) -> None:
    place, kept = tmp_path / "place", tmp_path / "place.kept-1"
    stop_after(request_for(), place)
    damage, reason = DAMAGES[what]
    damage(place)
    before = {file.name: file.read_bytes() for file in place.iterdir()}
    reasons: list[str] = []
    anew = execute(request_for(), checkpoints=place, on_left=reasons.append)
    assert anew.num_resumes == 0
    assert without_times(anew) == without_times(execute(request_for()))
    assert len(reasons) == 1
    assert re.search(reason, reasons[0])
    assert reasons[0].endswith(f"; it is kept in {kept}")
    assert {name: (kept / name).read_bytes() for name in before} == before
    assert "not continued, because" in (kept / "why.txt").read_text()


def test_a_run_whose_code_was_edited_twice_keeps_both_checkpoints_and_can_go_back(
    request_for: RequestFor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "place"
    stop_after(request_for(), place)
    for code in ("edited", "edited again"):
        monkeypatch.setattr(resume, "code", lambda code=code: code)
        stop_after(request_for(), place, asks=3)
    monkeypatch.undo()
    kept = sorted(folder.name for folder in tmp_path.glob("place.kept-*"))
    assert kept == ["place.kept-1", "place.kept-2"]
    (tmp_path / "place").rename(tmp_path / "of the last edit")
    (tmp_path / "place.kept-1").rename(place)
    continued = execute(request_for(), checkpoints=place)
    assert continued.num_resumes == 1
    assert without_times(continued) == without_times(execute(request_for()))


def test_a_learner_saved_before_the_first_run_json_is_no_checkpoint_yet(
    request_for: RequestFor, tmp_path: Path
) -> None:
    place = tmp_path / "place"
    stop_after(request_for(), place)
    (place / "run.json").unlink()
    reasons: list[str] = []
    anew = execute(request_for(), checkpoints=place, on_left=reasons.append)
    assert (anew.num_resumes, reasons) == (0, [])


def test_a_checkpoint_that_cannot_be_kept_stops_the_run(
    request_for: RequestFor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "place"
    stop_after(request_for(), place)
    write(b"{")(place)

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", refuse)
        with pytest.raises(StoreError, match="cannot be written to"):
            execute(request_for(), checkpoints=place)
    assert {file.name for file in place.iterdir()} == {"run.json", "learner-4.ckpt"}


FORGETFUL = """
import torch
from recollect.storage import Placement, Storage


class Counting(Storage):
    \"\"\"Every second newcomer takes the next slot; reads back what it never wrote.\"\"\"

    def __init__(self):
        self.count = 0

    def place(self, labels, memory, evidence, rng):
        slots = torch.full((len(labels),), -1)
        for newcomer in range(len(labels)):
            self.count += 1
            if self.count % 2:
                slots[newcomer] = (self.count // 2) % memory.capacity
        return Placement(slots)

    def state(self):
        return {"count": torch.tensor(self.count)}

    def restore(self, state):
        self.count = int(state["counts"])
"""


def test_a_storage_that_cannot_be_restored_ends_in_the_record_of_a_run_never_stopped(
    small_spec: Path, tmp_path: Path
) -> None:
    (tmp_path / "idea.py").write_text(FORGETFUL)
    storage = f"methods.mine.storage={tmp_path / 'idea.py'}:Counting"
    spec = load_spec(small_spec, overrides=[storage, "methods.mine.base=er"])
    (request,) = requests(cells(spec, methods=["mine"]), [0])
    stop_after(request, tmp_path / "place", asks=10)
    reasons: list[str] = []
    anew = execute(request, checkpoints=tmp_path / "place", on_left=reasons.append)
    assert (anew.status, anew.num_resumes) == ("done", 0)
    assert without_times(anew) == without_times(execute(request))
    assert len(reasons) == 1
    assert "counts" in reasons[0]
    assert (tmp_path / "place.kept-1" / "run.json").exists()


@pytest.mark.parametrize("part", PARTS)
def test_no_flipped_bit_of_a_run_json_passes(
    part: int, request_for: RequestFor, tmp_path: Path
) -> None:
    place = tmp_path / "place"
    stop_after(request_for(), place)
    assert silent_flips(place / "run.json", part, lambda: read_run(place), CheckpointError) == []
