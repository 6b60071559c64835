import pytest
import torch
from tests.unit.learner.support import model, sgd

from recollect import Learner, Memory


def learner() -> Learner:
    parts = model()
    return Learner(parts, sgd(parts), memory=Memory(6))


def observe(one: Learner, ids: list[int | str] | None, labels: list[int]) -> None:
    one.observe(torch.rand(len(labels), 1, 4, 4), labels, ids=ids)


def test_an_example_is_found_and_forgotten_by_the_callers_name() -> None:
    one = learner()
    observe(one, ["ann", "bob", "eve"], [0, 1, 2])
    observe(one, None, [3])
    assert one.memory is not None
    assert one.memory.ids() == ["ann", "bob", "eve", 4]
    assert one.memory.forget(ids=["bob", "unknown"]) == ["bob"]
    assert one.memory.find("bob") is None
    assert sorted(map(str, one.memory.ids())) == ["4", "ann", "eve"]
    observe(one, None, [0, 1])
    assert len(one.memory) == 5


def test_examples_are_forgotten_by_what_is_known_of_them() -> None:
    one = learner()
    observe(one, None, [0, 1, 0, 2])
    assert one.memory is not None
    assert one.memory.forget(where=lambda slot: int(slot.label) == 0) == [1, 3]
    assert one.memory.counts_by_class() == {1: 1, 2: 1}
    assert one.memory.forget(slots=[0]) == [4]


def test_the_report_names_who_came_and_who_went() -> None:
    one = learner()
    observe(one, ["a", "b"], [0, 1])
    report = one.observe(torch.rand(9, 1, 4, 4), [0] * 9, ids=[f"n{i}" for i in range(9)])
    assert one.memory is not None
    assert report.written_ids == [one.memory.id_of(slot) for slot in report.written_slots.tolist()]
    gone = {"a", "b"} - set(one.memory.ids())
    assert set(report.evicted_ids) == gone


@pytest.mark.parametrize(
    ("ids", "error", "match"),
    [
        ([1], ValueError, "`ids` has 1 entries, 1 of them distinct, for 2 examples"),
        ([1, 1], ValueError, "1 of them distinct"),
        ([1.5, 2], TypeError, r"`ids` holds 1\.5"),
        ([None, 2], TypeError, "`ids` holds None"),
    ],
)
def test_names_that_name_nothing_are_refused_and_nothing_changes(
    ids: list[object], error: type[Exception], match: str
) -> None:
    one = learner()
    with pytest.raises(error, match=match):
        observe(one, ids, [0, 1])  # type: ignore[arg-type]
    assert one.step == 0
