"""Raise at every line of a step of every method: `python -m tests.figures.interrupts [METHOD ...]`.

A learner in mid-stream, whose memory is full, observes a batch; `KeyboardInterrupt` is raised at
one line of the library after the other, each as often as it is reached. Prints how often all was
as before the step, how often as behind it, and how often neither.
"""

import sys
from collections.abc import Sequence

from tests.unit.learner.undo.interrupting import in_mid_stream, interrupt, observing, optimizer_of

from recollect import METHODS


def main(names: Sequence[str]) -> None:
    """Interrupt and count, under plain SGD and an optimizer that remembers.

    Raises:
        AssertionError: A step was left between before and after.
    """
    before = after = mixed = 0
    for name in names:
        for optimizer in ("sgd", optimizer_of(name)):
            world, batch = in_mid_stream(name, "mlp", optimizer)
            found = interrupt(world, observing(batch))
            before, after = before + found.before, after + found.after
            mixed += len(found.mixed)
            counts = f"{found.before} before, {found.after} after, {len(found.mixed)} mixed"
            print(f"{name}, {optimizer}: {counts}", flush=True)
    print(f"{len(names)} methods: {before} before, {after} after, {mixed} mixed")
    assert mixed == 0


if __name__ == "__main__":
    main(sys.argv[1:] or list(METHODS))
