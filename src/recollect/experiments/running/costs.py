"""What a step of each method costs, in steps of ER, measured side by side."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median, quantiles
from typing import Final

from recollect.experiments.specs.arrival_checks import is_unit, without_budget
from recollect.experiments.specs.build import build
from recollect.experiments.specs.cell import Cell, cells
from recollect.experiments.specs.method_tables import read_method
from recollect.experiments.specs.named.precision import casting
from recollect.experiments.specs.spec import Spec

_MOST_WARMING: Final = 100  # batches: a memory of 10,000 slots takes long to fill


@dataclass(frozen=True)
class StepCost:
    """What was measured of one method.

    Attributes:
        method: What the spec calls it.
        is_unit: Whether its step is the unit.
        seconds: CPU time of a step, the median.
        cost: In steps of ER made in the same rounds: the median of the ratios.
        low: A quarter of the ratios are below.
        high: A quarter are above.
        filled: Slots of the memory that held an example when measuring began.
        capacity: Slots of the memory, 0 without one.
    """

    method: str
    is_unit: bool
    seconds: float
    cost: float
    low: float
    high: float
    filled: int
    capacity: int


def unit_of(spec: Spec) -> Spec:
    """Return the spec with one method, whose step is the unit: `er`, one update, no augmentation.

    All else is as the spec has it: data, model, optimizer, replay, passes, numbers.
    """
    er, problems = read_method("er", {"er": {}})
    assert er is not None, problems
    return replace(
        spec,
        compare=("er",),
        methods={"er": er},
        learner=spec.learner.model_copy(update={"iterations": 1}),
        named=replace(spec.named, augment=[]),
    )


def step_costs(
    spec: Spec,
    *,
    methods: Sequence[str] | None = None,
    memory: int | None = None,
    steps: int = 50,
    clock: Callable[[], float] = time.process_time,
) -> list[StepCost]:
    """Measure a step of each method.

    All methods learn from the same stream, batch by batch: each batch is a round, in which each
    method makes a step, those of every other round in the other order. Rounds count once the memory
    is full, or after 100 batches. If the stream is too short, it begins again.

    Args:
        spec: What to run. Its budget and costs are left aside.
        methods: Names of its methods; its `compare` if None.
        memory: Slots of the memory; the first size of the spec if None.
        steps: How many rounds count.
        clock: Tells the seconds of CPU time so far.
    """
    spec = without_budget(spec)
    sizes = None if memory is None else [memory]
    asked = cells(spec, methods=methods, memory=sizes)
    first = max(cell.capacity for cell in asked)
    asked = [cell for cell in asked if cell.capacity in (0, first)]
    [unit] = cells(unit_of(spec), memory=[first] if first else sizes)[:1]
    rivals = [_Rival(cell, clock) for cell in (unit, *asked)]
    warming = min(_MOST_WARMING, -(-unit.capacity // rivals[0].batch_size))
    for number in range(warming + 1):
        _round(rivals, number)
    filled = [rival.filled for rival in rivals]
    rounds = [_round(rivals, number) for number in range(steps)]
    of_unit = [times[0] for times in rounds]
    found = []
    for place, cell in enumerate(asked, start=1):
        times = [times[place] for times in rounds]
        ratios = [mine / its for mine, its in zip(times, of_unit, strict=True)]
        low, _, high = quantiles(ratios, n=4, method="inclusive")
        found.append(
            StepCost(
                cell.method,
                is_unit(cell, spec),
                median(times),
                median(ratios),
                low,
                high,
                filled[place],
                cell.capacity,
            )
        )
    return found


class _Rival:
    """A method with a stream of its own, the same for all."""

    def __init__(self, cell: Cell, clock: Callable[[], float]) -> None:
        built, self._learner = build(cell, 0)
        self._stream, self._clock = built.stream, clock
        self._cast = casting(cell.learner.get("dtype", "float32"))

    @property
    def batch_size(self) -> int:
        return self._stream.batch_size

    @property
    def filled(self) -> int:
        return 0 if self._learner.memory is None else len(self._learner.memory)

    def step(self) -> float:
        """Learn from the next batch, and return the time of that."""
        if self._stream.batches_given == len(self._stream):
            self._stream = self._stream.fresh()
        inputs, labels = next(self._stream)
        start = self._clock()
        with self._cast():
            self._learner.observe(inputs, labels)
        return self._clock() - start


def _round(rivals: Sequence[_Rival], number: int) -> list[float]:
    """Let each make a step, in one order or the other, and return the times in the one."""
    if number % 2:
        return [rival.step() for rival in reversed(rivals)][::-1]
    return [rival.step() for rival in rivals]
