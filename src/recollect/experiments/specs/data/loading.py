"""From the data settings of a cell to a benchmark."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from recollect.benchmarks import Benchmark
from recollect.benchmarks.groups import benchmark_from_groups
from recollect.benchmarks.scaling import as_given, centred, unit
from recollect.benchmarks.test_part import split_off
from recollect.benchmarks.usual import is_colour_image
from recollect.datasets import Examples, LabelledData, load
from recollect.errors import DataError
from recollect.experiments.specs.cell import Cell
from recollect.experiments.specs.data.settings import digest
from recollect.experiments.specs.data.sources import SOURCES, Part
from recollect.experiments.specs.own_parts import load_called
from recollect.streams import Stream, blurred_boundaries
from recollect.streams.split_classes import class_groups

Settings = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class _Loaded:
    """Data of the user's, read once per process.

    Attributes:
        data: Training and test part. By time, the training part is in the order of time.
        train_groups: The segment of each training example; None where classes are the segments.
        test_groups: The segment of each test example.
        names: Of the segments.
    """

    data: LabelledData
    train_groups: Tensor | None = None
    test_groups: Tensor | None = None
    names: tuple[str, ...] = ()


def own_benchmark(cell: Cell, seed: int) -> Benchmark:
    """Build the benchmark of a cell whose data is the user's.

    Raises:
        ValueError, DataError: The data is not what the cell speaks of, or cannot be cut so.
    """
    if "benchmark" in cell.parts:
        return _made(cell, seed)
    settings = cell.data
    loaded = _loaded(json.dumps(settings, sort_keys=True))
    train_groups, test_groups, names = _groups(loaded, settings["cut"], seed)
    stream = cell.stream
    if stream.get("num_segments") is not None:
        names = names[: stream["num_segments"]]
    built = benchmark_from_groups(
        replace(loaded.data, name=cell.benchmark),
        train_groups=train_groups,
        test_groups=test_groups,
        names=names,
        examples_per_segment=stream["examples_per_segment"],
        validation_per_segment=stream["validation_per_segment"] or 0,
        keeps_order=settings["cut"]["by"] == "time",
        seed=seed,
        batch_size=stream["batch_size"],
        transform=_scaling(settings.get("scaling"), loaded.data),
    )
    if (width := settings["cut"].get("blur")) is None:
        return built
    return replace(built, stream=blurred_boundaries(built.stream, width=width, seed=seed))


def _made(cell: Cell, seed: int) -> Benchmark:
    """Call the user's function."""
    part = cell.parts["benchmark"]
    made = load_called(part["where"], part["sha256"])(seed=seed, **cell.data)
    if not isinstance(made, Benchmark):
        raise TypeError(
            f"`{part['where']}` returned a {type(made).__name__}; return what "
            "`recollect.benchmarks.benchmark_from` or one of its kin builds."
        )
    size = cell.stream["batch_size"]
    if size is not None and size != made.stream.batch_size:
        stream = made.stream
        plan = replace(stream.plan, batch_size=size)
        made = replace(made, stream=Stream(stream.examples, stream.segments, plan))
    return made


@lru_cache(maxsize=1)  # a worker runs many cells of one benchmark
def _loaded(described: str) -> _Loaded:
    settings = json.loads(described)
    kind, cut = settings["kind"], settings["cut"]
    if kind == "set":
        return _Loaded(load(settings["where"]))
    train = _read(kind, settings, settings, cut)
    held_out = settings["test"]
    if "share" in held_out:
        return _with_share(train, cut, held_out["share"])
    test_settings = {**settings, **held_out}
    test = _read(kind, test_settings, test_settings, cut, train.class_names)
    if cut["by"] == "time":
        keys, tested = _as_times(train.column), _as_times(test.column)
        order = sorted(range(len(keys)), key=keys.__getitem__)
        train_groups = _equal_parts(len(order), cut["segments"])
        edges = [keys[order[i]] for i in (train_groups.diff() > 0).nonzero().flatten().tolist()]
        groups = [sum(key > edge for edge in edges) for key in tested]
        data = _joined(train.examples.take(torch.tensor(order)), test.examples, train)
        return _Loaded(data, train_groups, torch.tensor(groups), _time_names(keys, order, cut))
    data = _joined(train.examples, test.examples, train)
    if cut["by"] == "class":
        return _Loaded(data)
    names = sorted({str(value) for value in train.column})
    return _Loaded(data, _codes(train.column, names), _codes(test.column, names), tuple(names))


def _with_share(train: Part, cut: Settings, share: float) -> _Loaded:
    """Cut the data into segments first, and then hold the share out of each, or of each class."""
    examples, groups = train.examples, None
    names: tuple[str, ...] = ()
    if cut["by"] == "time":
        keys = _as_times(train.column) if len(train.column) else [*range(len(examples))]
        order = sorted(range(len(keys)), key=keys.__getitem__)
        examples = examples.take(torch.tensor(order))
        groups, names = _equal_parts(len(order), cut["segments"]), _time_names(keys, order, cut)
    elif cut["by"] == "column":
        names = tuple(sorted({str(value) for value in train.column}))
        groups = _codes(train.column, names)
    kept, held_out = split_off(examples.labels if groups is None else groups, share)
    data = _joined(examples.take(kept), examples.take(held_out), train)
    if groups is None:
        return _Loaded(data)
    return _Loaded(data, groups[kept], groups[held_out], names)


