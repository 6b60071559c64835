"""Settings that a benchmark is usually run with."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Defaults:
    """Settings the benchmark is usually run with.

    Args:
        batch_size: Incoming examples per step.
        replay: Replayed examples per step.
        capacity: Slots of the memory.
        learning_rate: Of plain SGD.
        iterations: Updates per batch.
    """

    batch_size: int = 10
    replay: int = 10
    capacity: int = 500
    learning_rate: float = 0.05
    iterations: int = 1
