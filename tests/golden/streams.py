"""Small seeded streams: classes drift from the first two to the last two."""

from collections.abc import Callable, Iterable, Iterator

import torch
from torch import Tensor

from recollect.datasets.examples import Examples

CLASSES = 6
FEATURES = 8
NUM_TOKENS = 12
POSITIONS = 5
BATCH = 4

# So many batches, with real numbers drawn in a precision.
Stream = Callable[[int, torch.dtype], Iterator[tuple[object, Tensor]]]
Images = Callable[[int, torch.dtype], Iterator[tuple[Tensor, Tensor]]]


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(3)


def _labels(rng: torch.Generator, step: int, steps: int, count: int = BATCH) -> Tensor:
    first = step * (CLASSES - 1) // steps
    return first + torch.randint(2, (count,), generator=rng)


def features(steps: int, dtype: torch.dtype) -> Iterator[tuple[Tensor, Tensor]]:
    rng = _generator()
    centres = torch.randn(CLASSES, FEATURES, generator=rng, dtype=dtype)
    for step in range(steps):
        labels = _labels(rng, step, steps)
        yield (
            centres[labels] + 0.7 * torch.randn(BATCH, FEATURES, generator=rng, dtype=dtype),
            labels,
        )


def many_at_first(steps: int, dtype: torch.dtype) -> Iterator[tuple[Tensor, Tensor]]:
    """A first batch that fills a memory large enough for victims to be drawn by proposals."""
    rng = _generator()
    centres = torch.randn(CLASSES, FEATURES, generator=rng, dtype=dtype)
    for step in range(steps):
        labels = _labels(rng, step, steps, 16_400 if step == 0 else BATCH)
        yield (
            centres[labels] + 0.7 * torch.randn(len(labels), FEATURES, generator=rng, dtype=dtype),
            labels,
        )


def real_numbers(steps: int, dtype: torch.dtype) -> Iterator[tuple[Tensor, Tensor]]:
    """The sum of the features, to be predicted from them."""
    for inputs, _ in features(steps, dtype):
        yield inputs, inputs.sum(1)


def images(side: int) -> Images:
    def of_steps(steps: int, dtype: torch.dtype) -> Iterator[tuple[Tensor, Tensor]]:
        rng = _generator()
        centres = torch.randn(CLASSES, 3, side, side, generator=rng, dtype=dtype)
        for step in range(steps):
            labels = _labels(rng, step, steps)
            noise = torch.randn(BATCH, 3, side, side, generator=rng, dtype=dtype)
            yield centres[labels] + noise, labels

    return of_steps


def bytes_of_images(steps: int, dtype: torch.dtype) -> Iterator[tuple[Tensor, Tensor]]:
    for inputs, labels in images(8)(steps, dtype):
        yield (inputs * 40 + 128).clamp(0, 255).to(torch.uint8), labels


def of_the_library(
    build: Callable[[Examples], Iterable[tuple[object, Tensor]]], batches: Images
) -> Stream:
    """A stream of the library's own over the examples of all batches."""

    def of_steps(steps: int, dtype: torch.dtype) -> Iterator[tuple[object, Tensor]]:
        inputs, labels = map(torch.cat, zip(*batches(steps, dtype), strict=True))
        yield from build(Examples(inputs, labels))

    return of_steps


def tokens(steps: int, dtype: torch.dtype) -> Iterator[tuple[Tensor, Tensor]]:
    rng = _generator()
    for step in range(steps):
        labels = _labels(rng, step, steps)
        yield _words(rng, labels), labels


def captioned_images(steps: int, dtype: torch.dtype) -> Iterator[tuple[dict[str, Tensor], Tensor]]:
    rng = torch.Generator().manual_seed(4)
    for image, labels in images(8)(steps, dtype):
        yield {"image": image, "tokens": _words(rng, labels)}, labels


def _words(rng: torch.Generator, labels: Tensor) -> Tensor:
    """Words of which two belong to each class."""
    own = 2 * labels[:, None] + torch.randint(2, (BATCH, POSITIONS), generator=rng)
    any_word = torch.randint(NUM_TOKENS, (BATCH, POSITIONS), generator=rng)
    is_own = torch.rand(BATCH, POSITIONS, generator=rng) < 0.6
    return torch.where(is_own, own, any_word)