def _read(
    kind: str,
    place: Settings,
    options: Settings,
    cut: Settings,
    classes: Sequence[str] | None = None,
) -> Part:
    source = SOURCES[kind](place["where"], options)
    if source.files() and digest(source) != place["sha256"]:
        raise DataError(
            f"`{place['where']}` was changed since the command was given; give it again."
        )
    return source.read(cut.get("column"), classes)


def _joined(train: Examples, test: Examples, part: Part) -> LabelledData:
    if not len(test):
        raise DataError("no example is left for tests; give a larger share, or more data.")
    highest = max(int(train.labels.max()), int(test.labels.max()))
    names = part.class_names
    if highest >= len(names):  # numbers that only the test part has
        names = tuple(map(str, range(highest + 1)))
    return LabelledData("own", train, test, names)


def _groups(loaded: _Loaded, cut: Settings, seed: int) -> tuple[Tensor, Tensor, tuple[str, ...]]:
    """Return the segments of training and test examples, and their names."""
    if loaded.train_groups is not None and loaded.test_groups is not None:
        return loaded.train_groups, loaded.test_groups, loaded.names
    data = loaded.data
    if "classes" in cut:
        numbers = {name: label for label, name in enumerate(data.class_names)}
        if unknown := [n for group in cut["classes"] for n in group if n not in numbers]:
            raise DataError(
                f"`data.classes` names {unknown[0]!r}; the classes are "
                f"{', '.join(data.class_names)[:200]}."
            )
        classes = [tuple(numbers[name] for name in group) for group in cut["classes"]]
    else:
        classes = class_groups(
            data.train.labels,
            classes_per_segment=cut["classes_per_segment"],
            class_order=cut.get("class_order", "ascending"),
            seed=seed,
        )
    of_class = torch.full((len(data.class_names),), -1)
    for number, group in enumerate(classes):
        of_class[list(group)] = number
    names = tuple(", ".join(data.class_names[label] for label in group) for group in classes)
    return of_class[data.train.labels], of_class[data.test.labels], names


def _codes(values: Sequence[Any], names: Sequence[str]) -> Tensor:
    numbers = {name: number for number, name in enumerate(names)}
    return torch.tensor([numbers.get(str(value), -1) for value in values])


def _equal_parts(count: int, parts: int) -> Tensor:
    if parts > count:
        raise DataError(f"`data.segments` is {parts}, but there are {count} examples.")
    sizes = torch.tensor([len(part) for part in torch.arange(count).tensor_split(parts)])
    return torch.repeat_interleave(torch.arange(parts), sizes)


def _time_names(keys: Sequence[Any], order: Sequence[int], cut: Settings) -> tuple[str, ...]:
    """Name each segment of time after its number and its first moment."""
    groups = _equal_parts(len(order), cut["segments"])
    firsts = [int((groups == number).nonzero()[0]) for number in range(cut["segments"])]
    return tuple(f"{number + 1}: from {keys[order[i]]}" for number, i in enumerate(firsts))


def _as_times(values: Sequence[Any]) -> list[Any]:
    """Return values that can be ordered in time: numbers, moments, or names as they are."""
    for kind in (int | float, datetime):
        if all(isinstance(value, kind) for value in values):
            return list(values)
    texts = [str(value) for value in values]
    for read in (float, datetime.fromisoformat):
        try:
            return [read(text) for text in texts]
        except ValueError:
            continue
    return texts  # as file names are: by letters


def _scaling(name: str | None, data: LabelledData) -> Callable[[Tensor], Tensor]:
    if name == "standard":
        return _standardised(data.train.inputs)
    if name == "as-given" or data.train.inputs.dtype != torch.uint8:
        return as_given
    # Unlike the usual one, it does not flatten: a model of the user's may take images.
    return centred if is_colour_image(data.train.inputs) else unit


def _standardised(inputs: Tensor) -> "_Standardised":
    """Take mean and spread in pieces: widened whole, images would fill the memory."""
    shape = inputs.shape[1:]
    total, squares = (torch.zeros(shape, dtype=torch.float64) for _ in range(2))
    for piece in torch.split(inputs, 1000):
        total += piece.double().sum(0)
    mean = total / len(inputs)
    for piece in torch.split(inputs, 1000):
        squares += (piece.double() - mean).square().sum(0)
    spread = (squares / len(inputs)).sqrt()
    spread[spread == 0] = 1.0
    return _Standardised(mean.float(), spread.float())


class _Standardised:
    """Subtract the mean of the training part and divide by its spread, input by input."""

    def __init__(self, mean: Tensor, spread: Tensor) -> None:
        self._mean, self._spread = mean, spread

    def __call__(self, inputs: Tensor) -> Tensor:
        scaled: Tensor = (inputs.float() - self._mean) / self._spread
        return scaled
