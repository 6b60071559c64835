"""Ctrl-C, or any other exception, at any line of a step leaves what was before it or all of it."""

import copy
from typing import Any

import pytest
import torch
from tests.unit.learner.support import (
    CAPACITY,
    differences,
    learner,
    model,
    run,
    sgd,
    stream,
)
from tests.unit.learner.undo.interrupting import (
    OPTIMIZERS,
    everything,
    in_mid_stream,
    interrupt,
    observing,
    optimizer_of,
    without_places,
)
from tests.unit.learner.undo.raising import (
    Tracer,
    each_line_once,
    every_line,
    half,
)
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

from recollect import METHODS, Learner, Memory
from recollect.models import seeded
from recollect.storage import ClassBalanced, ConfidenceReservoir, Reservoir, Storage


@pytest.mark.parametrize("optimizer", ["sgd", "momentum"])
@pytest.mark.parametrize("name", METHODS)
def test_an_exception_at_any_line_leaves_before_or_after(name: str, optimizer: str) -> None:
    if optimizer == "momentum":  # by turns
        optimizer = optimizer_of(name)
    world, batch = in_mid_stream(name, "mlp", optimizer)
    # Thousands of lines where the engine measures; `tests.figures.interrupts` takes all of them.
    by_hand = METHODS[name].objective.is_cross_entropy or name == "er-ace-p"
    lines = every_line if by_hand and optimizer == "sgd" else each_line_once
    outcomes = interrupt(world, observing(batch), lines)
    assert outcomes.mixed == []
    assert outcomes.before > 200
    assert outcomes.after > 1


@pytest.mark.slow
@pytest.mark.parametrize("part", [0, 1])
@pytest.mark.parametrize(
    ("name", "kind", "optimizer", "options"),
    [
        ("er-pc-mir", "batch norm", "momentum", {}),
        ("gss", "batch norm", "sgd", {}),
        ("a-gem", "dropout", "two groups", {}),
        ("er-clip-mir", "dropout", "adam", {}),
        ("er-p-cb", "dropout", "sgd", {"passes": "separate"}),
        ("er-p", "dropout", "sgd", {"passes": "grouped", "groups": 2}),
    ],
)
def test_nor_does_one_in_a_network_with_statistics_or_dropout(
    name: str, kind: str, optimizer: str, options: dict[str, Any], part: int
) -> None:
    world, batch = in_mid_stream(name, kind, optimizer, **options)
    outcomes = interrupt(world, observing(batch), half(each_line_once, part))
    assert outcomes.mixed == []
    assert outcomes.before > 250
    assert outcomes.after > 1


@pytest.mark.parametrize("margins", ["replay", "both", "all"])
def test_nor_does_one_between_notes_of_margins(margins: str) -> None:
    world, batch = in_mid_stream("er-c", "mlp", "sgd", margins=margins, iterations=2)
    outcomes = interrupt(world, observing(batch), each_line_once)
    assert outcomes.mixed == []
    assert outcomes.after > 1


@pytest.mark.parametrize("name", ["er-cb", "er-mir"])
def test_nor_does_one_in_a_step_of_several_updates(name: str) -> None:
    world, batch = in_mid_stream(name, "mlp", "sgd", iterations=2)
    outcomes = interrupt(world, observing(batch), each_line_once)
    assert outcomes.mixed == []
    last_time = interrupt(world, observing(batch), lambda *a, **o: every_line(*a, **o)[-150:])
    assert last_time.mixed == []


@pytest.mark.parametrize("kind", ["mlp", "batch norm"])
@pytest.mark.parametrize("name", ["van", "er-c"])
def test_nor_does_one_in_the_very_first_step(name: str, kind: str) -> None:
    outcomes = interrupt(learner(name, kind), observing(stream(1)[0]), each_line_once)
    assert outcomes.mixed == []
    assert outcomes.after > 1


def test_nor_does_one_under_autocast() -> None:
    world, batch = in_mid_stream("er-mir", "mlp", "momentum")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        outcomes = interrupt(world, observing(batch), each_line_once)
    assert outcomes.mixed == []
    assert outcomes.after > 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind", "optimizer"),
    [("er", "mlp", "momentum"), ("er-c", "mlp", "adam"), ("er-mir", "dropout", "sgd")],
)
def test_nor_does_one_in_torchs_own_code(name: str, kind: str, optimizer: str) -> None:
    world, batch = in_mid_stream(name, kind, optimizer)
    outcomes = interrupt(world, observing(batch), each_line_once, everywhere=True)
    assert outcomes.mixed == []
    assert outcomes.before > 300


@pytest.mark.slow
@pytest.mark.parametrize("part", [0, 1])
@pytest.mark.parametrize("name", ["er", "er-cb"])
def test_nor_does_one_between_two_instructions_of_a_line(name: str, part: int) -> None:
    world, batch = in_mid_stream(name, "mlp", "sgd")
    outcomes = interrupt(world, observing(batch), half(every_line, part), instructions=True)
    assert outcomes.mixed == []
    assert outcomes.before > 1500
    assert outcomes.after > 100


def texts_within_bytes(storage: Storage) -> tuple[Learner, Any]:
    """A learner whose next step gives up slots and drops examples for want of bytes."""
    net = seeded(lambda: nn.Sequential(nn.EmbeddingBag(9, 4), nn.Linear(4, 3)), 0)
    world = Learner(net, sgd(net), memory=Memory(40, max_bytes=900), storage=storage)
    for length in (1, 2, 3):
        world.observe([[1] * length, [2], [3] * 3, [4]], [0, 1, 2, 0])
    return world, ([[5] * 20, [6, 7, 8], [7] * 9], [0, 1, 2])


