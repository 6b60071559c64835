"""Does it pay to pass images channels last?

Behind decision 0010: time of a forward and backward pass with the inputs in that order over the
time in the usual one, 20 random examples, one thread, medians of alternated repetitions.

    python -m perf.memory_order
"""

from collections.abc import Callable
from statistics import median, quantiles

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from perf.asking.measuring import cpu_seconds, one_thread
from recollect.models import reduced_resnet18, seeded

REPETITIONS = 9


def lenet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 10),
    )  # fmt: skip


def vgg() -> nn.Module:
    maps = ((3, 32), (32, 32), (32, 64), (64, 64))
    layers = [part for a, b in maps for part in (nn.Conv2d(a, b, 3, padding=1), nn.ReLU())]
    return nn.Sequential(*layers, nn.MaxPool2d(4), nn.Flatten(), nn.Linear(64 * 64, 10))


def depthwise() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1, groups=32),
        nn.Conv2d(32, 64, 1), nn.ReLU(), nn.Conv2d(64, 64, 3, stride=2, padding=1, groups=64),
        nn.Conv2d(64, 64, 1), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 256, 10),
    )  # fmt: skip


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "reduced ResNet18": (reduced_resnet18, (3, 32, 32)),
    "reduced ResNet18, GroupNorm": (lambda: reduced_resnet18(norm="group"), (3, 32, 32)),
    "reduced ResNet18, 84 pixels": (lambda: reduced_resnet18(100, image_size=84), (3, 84, 84)),
    "ResNet18, full width": (lambda: reduced_resnet18(width=64), (3, 32, 32)),
    "LeNet": (lenet, (1, 28, 28)),
    "VGG-like": (vgg, (3, 32, 32)),
    "depthwise separable": (depthwise, (3, 32, 32)),
}


def passes(model: nn.Module, images: Tensor, labels: Tensor) -> Callable[[], float]:
    parameters = list(model.parameters())

    def run() -> None:
        torch.autograd.grad(F.cross_entropy(model(images), labels), parameters)

    return lambda: cpu_seconds(run)


def main() -> None:
    one_thread()
    print("model                          channels last / usual order (quartiles)")
    for name, (build, shape) in MODELS.items():
        model, rng = seeded(build, 0), torch.Generator().manual_seed(0)
        images, labels = torch.rand(20, *shape, generator=rng), torch.randint(10, (20,))
        last = images.contiguous(memory_format=torch.channels_last)
        usual, other = passes(model, images, labels), passes(model, last, labels)
        for warm in (usual, other):
            warm()
        ratios = [other() / usual() for _ in range(REPETITIONS)]
        low, _, high = quantiles(ratios, n=4)
        print(f"{name:<31}{median(ratios):.2f} ({low:.2f} to {high:.2f})")


if __name__ == "__main__":
    main()
