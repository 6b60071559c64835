"""Save every few steps, die without warning, go on where the last checkpoint was: same bits.

Run it: python examples/resume_after_crash.py
"""

import multiprocessing
import os
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor

import recollect
from recollect.models import mlp, seeded

NUM_BATCHES = 100
SAVE_EVERY = 8
CRASH_AT = 61


def stream() -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the same batches every time; a real stream would be read from where it stopped."""
    rng = torch.Generator().manual_seed(1)
    centres = torch.randn(6, 12, generator=rng)
    for step in range(NUM_BATCHES):
        labels = torch.randint(2, (10,), generator=rng) + step * 5 // NUM_BATCHES
        yield centres[labels] + torch.randn(10, 12, generator=rng), labels


def build() -> recollect.Learner:
    model = seeded(lambda: mlp(12, 6), 0)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    return recollect.method("er-pc-mir", model, optimizer, capacity=50, replay=10, seed=0)


def train(checkpoint: Path | None, *, crash_at: int | None = None) -> recollect.Learner:
    learner = build()
    if checkpoint is not None and checkpoint.exists():
        learner.load(checkpoint)
    for inputs, labels in islice(stream(), learner.step, None):
        learner.observe(inputs, labels)
        if learner.step == crash_at:
            os._exit(1)
        if checkpoint is not None and learner.step % SAVE_EVERY == 0:
            learner.save(checkpoint)
    return learner


def crash(checkpoint: Path) -> None:
    torch.set_num_threads(1)
    train(checkpoint, crash_at=CRASH_AT)


def main() -> None:
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Path(folder) / "learner.ckpt"
        child = multiprocessing.get_context("spawn").Process(target=crash, args=(checkpoint,))
        child.start()
        child.join()
        print(f"the first process died with exit code {child.exitcode}")

        found = build()
        found.load(checkpoint)
        print(f"it left a checkpoint of step {found.step}")
        resumed = train(checkpoint)

    never_stopped = train(None)
    pairs = zip(resumed.model.parameters(), never_stopped.model.parameters(), strict=True)
    same = all(torch.equal(mine, other) for mine, other in pairs)
    print(f"step {resumed.step}:", "same bits as a run that never stopped" if same else "different")


if __name__ == "__main__":
    main()
