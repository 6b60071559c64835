"""What is traced: one row per scenario. A new one is a row here and `make golden`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from tests.golden import models, streams
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import Optimizer

from recollect import METHODS, Method
from recollect.augment import ColourChange, Compose, RandomCrop, RandomFlip
from recollect.datasets.examples import Examples
from recollect.objectives import DarkExperience, SupervisedContrast
from recollect.retrieval import MaximallyInterfered, Uniform
from recollect.rules import PrincipalDirection, ProximalRule
from recollect.storage import Reservoir
from recollect.streams import (
    IterableStream,
    Stream,
    blurred_boundaries,
    blurred_classes,
    from_iterable,
    imbalanced,
    permuted_pixels,
    repeated_classes,
    rotated,
    split_classes,
    within_budget,
)

Build = Callable[[], nn.Module]
Transform = Callable[[object], object]


def momentum(model: nn.Module) -> Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.5)


def plain(model: nn.Module) -> Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.05)


def careful(model: nn.Module) -> Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.001)


def decaying(model: nn.Module) -> Optimizer:
    return torch.optim.SGD(
        model.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-3
    )


def adam(model: nn.Module) -> Optimizer:
    return torch.optim.Adam(model.parameters(), lr=0.01)


def two_rates(model: nn.Module) -> Optimizer:
    first, *others = model.parameters()
    groups: list[dict[str, Any]] = [{"params": [first], "lr": 0.02}, {"params": others}]
    return torch.optim.AdamW(groups, lr=0.005, weight_decay=0.1)


@dataclass(frozen=True)
class Scenario:
    """A learner and what it is given.

    Attributes:
        method: A method's name, or a row of parts.
        model: Built from a fixed seed.
        stream: Batches, one per step.
        options: Further options of `recollect.method`.
        transform: Makes the learner's transform, for a precision.
        optimizer: Built around the model.
        steps: Calls of `observe`.
        capacity: Slots of the memory.
        autocast: Whether `observe` is called under bfloat16, which leaves float64 as it is.
        resumed: Whether a saved learner is loaded into a new one half-way.
        frozen: Parameters that are not trained, by the beginning of their name.
        widened: Whether the head is replaced by a wider one half-way.
    """

    method: str | Method = "er"
    model: Build = models.perceptron
    stream: streams.Stream = streams.features
    options: Mapping[str, Any] = field(default_factory=dict)
    transform: Callable[[torch.dtype], Transform] | None = None
    optimizer: Callable[[nn.Module], Optimizer] = momentum
    steps: int = 20
    capacity: int = 20
    autocast: bool = False
    resumed: bool = False
    frozen: tuple[str, ...] = ()
    widened: bool = False


def squared_error(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs.squeeze(1) - targets).square()


def small_floats(dtype: torch.dtype) -> Transform:
    def transform(images: object) -> object:
        assert isinstance(images, Tensor)
        return images.to(dtype) / 255 - 0.5

    return transform


def noisy_floats(dtype: torch.dtype) -> Transform:
    """Augment: every pass sees draws of its own."""

    def transform(images: object) -> object:
        assert isinstance(images, Tensor)
        return images.to(dtype) / 255 - 0.5 + 0.1 * torch.randn(images.shape, dtype=dtype)

    return transform


def flipped_and_cropped(dtype: torch.dtype) -> Transform:
    augmented = Compose(RandomCrop(2), RandomFlip(), ColourChange(value_range=(-0.5, 0.5)))
    floats = small_floats(dtype)
    return lambda images: augmented(floats(images))


def blurred(examples: Examples) -> Stream:
    return blurred_boundaries(split_classes(examples, classes_per_segment=2, batch_size=4), width=4)


def mingled(examples: Examples) -> Stream:
    return blurred_classes(
        split_classes(examples, classes_per_segment=2, batch_size=4), disjoint=0.5, blur=0.3
    )


def returning(examples: Examples) -> Stream:
    return repeated_classes(
        split_classes(examples, classes_per_segment=2, batch_size=4), chance=0.4
    )


def hurried(examples: Examples) -> Stream:
    return within_budget(split_classes(examples, classes_per_segment=2, batch_size=4), cost=1.5)


def unequal(examples: Examples) -> Stream:
    return imbalanced(split_classes(examples, classes_per_segment=3, batch_size=4), factor=0.5)


def permuted(examples: Examples) -> Stream:
    return permuted_pixels(examples, num_segments=2, examples_per_segment=40, batch_size=4)


def turned(examples: Examples) -> Stream:
    return rotated(examples, angles=[0, 30], examples_per_segment=40, batch_size=4)


def read_once(examples: Examples) -> IterableStream:
    count = len(examples)
    parts = [examples.take(part) for part in torch.arange(count).tensor_split(count // 4)]
    return from_iterable([(part.inputs, part.labels) for part in parts])


def against_every_gradient(products: Tensor, squared_length: Tensor, lengths: Tensor) -> Tensor:
    """Pull hardest towards those that the update opposes."""
    return F.softplus(-products).sum() + 0.1 * squared_length + 0.0 * lengths.sum()


# What a method needs to have something to choose from with a memory this small.
_FOR_A_METHOD: Final[dict[str, dict[str, Any]]] = {
    "er-mir": {"candidates": 12},
    "er-p": {"step_size": 2.0},
    "er-pc": {"step_size": 2.0},
    "er-p-mir": {"candidates": 12, "step_size": 2.0},
    "er-pc-mir": {"candidates": 12, "step_size": 2.0},
    "er-w-mir": {"candidates": 12},
    "er-clip": {"replay_weight": 3.0},
    "er-clip-mir": {"candidates": 12, "replay_weight": 3.0},
    "gss": {"batches": 4, "batch_size": 4},
}
_MIR, _PGD, _GSS = (_FOR_A_METHOD[name] for name in ("er-mir", "er-p", "gss"))
_BOTH = _MIR | _PGD

_RESNET: Final[dict[str, Any]] = {
    "model": models.resnet,
    "stream": streams.images(25),
    "steps": 8,
}
_GROUP_NORM: Final[dict[str, Any]] = {"model": models.resnet_with_groups} | {
    key: _RESNET[key] for key in ("stream", "steps")
}
_IMAGES: Final[dict[str, Any]] = {"model": models.convolutions, "stream": streams.images(8)}
_BATCH_NORM: Final[dict[str, Any]] = {"model": models.batch_norm, "stream": streams.images(8)}
_CAPTIONED: Final[dict[str, Any]] = {"model": models.Captioned, "stream": streams.captioned_images}
_PIXELS: Final[dict[str, Any]] = {
    "model": models.perceptron_on_pixels,
    "stream": streams.bytes_of_images,
}
_PIXELS_ONLY: Final[dict[str, Any]] = {"stream": streams.bytes_of_images}


def _words(model: Build) -> dict[str, Any]:
    return {"model": model, "stream": streams.tokens}


_MOVED: Final = Compose(RandomCrop(1), RandomFlip())


def _named(name: str) -> Scenario:
    """Return the scenario that every method has, by its name."""
    options = dict(_FOR_A_METHOD.get(name, {}))
    suffix = name.rpartition("-")[2]
    if suffix in ("p", "pc"):
        options = _PGD | options
    if suffix == "clip":
        options = _FOR_A_METHOD["er-clip"] | options
    if not METHODS[name].augments:
        return Scenario(name, options=options, steps=50)
    small: dict[str, Any] = {"options": options | {"augment": _MOVED}, "steps": 20}
    if name == "scr":
        return Scenario(name, models.projecting, **_PIXELS_ONLY, **small, transform=small_floats)
    return Scenario(name, **_PIXELS, **small, transform=small_floats)


SCENARIOS: Final[Mapping[str, Scenario]] = {name: _named(name) for name in METHODS} | {
    # Optimizers.
    "plain-sgd er": Scenario("er", optimizer=plain),
    "plain-sgd er-p-mir": Scenario("er-p-mir", options=_BOTH, optimizer=plain),
    "nesterov er-c": Scenario("er-c", optimizer=decaying),
    "adam er": Scenario("er", optimizer=adam),
    "adam er-p-mir": Scenario("er-p-mir", options=_BOTH, optimizer=adam),
    "two-rates er-mir": Scenario("er-mir", options=_MIR, optimizer=two_rates),
    # Ways of passing, updates per batch.
    "separate er": Scenario("er", options={"passes": "separate"}),
    "separate er-p": Scenario("er-p", options=_PGD | {"passes": "separate"}),
    "separate er-w-mir": Scenario("er-w-mir", options=_MIR | {"passes": "separate"}),
    "grouped er-p": Scenario("er-p", options=_PGD | {"passes": "grouped", "groups": 2}),
    "joint groups er-p": Scenario("er-p", options=_PGD | {"groups": 2}),
    "two-iterations er": Scenario("er", options={"iterations": 2}),
    "two-iterations er-pc-mir": Scenario("er-pc-mir", options=_BOTH | {"iterations": 2}),
    # Storage: every reading of CRS, memories large enough for other ways to draw.
    "crs highest": Scenario("er-c", options={"pick": "highest", "margin_weight": 1.0}),
    "crs never": Scenario("er-c", options={"margins": "never"}),
    "crs replay": Scenario("er-c", options={"margins": "replay", "margin_weight": 1.0}),
    "crs both": Scenario("er-c", options={"margins": "both", "negative": "shift"}),
    "crs all": Scenario("er-c", options={"margins": "all", "pick": "highest", "age_offset": 2.0}),
    "crs within class": Scenario("er-c", options={"within_class": True}),
    "crs of many": Scenario("er-c", stream=streams.many_at_first, steps=6, capacity=16_384),
    "gss of many weights": Scenario(
        "gss",
        models.wide_perceptron,
        options={"batches": 5, "batch_size": 3},
        optimizer=careful,
        steps=14,
    ),
    "large memory er-mir": Scenario("er-mir", options={"candidates": 10}, capacity=100, steps=50),
    # Rules of the library that no named method has.
    "proximal": Scenario(
        Method("the framework", Reservoir, Uniform, ProximalRule),
        options={"objective": against_every_gradient, "step_size": 0.5, "steps": 2},
    ),
    # Objectives and predictors.
    "unseen er-ace": Scenario("er-ace", options={"against": "unseen"}),
    "separate er-ace-p": Scenario("er-ace-p", options=_PGD | {"passes": "separate"}),
    "resnet er-ace-p": Scenario("er-ace-p", **_RESNET, options=_PGD),
    "best er-mir": Scenario("er-mir", options=_MIR | {"beside": "best"}),
    "resumed der++": Scenario("der++", optimizer=adam, resumed=True),
    "dark er-p-mir": Scenario(
        Method("DER++-P-MIR", Reservoir, MaximallyInterfered, PrincipalDirection, DarkExperience),
        options=_BOTH | {"beta": 0.5},
    ),
    "contrast er-p": Scenario(
        Method("SCR-P", Reservoir, Uniform, PrincipalDirection, SupervisedContrast),
        models.projecting,
        streams.bytes_of_images,
        options=_PGD | {"augment": _MOVED},
        transform=small_floats,
    ),
    "resnet scr": Scenario("scr", **_RESNET, options={"augment": _MOVED}),
    "resumed er-ema": Scenario("er-ema", models.batch_norm, streams.images(8), resumed=True),
    # Loss, transform, dropout.
    "own loss er-p": Scenario(
        "er-p", models.regression, streams.real_numbers, _PGD | {"loss": squared_error}
    ),
    "transform er-p-mir": Scenario("er-p-mir", **_PIXELS, options=_BOTH, transform=small_floats),
    "augmented er-pc-mir": Scenario("er-pc-mir", **_PIXELS, options=_BOTH, transform=noisy_floats),
    "flips and crops er": Scenario("er", **_PIXELS, transform=flipped_and_cropped),
    "dropout er": Scenario("er", models.perceptron_with_dropout),
    "dropout er-p": Scenario("er-p", models.perceptron_with_dropout, options=_PGD),
    "dropout er-mir": Scenario("er-mir", models.perceptron_with_dropout, options=_MIR),
    "dropout er-c": Scenario("er-c", models.perceptron_with_dropout),
    # A ResNet with BatchNorm, where examples mix.
    "resnet er": Scenario("er", **_RESNET),
    "resnet er-mir": Scenario("er-mir", **_RESNET, options=_MIR),
    "resnet er-c": Scenario("er-c", **_RESNET),
    "resnet er-p": Scenario("er-p", **_RESNET, options=_PGD),
    "resnet separate er-p-mir": Scenario(
        "er-p-mir", **_RESNET, options=_BOTH | {"passes": "separate"}
    ),
    "resnet grouped er-p": Scenario(
        "er-p", **_RESNET, options=_PGD | {"passes": "grouped", "groups": 2}
    ),
    "resnet contributions er-p": Scenario(
        "er-p", **_RESNET, options=_PGD | {"weighs": "contributions"}
    ),
    "resnet gss": Scenario("gss", **_RESNET | {"steps": 14}, options=_GSS),
    "batch norm a-gem": Scenario("a-gem", **_BATCH_NORM),
    "batch norm adam er-pc": Scenario("er-pc", **_BATCH_NORM, options=_PGD, optimizer=adam),
    # Other layers, where they do not.
    "group norm er-p": Scenario("er-p", **_GROUP_NORM, options=_PGD),
    "group norm gss": Scenario("gss", **_GROUP_NORM, options=_GSS),
    "convolutions er": Scenario("er", **_IMAGES),
    "convolutions er-p": Scenario("er-p", **_IMAGES, options=_PGD),
    "convolutions gss": Scenario("gss", **_IMAGES, options=_GSS),
    "late convolutions er-p": Scenario(
        "er-p", models.late_convolutions, streams.images(8), options=_PGD
    ),
    "convolution and embedding er": Scenario("er", **_CAPTIONED),
    "convolution and embedding er-pc-mir": Scenario("er-pc-mir", **_CAPTIONED, options=_BOTH),
    "transformer er-p": Scenario("er-p", **_words(models.transformer), options=_PGD),
    "transformer er-pc-mir": Scenario("er-pc-mir", **_words(models.transformer), options=_BOTH),
    "transformer gss": Scenario("gss", **_words(models.transformer), options=_GSS),
    "transformer with dropout er": Scenario("er", **_words(models.transformer_with_dropout)),
    "transformer with dropout er-mir": Scenario(
        "er-mir", **_words(models.transformer_with_dropout), options=_MIR
    ),
    "sequence transformer er-p": Scenario(
        "er-p", **_words(models.sequence_transformer), options=_PGD
    ),
    "own attention er-p": Scenario("er-p", **_words(models.OwnAttention), options=_PGD),
    "own attention a-gem": Scenario("a-gem", **_words(models.OwnAttention)),
    "lstm er": Scenario("er", **_words(models.lstm)),
    "lstm er-p": Scenario("er-p", **_words(models.lstm), options=_PGD),
    "gru er-p": Scenario("er-p", **_words(models.gru), options=_PGD),
    "sequence first er-p": Scenario("er-p", **_words(models.SequenceFirst), options=_PGD),
    "routed er-p": Scenario("er-p", models.Routed, options=_PGD),
    # Streams of the library.
    "stream blurred": Scenario("er", stream=streams.of_the_library(blurred, streams.features)),
    "stream mingled": Scenario("er", stream=streams.of_the_library(mingled, streams.features)),
    "stream returning": Scenario("er", stream=streams.of_the_library(returning, streams.features)),
    "stream hurried": Scenario("er", stream=streams.of_the_library(hurried, streams.features)),
    "stream unequal": Scenario("er", stream=streams.of_the_library(unequal, streams.features)),
    "stream read once": Scenario("er", stream=streams.of_the_library(read_once, streams.features)),
    "stream permuted": Scenario(
        "er", models.perceptron_on_pixels, streams.of_the_library(permuted, streams.images(8))
    ),
    "stream turned": Scenario(
        "er",
        models.perceptron_on_pixels,
        streams.of_the_library(turned, streams.bytes_of_images),
        transform=small_floats,
    ),
    # What a user may do to a learner on its way.
    "autocast er-p": Scenario("er-p", options=_PGD, autocast=True),
    "autocast convolutions er-pc-mir": Scenario(
        "er-pc-mir", **_IMAGES, options=_BOTH, autocast=True
    ),
    "frozen er-p": Scenario("er-p", **_IMAGES, options=_PGD, frozen=("0.", "1.")),
    "resumed er-pc-mir": Scenario("er-pc-mir", options=_BOTH, optimizer=adam, resumed=True),
    "widened er-p": Scenario("er-p", options=_PGD, widened=True),
}
