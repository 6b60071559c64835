"""Every question can be asked: few repetitions, finite ratios, no clock in an assertion."""

import shutil
from math import isfinite
from pathlib import Path

import pytest
import torch
from perf.asking.answer import Answer
from perf.asking.measuring import alternate
from perf.asking.questions import QUESTIONS
from perf.contestants import filling
from perf.contestants.shapes import BATCH, SHAPES, Shape
from perf.images import augmentation
from perf.running import workers
from torch import Tensor
from torch.nn import functional as F

from perf import (
    capacity,
    command,
    compiled,
    peak_memory,
    roofline,
    step_cost,
    whole_stream,
)
from recollect.models import mlp

FOLDER = Path(__file__).parents[2] / "perf"


def has_finite_positive_ratios(answer: Answer) -> bool:
    values = [value for ratio in answer.ratios for value in (ratio.low, ratio.median, ratio.high)]
    return bool(values) and all(isfinite(value) and value > 0 for value in values)


@pytest.mark.parametrize("shape", ["mlp", "transformer"])
def test_steps_are_compared(shape: str) -> None:
    answer = step_cost.measure(shape, repetitions=2, count=1)
    assert has_finite_positive_ratios(answer)
    assert {len(times) for times in answer.times.values()} == {2}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_gives_what_its_model_takes(shape: str, rng: torch.Generator) -> None:
    chosen = SHAPES[shape]
    with torch.no_grad():
        logits = chosen.build()(chosen.inputs(2, rng))
    assert logits.shape == (2, chosen.classes)
    assert int(chosen.labels(200, rng).max()) < chosen.classes


def test_a_filled_memory_is_full_and_varied() -> None:
    small = Shape("small", lambda: mlp(4, 10), (4,))
    learner = step_cost.learner_for(small, "er-c")
    filling.fill_learner(learner, small)
    memory = learner.memory
    assert memory is not None
    assert memory.is_full
    assert memory.seen == memory.capacity
    assert len(set(memory.times_replayed.tolist())) > 1


def test_the_stream_position_is_held() -> None:
    learner = capacity.learner_of("er", 50)
    capacity.block(learner, seen=5_000, steps=3)()
    assert learner.memory is not None
    assert learner.memory.seen == 5_000 + BATCH


def test_capacities_are_compared() -> None:
    answer = capacity.measure(repetitions=2, steps=2, slots=(50, 200))
    assert has_finite_positive_ratios(answer)
    states = {(point["method"], point["slots"], point["state"]) for point in answer.points}
    assert len(states) == 8


def test_methods_are_compared_on_a_real_stream() -> None:
    answer = whole_stream.measure(repetitions=1, blocks=2)
    assert has_finite_positive_ratios(answer)
    assert len(answer.times) == len(whole_stream.METHODS)


def test_the_allocator_is_followed() -> None:
    model_bytes = sum(p.nbytes for p in SHAPES["cifar"].build().parameters())
    found = peak_memory.allocated("ER", steps=2)
    # A step holds at least the gradient of every parameter, and activations of 20 images.
    assert found["first"] > model_bytes
    assert found["later"] > model_bytes


def test_two_workers_in_half_the_time_are_twice_as_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    def sweep(count: int, seeds: int) -> workers.Sweep:
        return workers.Sweep(2.0 * seeds / count, outside=0.5, cpu_a_run=1.0)

    monkeypatch.setattr(workers, "sweep", sweep)
    # Two loops that take as long as one do twice its work.
    monkeypatch.setattr(workers, "bare_loops", lambda _count, _steps: 3.0)
    answer = workers.measure(repetitions=2, seeds=1)
    speed, bare = answer.ratios
    assert (speed.median, speed.is_met) == (2.0, True)
    assert (bare.median, bare.is_met) == (2.0, None)
    assert answer.tables[0].rows == [["one worker", 2.0, 0.5, 1.0], ["two workers", 1.0, 0.5, 1.0]]


