"""From a cell and a seed to a benchmark and a learner."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

from torch import nn

import recollect
from recollect.augment import AUGMENTATIONS, Compose
from recollect.benchmarks import Benchmark
from recollect.benchmarks.scaling import flat_unit, unit
from recollect.choices import LEARNER, PARTS
from recollect.datasets import LabelledData, load
from recollect.experiments.specs.arrival import arriving
from recollect.experiments.specs.cell import Cell
from recollect.experiments.specs.data.loading import own_benchmark
from recollect.experiments.specs.named.optimizer import Schedule, build_optimizer
from recollect.experiments.specs.named.precision import with_precision
from recollect.experiments.specs.named.signatures import parameters_of
from recollect.experiments.specs.own_parts import load_called, with_own_parts
from recollect.learner import Learner
from recollect.models import BUILDERS, seeded, with_projection


def build(cell: Cell, seed: int, *, measure_all: bool = False) -> tuple[Benchmark, Learner]:
    """Build what a cell describes: a benchmark at its beginning, a learner that knows nothing.

    Args:
        cell: What to build.
        seed: All randomness follows from it.
        measure_all: As for `Learner`: for who looks at inner products, and changes nothing.
    """
    # Not by the protocol: `languages-split`, which no paper defines, is "own" as well.
    is_own = bool(cell.data) or "benchmark" in cell.parts
    built = own_benchmark(cell, seed) if is_own else _benchmark(cell, seed)
    built = replace(built, stream=arriving(built.stream, cell.stream, seed))
    method = with_own_parts(cell.base, {key: v for key, v in cell.parts.items() if key in PARTS})
    model, transform = _model(cell, built, seed), built.transform
    if method.objective.takes_projections:
        model = seeded(partial(with_projection, model), seed)
    if cell.learner.get("augment") and transform is flat_unit:
        transform = unit  # images are augmented, and an MLP flattens them by itself
    model, transform = with_precision(model, transform, cell.learner.get("dtype", "float32"))
    # A method without a memory takes no capacity and ignores these two.
    sizes = {"capacity": cell.capacity, "replay": cell.learner["replay"]} if cell.capacity else {}
    learner = recollect.method(
        method,
        model,
        build_optimizer(cell.optimizer, model.parameters()),
        seed=seed,
        transform=transform,
        augment=_augmentation(cell.learner.get("augment", [])),
        **{name: cell.learner[name] for name in LEARNER if name in cell.learner},
        measure_all=measure_all,
        **sizes,
        **cell.options,
    )
    return built, learner


def _benchmark(cell: Cell, seed: int) -> Benchmark:
    return recollect.benchmark(
        cell.benchmark,
        seed=seed,
        protocol=cell.protocol,
        data=_loaded(cell.stream["data"]),
        batch_size=cell.stream["batch_size"],
        num_segments=cell.stream.get("num_segments"),
        examples_per_segment=cell.stream["examples_per_segment"],
        validation_per_segment=cell.stream["validation_per_segment"],
        has_random_groups=cell.stream.get("groups") == "random",
    )


# A worker runs many cells of one benchmark; decoding its data once is enough.
@lru_cache(maxsize=1)
def _loaded(name: str) -> LabelledData:
    return load(name)


def build_schedule(cell: Cell, built: Benchmark, learner: Learner) -> Schedule | None:
    """Build what moves the learning rate along the stream; None if it stays."""
    if not cell.scheduler:
        return None
    return Schedule(cell.scheduler, learner.optimizer, num_batches=len(built.stream))


def _model(cell: Cell, built: Benchmark, seed: int) -> nn.Module:
    name = cell.model["name"]
    options = {key: v for key, v in cell.model.items() if key != "name" and v is not None}
    if name == "usual":
        return built.model()
    called: Callable[..., object]
    if part := cell.parts.get("model"):
        called = load_called(part["where"], part["sha256"])
    else:
        called = BUILDERS[name]
    facts = model_facts(built)
    given = {key: facts[key] for key in parameters_of(called) if key in facts}

    def make() -> nn.Module:
        made = called(**given, **options)
        if not isinstance(made, nn.Module):
            told = f"`{name}` made a {type(made).__name__}"
            raise TypeError(f"{told}; name a class or function that makes an nn.Module.")
        return made

    return seeded(make, seed)


def model_facts(built: Benchmark) -> dict[str, Any]:
    """Return what the data says of a model's arguments, by their names."""
    shape = tuple(built.transform(built.stream.examples.inputs[:1]).shape[1:])
    return {
        "num_classes": built.num_classes,
        "input_shape": shape,
        "in_features": math.prod(shape),
        "in_channels": shape[0] if len(shape) == 3 else 1,
        "image_size": shape[-1] if shape else 1,
        "length": shape[0] if shape else 1,
    }


def _augmentation(described: list[dict[str, Any]]) -> Callable[[Any], Any] | None:
    steps = []
    for table in described:
        options = {key: _as_given(value) for key, value in table.items() if key != "name"}
        steps.append(AUGMENTATIONS[table["name"]](**options))
    return Compose(*steps) if steps else None


def _as_given(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value
