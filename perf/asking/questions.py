"""Every question by name: what `python -m perf` asks, in order."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from perf import (
    capacity,
    command,
    compiled,
    growth,
    models,
    peak_memory,
    profiles,
    roofline,
    step_cost,
    whole_stream,
)
from perf.asking.answer import Answer
from perf.images import augmentation
from perf.peers import compare
from perf.running import workers

ROOT: Final = Path(__file__).parents[2]
Ask = Callable[[bool], Answer]  # whether a quick trial will do


def _step_cost(shape: str, is_quick: bool) -> Answer:
    return (
        step_cost.measure(shape, repetitions=2, count=1) if is_quick else step_cost.measure(shape)
    )


def _models(is_quick: bool) -> Answer:
    return models.measure(repetitions=2) if is_quick else models.measure()


def _growth(is_quick: bool) -> Answer:
    return growth.measure(repetitions=2, count=2) if is_quick else growth.measure()


def _profiles(is_quick: bool) -> Answer:
    return profiles.measure(shapes=("mlp",), share=0.05) if is_quick else profiles.measure()


def _whole_stream(is_quick: bool) -> Answer:
    return whole_stream.measure(repetitions=1) if is_quick else whole_stream.measure()


def _peers(shape: str, is_quick: bool) -> Answer:
    return compare.measure(shape, repetitions=1) if is_quick else compare.measure(shape)


def _capacity(is_quick: bool) -> Answer:
    return capacity.measure(repetitions=2, steps=5) if is_quick else capacity.measure()


def _peak_memory(is_quick: bool) -> Answer:
    return peak_memory.measure(repetitions=1) if is_quick else peak_memory.measure()


def _workers(is_quick: bool) -> Answer:
    return workers.measure(repetitions=1, seeds=2, steps=500) if is_quick else workers.measure()


def _roofline(is_quick: bool) -> Answer:
    return roofline.measure(repetitions=2) if is_quick else roofline.measure()


def _compiled(is_quick: bool) -> Answer:
    return compiled.measure(repetitions=2, shapes=("mlp",)) if is_quick else compiled.measure()


def _augmentation(is_quick: bool) -> Answer:
    return augmentation.measure(repetitions=2) if is_quick else augmentation.measure()


def _command(is_quick: bool) -> Answer:
    return command.measure(repetitions=1) if is_quick else command.measure()


def _printed(title: str, module: str, *options: str, is_quick: bool = False) -> Answer:
    """Ask a question that prints its answer."""
    del is_quick
    ended = subprocess.run(
        [sys.executable, "-m", module, *options],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    said = ended.stdout.replace(str(ROOT), ".").replace(str(Path.home()), "~").rstrip()
    return Answer(title, " ".join(["python -m", module, *options]), {}, printed=said)


def _engines(is_quick: bool) -> Answer:
    repetitions = "1" if is_quick else "3"
    return _printed(
        "Engines of per-example gradients", "perf.engines", "--repetitions", repetitions
    )


def _convolutions(is_quick: bool) -> Answer:
    return _printed(
        "Ways to write a convolution's gradients out", "perf.images.convolutions", is_quick=is_quick
    )


def _memory_order(is_quick: bool) -> Answer:
    return _printed("Images channels last", "perf.memory_order", is_quick=is_quick)


def _streams(is_quick: bool) -> Answer:
    return _printed("What streaming costs", "perf.streams", is_quick=is_quick)


def _runner_overhead(is_quick: bool) -> Answer:
    pairs = "2" if is_quick else "9"
    return _printed(
        "What a run costs beside its learning", "perf.running.runner_overhead", "er", pairs
    )


QUESTIONS: Final[Mapping[str, Ask]] = {
    "step-cost-mlp": partial(_step_cost, "mlp"),
    "step-cost-cifar": partial(_step_cost, "cifar"),
    "step-cost-mini": partial(_step_cost, "mini"),
    "step-cost-transformer": partial(_step_cost, "transformer"),
    "models": _models,
    "profiles": _profiles,
    "growth": _growth,
    "whole-stream": _whole_stream,
    "peers-mlp": partial(_peers, "mlp"),
    "peers-cifar": partial(_peers, "cifar"),
    "capacity": _capacity,
    "peak-memory": _peak_memory,
    "workers": _workers,
    "roofline": _roofline,
    "compiled": _compiled,
    "augmentation": _augmentation,
    "command": _command,
    "engines": _engines,
    "convolutions": _convolutions,
    "memory-order": _memory_order,
    "streams": _streams,
    "runner-overhead": _runner_overhead,
}
