"""What do crop, flip and colour cost beside the step that they augment?

CPU time of the three on 20 images of 32 pixels, as bytes and as floats, beside a step of ER with 10
incoming and 10 replayed images on the reduced ResNet18. Contestants alternate.

    python -m perf.images.augmentation
"""

from collections.abc import Callable
from typing import Final

import torch

from perf.asking.answer import Answer, lines_of, ratio
from perf.asking.measuring import alternate, cpu_seconds, one_thread
from perf.asking.targets import CIFAR
from recollect import method
from recollect.augment import ColourChange, Compose, RandomCrop, RandomFlip
from recollect.models import reduced_resnet18, seeded

STEP: Final = "a step of ER"
_CALLS: Final = 20  # of the augmentation per block: one alone is too short to time


def _step(images: torch.Tensor) -> Callable[[], float]:
    model = seeded(reduced_resnet18, 0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    learner = method("er", model, optimizer, capacity=100, replay=10, seed=0)
    labels = torch.arange(10)
    for _ in range(3):
        learner.observe(images, labels)
    return lambda: cpu_seconds(lambda: learner.observe(images, labels))


def _augmented(images: torch.Tensor) -> Callable[[], float]:
    augment = Compose(RandomCrop(4), RandomFlip(), ColourChange())

    def calls() -> None:
        for _ in range(_CALLS):
            augment(images)

    augment(images)
    return lambda: cpu_seconds(calls) / _CALLS


def measure(*, repetitions: int = 15) -> Answer:
    """Alternate the step and the augmentation of as many images."""
    one_thread()
    drawn = torch.Generator().manual_seed(0)
    pixels = torch.randint(256, (20, 3, 32, 32), generator=drawn, dtype=torch.uint8)
    blocks = {
        STEP: _step(pixels[:10] / 255),
        "crop, flip and colour of bytes": _augmented(pixels),
        "crop, flip and colour of floats": _augmented(pixels / 255),
    }
    times = alternate(blocks, repetitions, told="augmentation")
    _, *names = blocks
    return Answer(
        "What augmentation costs",
        "python -m perf.images.augmentation",
        {"repetitions": repetitions, "images": 20},
        unit="CPU s",
        times=times,
        ratios=[ratio(name, STEP, CIFAR, times) for name in names],
    )


if __name__ == "__main__":
    print("\n".join(lines_of(measure())))
