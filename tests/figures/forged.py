"""Load 5,000 forged checkpoints, each signed again: `python -m tests.figures.forged`.

Prints how many were refused in words, how many were taken and gave a learner that goes on, and how
many were half loaded, ended in another error or gave a learner that is nonsense.
"""

import sys
import tempfile
from pathlib import Path

from tests.unit.trying_forgeries import FORGERIES, NUM_PARTS, Forgeries, try_forgeries


def main(num_parts: int) -> None:
    """Forge, load and count.

    Raises:
        AssertionError: One was half loaded, raw or nonsense.
    """
    total = Forgeries()
    for part in range(num_parts):
        with tempfile.TemporaryDirectory() as folder:
            found = try_forgeries(part, Path(folder))
        total.refused += found.refused
        total.accepted += found.accepted
        total.half_loaded += found.half_loaded
        total.raw += found.raw
        total.nonsense += found.nonsense
        print(f"{FORGERIES * (part + 1)} forged: {told(total)}", flush=True)
    assert not [*total.half_loaded, *total.raw, *total.nonsense]


def told(total: Forgeries) -> str:
    wrong = f"{len(total.half_loaded)} half loaded, {len(total.raw)} raw"
    taken = f"{total.accepted} taken, {len(total.nonsense)} of them nonsense"
    return f"{total.refused} refused, {wrong}, {taken}"


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else NUM_PARTS)