@pytest.mark.slow
@pytest.mark.parametrize("storage", [Reservoir, ConfidenceReservoir, ClassBalanced])
def test_nor_does_one_where_examples_make_way_for_want_of_bytes(storage: type[Storage]) -> None:
    world, batch = texts_within_bytes(storage())
    twin = copy.deepcopy(world)
    assert world.memory is not None
    assert twin.memory is not None
    names = set(twin.memory.ids())
    twin.observe(*batch)
    assert twin.memory.capacity < world.memory.capacity
    assert len(names - set(twin.memory.ids())) > 1
    outcomes = interrupt(world, lambda w: w.observe(*batch), each_line_once)
    assert outcomes.mixed == []
    last = interrupt(world, lambda w: w.observe(*batch), lambda *a, **o: every_line(*a, **o)[-200:])
    assert last.mixed == []
    assert last.after > 20


@pytest.mark.parametrize("kind", ["mlp", "batch norm", "dropout"])
def test_nor_does_one_in_predict(kind: str) -> None:
    world, (inputs, _) = in_mid_stream("er", kind, "sgd")
    outcomes = interrupt(world, lambda w: w.predict(inputs), each_line_once)
    assert outcomes.mixed == []
    assert outcomes.before > 50


@pytest.mark.parametrize(
    ("name", "kind", "optimizer"),
    [("er", "mlp", "sgd"), ("er-p-mir", "batch norm", "momentum"), ("er-c", "dropout", "adam")],
)
def test_after_an_interrupt_the_learner_goes_on_to_the_same_bits(
    name: str, kind: str, optimizer: str
) -> None:
    world, batch = in_mid_stream(name, kind, optimizer)
    twin = copy.deepcopy(world)
    events = each_line_once(lambda: twin.observe(*batch))
    following = stream(3, seed=5)
    expected = without_places(everything(run(twin, following)))
    for event in events[:: len(events) // 12]:
        again = copy.deepcopy(world)
        step = again.step
        with pytest.raises(KeyboardInterrupt), Tracer(event).watching():
            again.observe(*batch)
        run(again, [batch] * (again.step == step) + following)
        assert differences(expected, without_places(everything(again))) == []


# --- a second interrupt, while the first is dealt with ------------------------------------------


class Alarm:
    """Goes off once, somewhere in a user's part of a step, and traces what happens then."""

    def __init__(self, where: str) -> None:
        self.where, self.tracer = where, Tracer()
        self.is_set = False

    def __deepcopy__(self, memo: object) -> "Alarm":
        return self

    def reached(self, where: str) -> None:
        if self.is_set and where == self.where:
            self.is_set = False
            self.tracer.from_here()
            raise KeyboardInterrupt


class AlarmedMemory(Memory):
    """Is interrupted behind its first write of a step, with everything written but the counts."""

    def __init__(self, capacity: int, alarm: Alarm) -> None:
        super().__init__(capacity)
        self.alarm = alarm

    @override
    def write(self, *what: Any, **options: Any) -> None:
        self.alarm.reached("before writing")
        super().write(*what, **options)
        self.alarm.reached("behind writing")


def alarmed(storage: Storage, optimizer: str, kind: str, alarm: Alarm) -> Learner:
    net = model(kind)
    moving = OPTIMIZERS[optimizer](net)
    if optimizer != "sgd":
        moving.register_step_post_hook(lambda *_: alarm.reached("behind the update"))

    def loss(outputs: Tensor, labels: Tensor) -> Tensor:
        alarm.reached("in the loss")
        return F.cross_entropy(outputs, labels, reduction="none")

    return Learner(net, moving, memory=AlarmedMemory(CAPACITY, alarm), storage=storage, loss=loss)


@pytest.mark.parametrize(
    ("where", "storage", "optimizer", "kind"),
    [
        ("in the loss", ClassBalanced, "sgd", "batch norm"),
        ("behind the update", ClassBalanced, "momentum", "mlp"),
        ("behind the update", ConfidenceReservoir, "adam", "dropout"),
        ("before writing", Reservoir, "sgd", "mlp"),
        ("behind writing", Reservoir, "sgd", "dropout"),
        ("behind writing", ConfidenceReservoir, "adam", "mlp"),
    ],
)
def test_a_second_interrupt_at_any_line_changes_nothing(
    where: str, storage: type[Storage], optimizer: str, kind: str
) -> None:
    alarm = Alarm(where)
    *earlier, last = stream(5)
    # The first is not counted: hooks and losses belong to the learner they were made with.
    batches = [*earlier, last]

    def build() -> Learner:
        torch.manual_seed(0)
        return run(alarmed(storage(), optimizer, kind, alarm), earlier)

    def fail(world: Learner, at: int | None) -> Tracer:
        alarm.is_set, alarm.tracer = True, Tracer(at)
        try:
            with pytest.raises(KeyboardInterrupt):
                world.observe(*batches[-1])
        finally:
            alarm.tracer.stop()
        return alarm.tracer

    before = without_places(everything(build()))
    after = without_places(everything(run(build(), [last])))
    world = build()
    lines = len(fail(world, None).passed)
    assert lines > 20
    is_decided = where.endswith("writing")
    expected = after if is_decided else before
    assert differences(expected, without_places(everything(world))) == []
    for at in range(lines):
        if is_decided:
            world = build()
        fail(world, at)
        assert differences(expected, without_places(everything(world))) == [], at
