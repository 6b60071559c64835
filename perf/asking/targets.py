"""What we want each ratio to be: ours over the contestant's, by model.

A target is a wish, written down before measuring. A missed one stays on the page.
"""

from typing import Final

MLP, CIFAR, MINI, TRANSFORMER = "MLP", "ResNet 32", "ResNet 84", "transformer"

# (what, than) -> {shape: target}
_AT_MOST: Final[dict[tuple[str, str], dict[str, float]]] = {
    ("ER", "bare ER, one pass"): {MLP: 1.05, CIFAR: 0.85},
    ("ER-P", "ER"): {MLP: 1.10, CIFAR: 1.20},
    ("ER-C", "ER"): {MLP: 1.10, CIFAR: 1.10},
    ("ER-P", "bare PGD, looped"): {MLP: 0.25, CIFAR: 0.5},
    ("ER-MIR, separate passes", "bare MIR"): {MLP: 0.9, CIFAR: 0.85},
    ("GSS", "ER"): {MLP: 1.5, CIFAR: 2.5},
    ("ER-P, all of MNIST-S", "ER, all of MNIST-S"): {MLP: 1.10},
    ("ER-C, all of MNIST-S", "ER, all of MNIST-S"): {MLP: 1.10},
    ("GSS, all of MNIST-S", "ER, all of MNIST-S"): {MLP: 1.5},
    ("ER", "Avalanche ER, 2,000 examples"): {MLP: 0.1},
    ("ER", "Avalanche ER, 5,000 examples"): {MLP: 0.1},
    ("ER-MIR, separate passes", "Avalanche MIR, 2,000 examples"): {MLP: 0.2},
    ("ER-MIR, separate passes", "Avalanche MIR, 5,000 examples"): {MLP: 0.2},
    ("GSS", "Avalanche GSS, 2,000 examples"): {MLP: 0.08},
    ("GSS", "Avalanche GSS, 5,000 examples"): {MLP: 0.08},
    ("ER", "Avalanche ER"): {CIFAR: 0.85},
    ("ER-MIR, separate passes", "Avalanche MIR"): {CIFAR: 0.75},
    ("ER, 1,000,000 slots", "ER, 500 slots"): {"just full": 1.2, "10 x capacity seen": 1.2},
    ("ER-C, 100,000 slots", "ER, 100,000 slots"): {"just full": 1.5, "10 x capacity seen": 1.5},
    ("peak bytes of ER-P", "peak bytes of ER"): {CIFAR: 1.5},
}
_AT_LEAST: Final[dict[tuple[str, str], dict[str, float]]] = {
    ("speed of two workers", "one"): {"sweep of MNIST-S": 1.8},
}


def target_of(what: str, than: str, shape: str) -> tuple[float | None, bool]:
    """Return the target, and whether it is one to reach rather than to stay below."""
    to_reach = _AT_LEAST.get((what, than), {}).get(shape)
    if to_reach is not None:
        return to_reach, True
    return _AT_MOST.get((what, than), {}).get(shape), False


def all_targets() -> list[tuple[str, str, str, float]]:
    """List what, than, shape and target, in the order of the page."""
    return [
        (what, than, shape, target)
        for table in (_AT_MOST, _AT_LEAST)
        for (what, than), by_shape in table.items()
        for shape, target in by_shape.items()
    ]
