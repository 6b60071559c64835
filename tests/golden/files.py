"""The files that traces are kept in: one in float64, and one in float32 per kind of processor."""

import json
from pathlib import Path
from typing import Final

from tests.golden.compare import differences
from tests.golden.traces import Trace

FOLDER: Final = Path(__file__).parent / "traces"
EVERYWHERE: Final = "float64"

Kept = dict[str, Trace]  # by precision, and in float32 by kind of processor


def path_of(name: str) -> Path:
    return FOLDER / f"{name.replace(' ', '-')}.json"


def read(name: str) -> Kept:
    return json.loads(path_of(name).read_text())


def on(kind: str) -> str:
    """What a trace in float32 is kept under."""
    return f"float32 on {kind}"


def as_text(kept: Kept) -> str:
    """Lay traces out with one line per step, so that a diff shows the first that moved."""
    return _laid_out(kept, 0) + "\n"


def _laid_out(value: object, depth: int) -> str:
    inside, ends = "  " * (depth + 1), "  " * depth
    if depth < 3 and value and isinstance(value, dict):
        entries = [f"{json.dumps(key)}: {_laid_out(v, depth + 1)}" for key, v in value.items()]
        return "{\n" + ",\n".join(inside + entry for entry in entries) + f"\n{ends}}}"
    if depth < 3 and value and isinstance(value, list):
        lines = [inside + json.dumps(entry) for entry in value]
        return "[\n" + ",\n".join(lines) + f"\n{ends}]"
    return json.dumps(value)


def merged(kept: Kept, float64: Trace, float32: Trace, kind: str) -> Kept:
    """Return what is to be kept, now that both traces were taken on this kind of processor.

    A float64 trace that has not moved stays as it was written, on whatever processor. Traces of
    other kinds stay as well, unless this run shows that they would move too: because the float64
    trace did, or the float32 one of this kind.
    """
    here = on(kind)
    if EVERYWHERE not in kept or differences(kept[EVERYWHERE], float64):
        return {EVERYWHERE: float64, here: float32}
    if kept.get(here, float32) != float32:
        return {EVERYWHERE: kept[EVERYWHERE], here: float32}
    return {**kept, here: float32}
