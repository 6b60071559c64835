"""Other threads look while one learns: no error, no torn answer."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from tests.unit.learner.support import CLASSES, SHAPE, model, sgd, stream
from torch import Tensor

from recollect import Learner, method

INPUTS = torch.rand(6, *SHAPE, generator=torch.Generator().manual_seed(0))


def learner(kind: str = "mlp", name: str = "er-pc", **options: Any) -> Learner:
    parts = model(kind)
    return method(name, parts, sgd(parts), capacity=12, replay=4, seed=0, **options)


def answers_after_each_step(one: Learner, batches: list[Any]) -> list[Tensor]:
    found = [one.predict(INPUTS)]
    for batch in batches:
        one.observe(*batch)
        found.append(one.predict(INPUTS))
    return found


def beside(work: Callable[[], None], look: Callable[[], None], threads: int) -> None:
    """Run `look` in threads again and again until `work` is done; raise what any of them raised."""
    errors: list[BaseException] = []
    done = threading.Event()

    def repeat() -> None:
        try:
            while not done.is_set():
                look()
        except BaseException as error:
            errors.append(error)

    lookers = [threading.Thread(target=repeat, daemon=True) for _ in range(threads)]
    for looker in lookers:
        looker.start()
    try:
        work()
    finally:
        done.set()
        for looker in lookers:
            looker.join(60)
    assert not any(looker.is_alive() for looker in lookers)
    if errors:
        raise errors[0]


@pytest.mark.parametrize("kind", ["mlp", "batch norm", "dropout"])
def test_every_answer_is_that_of_a_whole_number_of_steps(kind: str) -> None:
    batches = stream(60)
    known = answers_after_each_step(learner(kind), batches)
    one, seen = learner(kind), []
    counted = threading.Lock()

    def look() -> None:
        answer = one.predict(INPUTS)
        with counted:
            seen.append(answer)

    def work() -> None:
        for batch in batches:
            one.observe(*batch)

    beside(work, look, threads=4)
    assert len(seen) > 4
    for answer in seen:
        assert any(torch.equal(answer, whole) for whole in known)
    assert torch.equal(one.predict(INPUTS), known[-1])


def test_reading_and_forgetting_beside_a_step_see_whole_examples() -> None:
    one = learner()
    memory = one.memory
    assert memory is not None
    batches = [(torch.full((5, *SHAPE), float(step)), [step % CLASSES] * 5) for step in range(80)]

    def look() -> None:
        for index in range(len(memory)):
            try:
                slot = memory.slot(index)
            except IndexError:
                continue  # it was forgotten meanwhile
            value = float(slot.inputs.flatten()[0])  # type: ignore[attr-defined]
            assert int(slot.label) == value % CLASSES
            assert (slot.arrived_at - 1) // 5 == value
        held = memory.counts_by_class()
        assert sum(held.values()) <= 12
        memory.forget(where=lambda slot: int(slot.label) == 0)

    def work() -> None:
        for batch in batches:
            one.observe(*batch)

    beside(work, look, threads=3)


def test_two_threads_that_observe_take_turns() -> None:
    one = learner()
    batches = stream(80)
    halves = [batches[::2], batches[1::2]]

    def work(half: list[Any]) -> None:
        for batch in half:
            one.observe(*batch)

    other = threading.Thread(target=work, args=(halves[1],), daemon=True)
    other.start()
    work(halves[0])
    other.join(60)
    assert one.step == 80
    assert one.memory is not None
    assert one.memory.seen == one.seen == sum(len(labels) for _, labels in batches)


def test_a_checkpoint_saved_beside_steps_is_of_one_step(tmp_path: Any) -> None:
    batches = stream(30)
    known = answers_after_each_step(learner(), batches)
    one, path = learner(), tmp_path / "learner.ckpt"

    def work() -> None:
        for batch in batches:
            one.observe(*batch)

    beside(work, lambda: one.save(path), threads=1)
    again = learner()
    again.load(path)
    assert torch.equal(again.predict(INPUTS), known[again.step])


def test_nobody_who_waits_is_passed_over_for_long() -> None:
    """A thread that learns without a pause lets those go first who waited when it came back."""
    one = learner()
    batches = stream(40)
    steps_waited: list[int] = []

    def look() -> None:
        before = one.step
        one.predict(INPUTS)
        steps_waited.append(one.step - before)
        time.sleep(0.001)

    def work() -> None:
        for _ in range(10):
            for batch in batches:
                one.observe(*batch)

    beside(work, look, threads=2)
    assert len(steps_waited) > 10
    assert sorted(steps_waited)[int(0.9 * len(steps_waited))] <= 10
