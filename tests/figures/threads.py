"""Predict from many threads while one observes: `python -m tests.figures.threads 8 10000`.

Prints errors, torn answers, how long `predict` took beside a step, and how many steps ended
meanwhile, which a busy machine does not change as it does times.
"""

import sys
import threading
import time
from collections import Counter

import torch
from tests.unit.learner.support import SHAPE, learner, stream
from torch import Tensor

INPUTS = torch.rand(6, *SHAPE, generator=torch.Generator().manual_seed(0))


def digest(answer: Tensor) -> int:
    """Tell answers apart by their bits."""
    return hash(answer.numpy().tobytes())


def main(num_threads: int, num_steps: int) -> None:
    """Learn the stream alone, then again beside others who look.

    Raises:
        AssertionError: A thread failed, or got an answer that no whole number of steps gives.
    """
    batches = stream(100)
    alone = learner("er-pc")
    known = {digest(alone.predict(INPUTS))}
    for number in range(num_steps):
        alone.observe(*batches[number % len(batches)])
        known.add(digest(alone.predict(INPUTS)))

    one, done = learner("er-pc"), threading.Event()
    found: Counter[int] = Counter()
    waited: list[float] = []
    passed: list[int] = []
    errors: list[BaseException] = []

    def look() -> None:
        try:
            while not done.is_set():
                start, step = time.perf_counter(), one.step
                answer = one.predict(INPUTS)
                waited.append(time.perf_counter() - start)
                passed.append(one.step - step)
                found[digest(answer)] += 1
                time.sleep(0.02)
        except BaseException as error:
            errors.append(error)

    lookers = [threading.Thread(target=look) for _ in range(num_threads)]
    for looker in lookers:
        looker.start()
    steps = []
    for number in range(num_steps):
        start = time.perf_counter()
        one.observe(*batches[number % len(batches)])
        steps.append(time.perf_counter() - start)
    done.set()
    for looker in lookers:
        looker.join()
    torn = sum(count for answer, count in found.items() if answer not in known)
    print(f"{num_steps} steps, {len(waited)} answers from {num_threads} threads")
    print(f"{len(errors)} errors, {torn} torn answers")
    for name, times in (("step", steps), ("predict", waited)):
        ordered = sorted(times)
        middle, late = ordered[len(ordered) // 2], ordered[int(0.99 * len(ordered))]
        print(f"{name}: median {1e3 * middle:.2f} ms, p99 {1e3 * late:.2f} ms")
    ended = sorted(passed)
    middle, late = ended[len(ended) // 2], ended[int(0.99 * len(ended))]
    print(f"steps that ended during a predict: median {middle}, p99 {late}, most {ended[-1]}")
    assert not errors
    assert not torn
    assert digest(one.predict(INPUTS)) == digest(alone.predict(INPUTS))


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:3] or ("8", "10000")))
