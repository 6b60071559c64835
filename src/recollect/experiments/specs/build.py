"""From a cell and a seed to a benchmark and a learner."""

import math
from functools import lru_cache, partial

import torch
from torch import nn

import recollect
from recollect.benchmarks import Benchmark
from recollect.datasets import LabelledData, load
from recollect.experiments.specs.cell import Cell
from recollect.experiments.specs.own_parts import with_own_parts
from recollect.learner import Learner
from recollect.models import mlp, reduced_resnet18, seeded


def build(cell: Cell, seed: int) -> tuple[Benchmark, Learner]:
    """Build what a cell describes: a benchmark at its beginning, a learner that knows nothing."""
    built = recollect.benchmark(
        cell.benchmark,
        seed=seed,
        protocol=cell.protocol,
        data=_loaded(cell.stream["data"]),
        batch_size=cell.stream["batch_size"],
        num_segments=cell.stream.get("num_segments"),
        examples_per_segment=cell.stream["examples_per_segment"],
        validation_per_segment=cell.stream["validation_per_segment"],
    )
    model = _model(cell, built, seed)
    # A method without a memory takes no capacity and ignores these two.
    sizes = {"capacity": cell.capacity, "replay": cell.learner["replay"]} if cell.capacity else {}
    learner = recollect.method(
        with_own_parts(cell.base, cell.parts),
        model,
        _optimizer(cell, model),
        seed=seed,
        transform=built.transform,
        iterations=cell.learner["iterations"],
        passes=cell.learner["passes"],
        weighs=cell.learner.get("weighs", "losses"),
        **sizes,
        **cell.options,
    )
    return built, learner


# A worker runs many cells of one benchmark; decoding its data once is enough.
@lru_cache(maxsize=1)
def _loaded(name: str) -> LabelledData:
    return load(name)


def _model(cell: Cell, built: Benchmark, seed: int) -> nn.Module:
    name, hidden = cell.model["name"], cell.model["hidden"]
    shape = built.stream.examples.inputs.shape[1:]
    if name == "mlp":
        widths = (100, 100) if hidden is None else hidden
        return seeded(partial(mlp, math.prod(shape), built.num_classes, hidden=widths), seed)
    if name == "reduced-resnet18":
        norm = cell.model.get("norm", "batch")
        resnet = partial(reduced_resnet18, built.num_classes, image_size=shape[-1], norm=norm)
        return seeded(resnet, seed)
    return built.model()


def _optimizer(cell: Cell, model: nn.Module) -> torch.optim.Optimizer:
    lr, weight_decay = cell.optimizer["lr"], cell.optimizer["weight_decay"]
    if cell.optimizer["name"] == "adam":
        return torch.optim.Adam(model.parameters(), lr=lr, weight_decay=weight_decay)
    momentum = cell.optimizer["momentum"]
    return torch.optim.SGD(model.parameters(), lr=lr, momentum=momentum, weight_decay=weight_decay)
