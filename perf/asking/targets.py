"""What we want each ratio to be: ours over the contestant's, by model.

A target is a wish, written down before measuring. A missed one stays on the page.
"""

from typing import Final

MLP, CIFAR, MINI, TRANSFORMER = "MLP", "ResNet 32", "ResNet 84", "transformer"

# (what, than) -> {shape: target}
_AT_MOST: Final[dict[tuple[str, str], dict[str, float]]] = {
    ("ER", "bare ER, one pass"): {MLP: 1.05, CIFAR: 0.85},
    ("ER-P", "ER"): {MLP: 1.20, CIFAR: 1.70, TRANSFORMER: 1.50},
    ("ER-P, head", "ER"): {CIFAR: 1.30},
    ("ER-C", "ER"): {MLP: 1.20, CIFAR: 1.10, TRANSFORMER: 1.15},
    ("ER-PC-MIR", "ER"): {MLP: 2.8, CIFAR: 2.8, TRANSFORMER: 3.5},
    ("GSS", "ER"): {MLP: 2.0, CIFAR: 2.5, TRANSFORMER: 3.0},
    ("ER-P on it", "ER on it"): {"LSTM": 2.5, "DistilBERT": 2.0, "LoRA on DistilBERT": 1.3},
    ("ER-P", "bare PGD, looped"): {MLP: 0.25, CIFAR: 0.5},
    ("ER-MIR, separate passes", "bare MIR"): {MLP: 0.9, CIFAR: 0.85},
    ("ER-P, all of MNIST-S", "ER, all of MNIST-S"): {MLP: 1.20},
    ("ER-C, all of MNIST-S", "ER, all of MNIST-S"): {MLP: 1.20},
    ("GSS, all of MNIST-S", "ER, all of MNIST-S"): {MLP: 2.0},
    ("ER", "Avalanche ER, 2,000 examples"): {MLP: 0.16},
    ("ER", "Avalanche ER, 5,000 examples"): {MLP: 0.16},
    ("ER-MIR, separate passes", "Avalanche MIR, 2,000 examples"): {MLP: 0.22},
    ("ER-MIR, separate passes", "Avalanche MIR, 5,000 examples"): {MLP: 0.22},
    ("GSS", "Avalanche GSS, 2,000 examples"): {MLP: 0.15},
    ("GSS", "Avalanche GSS, 5,000 examples"): {MLP: 0.15},
    ("ER", "Avalanche ER"): {CIFAR: 0.85},
    ("ER-MIR, separate passes", "Avalanche MIR"): {CIFAR: 0.75},
    ("ER, 1,000,000 slots", "ER, 500 slots"): {"just full": 1.2, "10 x capacity seen": 1.2},
    ("ER-C, 1,000,000 slots", "ER-C, 500 slots"): {"just full": 1.2, "10 x capacity seen": 1.2},
    ("crop, flip and colour of bytes", "a step of ER"): {CIFAR: 0.05},
    ("crop, flip and colour of floats", "a step of ER"): {CIFAR: 0.05},
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
