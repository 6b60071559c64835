"""Compare a trace with the one that is kept: to the bit, or to what processors may differ by."""

import math
from itertools import zip_longest
from typing import Any

from tests.golden.traces import Trace

WITHIN = 1e-9  # in float64; sums that are added up in another order differ by far less
# The memory keeps these columns in float32 whatever the model's precision.
_WITHIN_COLUMN = {"margin_increment": 1e-6, "score": 1e-6}


def differences(kept: Trace, found: Trace) -> list[str]:
    """List what two float64 traces do not share: choices exactly, numbers within a tolerance."""
    nothing: list[Any] = [[]]
    pairs = zip_longest(kept["steps"], found["steps"], fillvalue=nothing)
    unlike = [
        f"step {index}: {one} became {other}"
        for index, (one, other) in enumerate(pairs, start=1)
        if one[1:] != other[1:] or not _close(one[0], other[0], WITHIN)
    ]
    for part in ("weights", "memory"):
        for name in {**kept[part], **found[part]}:
            one, other = kept[part].get(name, []), found[part].get(name, [])
            if not _close(one, other, _WITHIN_COLUMN.get(name, WITHIN)):
                unlike.append(f"{part}, {name}: {one} became {other}")
    return unlike


def _close(kept: list[str], found: list[str], within: float) -> bool:
    pairs = zip(map(float.fromhex, kept), map(float.fromhex, found), strict=False)
    return len(kept) == len(found) and all(
        math.isclose(one, other, rel_tol=within, abs_tol=within) for one, other in pairs
    )