@pytest.mark.slow
def test_a_sweep_can_be_run() -> None:
    found = workers.sweep(1, seeds=1, methods=("er",))
    assert 0 < found.outside < found.seconds
    assert found.cpu_a_run > 0


@pytest.mark.slow
def test_bare_loops_wait_for_each_other() -> None:
    assert workers.bare_loops(2, steps=5) > 0


@pytest.mark.slow
def test_the_command_is_timed_beside_python_that_does_nothing() -> None:
    answer = command.measure(repetitions=1, names=("recollect --help",))
    assert set(answer.times) == {"python -c pass", "recollect --help"}
    assert answer.ratios[0].than == "python -c pass"
    assert answer.ratios[0].median > 1


def test_crop_flip_and_colour_are_timed_beside_the_step_that_they_augment() -> None:
    answer = augmentation.measure(repetitions=1)
    assert has_finite_positive_ratios(answer)
    assert {(r.than, r.target) for r in answer.ratios} == {(augmentation.STEP, 0.05)}
    assert len(answer.ratios) == 2


def test_the_roof_is_measured() -> None:
    answer = roofline.measure(repetitions=2, side=64, mebibytes=1)
    assert has_finite_positive_ratios(answer)
    numbers = [c for t in answer.tables for row in t.rows for c in row if isinstance(c, float)]
    assert numbers
    assert all(isfinite(number) and number > 0 for number in numbers)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch's compiler needs g++")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, inside its compiler
def test_compiled_loops_are_compared() -> None:
    answer = compiled.measure(repetitions=2, shapes=("mlp",))
    assert has_finite_positive_ratios(answer)
    ((_, compiling, whole, _),) = answer.tables[0].rows
    assert isinstance(compiling, float)
    assert isinstance(whole, float)
    assert min(compiling, whole) > 0


def test_operations_of_a_grouped_convolution_are_counted_by_group() -> None:
    inputs, back = torch.rand(3, 4, 8, 8), torch.rand(3, 5, 8, 8)

    def there_and_back(inputs: Tensor, back: Tensor, groups: int) -> object:
        weights = torch.zeros(groups * 5, 4, 3, 3, requires_grad=True)
        outputs = F.conv2d(inputs, weights, padding=1, groups=groups)
        return torch.autograd.grad(outputs, weights, back)

    once = 3 * 2 * 4 * 5 * 9 * 64  # examples x multiply-add x maps x kernel x positions
    folded = inputs.reshape(1, 12, 8, 8), back.reshape(1, 15, 8, 8)
    assert roofline.flops(lambda: there_and_back(inputs, back, 1)) == 2 * once
    assert roofline.flops(lambda: there_and_back(*folded, 3)) == 2 * once


def test_the_layers_of_the_roofline_are_those_of_the_network() -> None:
    kernels = [p.shape for n, p in SHAPES["cifar"].build().named_parameters() if p.ndim == 4]
    listed = [
        torch.Size((maps_out, maps_in, kernel, kernel))
        for maps_in, maps_out, _, _, kernel, number in roofline.LAYERS
        for _ in range(number)
    ]
    assert sorted(kernels) == sorted(listed)


def test_contestants_take_turns_and_another_begins_each_time() -> None:
    order: list[str] = []

    def contestant(name: str) -> float:
        order.append(name)
        return 1.0

    found = alternate({"a": lambda: contestant("a"), "b": lambda: contestant("b")}, 3)
    assert "".join(order) == "abbaab"
    assert found == {"a": [1.0] * 3, "b": [1.0] * 3}


def test_every_script_that_answers_is_asked() -> None:
    asked = {name.split("-cost")[0].replace("-", "_") for name in QUESTIONS}
    for script in (
        "capacity",
        "peak_memory",
        "running/workers",
        "roofline",
        "compiled",
        "engines",
        "streams",
    ):
        assert (FOLDER / f"{script}.py").exists()
        assert script.rpartition("/")[2] in asked
