"""What a run costs beside its learning: `python -m perf.running.runner_overhead [METHOD] [PAIRS]`.

A whole run with its record, curves of the memory and checkpoints, against a bare loop over the same
stream. Both build the benchmark and the learner; neither evaluates, since how much of that one
wants is a setting, not a cost of the runner. The two alternate, so that a busy machine hits both.

On a busy machine the difference of two long times is noise. So the runner is also timed alone: the
same run with a learner whose steps are played back, less building and streaming.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import dataclasses
import statistics
import sys
import tempfile
import time
from collections.abc import Callable

import torch
from torch import Tensor

from recollect.benchmarks import Benchmark
from recollect.experiments.records.record import CurvePoint
from recollect.experiments.records.store import Store
from recollect.experiments.running import execute as executing
from recollect.experiments.running.evaluator import Looker
from recollect.experiments.running.execute import execute
from recollect.experiments.specs.build import build
from recollect.experiments.specs.cell import Cell, cells
from recollect.experiments.specs.configs import config_path
from recollect.experiments.specs.request import Request, requests
from recollect.experiments.specs.spec import load_spec
from recollect.learner import Learner, StepReport

_LIMIT = 0.03


def main() -> None:
    torch.set_num_threads(1)
    method = sys.argv[1] if len(sys.argv) > 1 else "er"
    pairs = int(sys.argv[2]) if len(sys.argv) > 2 else 15
    spec = load_spec(config_path("mnist-split"))
    (request,) = requests(cells(spec, methods=[method]), [0])
    Looker.row = _no_row  # type: ignore[method-assign]
    Looker.point = _no_point  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder)
        store.prepare()
        bare_loop(request)  # decodes the data, which both then share
        whole_run(request, store)
        times = [
            (timed(lambda: bare_loop(request)), timed(lambda: whole_run(request, store)))
            for _ in range(pairs)
        ]
        own = [own_cost(request, store) for _ in range(pairs)]
    bare = statistics.median(cpu for (cpu, _), _ in times)
    overheads = [whole[0] / alone[0] - 1 for alone, whole in times]
    wall = statistics.median(whole[1] / alone[1] - 1 for alone, whole in times)
    overhead = statistics.median(overheads)
    low, _, high = statistics.quantiles(overheads, n=4)
    print(f"MNIST-S, {method}, {pairs} alternated pairs: a bare loop takes {bare:.2f} s of CPU;")
    print(
        f"a run costs {overhead:+.1%} beside it (quartiles {low:+.1%} to {high:+.1%}), "
        f"by wall clock {wall:+.1%} (limit {_LIMIT:.0%})"
    )
    alone = statistics.median(own)
    print(
        f"the runner alone takes {alone * 1e3:.1f} ms of CPU: {alone / bare:.1%} of the bare loop"
    )


def own_cost(request: Request, store: Store) -> float:
    """Time a run whose learner does nothing, less the same stream without a runner."""
    benchmark, learner = build(request.cell, request.seed)
    reports = [learner.observe(inputs, labels) for inputs, labels in benchmark.stream]

    def played_back(cell: Cell, seed: int) -> tuple[Benchmark, Learner]:
        del cell, seed
        steps = iter(reports)

        def observe(inputs: object, labels: Tensor) -> StepReport:
            del inputs, labels
            report = next(steps)
            learner.seen = report.seen
            return report

        learner.observe = observe  # type: ignore[method-assign]
        return dataclasses.replace(benchmark, stream=benchmark.fresh_stream()), learner

    def nothing() -> None:
        replayed, idle = played_back(request.cell, request.seed)
        for inputs, labels in replayed.stream:
            idle.observe(inputs, labels)

    usual, executing.build = executing.build, played_back
    try:
        return timed(lambda: whole_run(request, store))[0] - timed(nothing)[0]
    finally:
        executing.build = usual


def bare_loop(request: Request) -> None:
    benchmark, learner = build(request.cell, request.seed)
    for inputs, labels in benchmark.stream:
        learner.observe(inputs, labels)


def whole_run(request: Request, store: Store) -> None:
    with store.claimed(request):
        record = execute(request, checkpoints=store.checkpoint_folder(request))
        path = store.add(request, record)
        store.forget_checkpoint(request)
    path.unlink()


def timed(act: Callable[[], None]) -> tuple[float, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    act()
    return time.process_time() - cpu, time.perf_counter() - wall


def _no_row(looker: Looker, learner: Learner) -> list[int]:
    del learner
    return [0] * len(looker.segment_names)


def _no_point(looker: Looker, learner: Learner, batches_given: int) -> CurvePoint:
    del looker, batches_given
    return CurvePoint(learner.seen, (0,), (1,))


if __name__ == "__main__":
    main()
