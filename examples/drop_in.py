"""Put `observe` where your training step was: any model, any iterable of batches.

Run it: python examples/drop_in.py
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

import recollect

CLASSES = 6
CENTRES = 0.8 * torch.randn(CLASSES, 20, generator=torch.Generator().manual_seed(1))


def examples_of(classes: Tensor, rng: torch.Generator) -> Tensor:
    return CENTRES[classes] + torch.randn(len(classes), 20, generator=rng)


def drifting_stream(num_batches: int = 300) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield each batch once; the classes in it move on, and nobody says when."""
    rng = torch.Generator().manual_seed(2)
    for step in range(num_batches):
        first = step * (CLASSES - 1) // num_batches
        labels = torch.randint(first, first + 2, (10,), generator=rng)
        yield examples_of(labels, rng), labels


def accuracy_by_class(learner: recollect.Learner) -> list[float]:
    rng = torch.Generator().manual_seed(3)
    found = []
    for label in range(CLASSES):
        labels = torch.full((200,), label)
        answers = learner.predict(examples_of(labels, rng)).argmax(1)
        found.append(float((answers == labels).double().mean()))
    return found


def learn(name: str) -> list[float]:
    model = nn.Sequential(nn.Linear(20, 50), nn.ReLU(), nn.Linear(50, CLASSES))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    learner = recollect.method(name, model, optimizer, capacity=60, replay=10, seed=0)
    for inputs, labels in drifting_stream():
        learner.observe(inputs, labels)
    return accuracy_by_class(learner)


def main() -> None:
    torch.manual_seed(0)
    print("accuracy by class, oldest first")
    for name in ("van", "er", "er-p"):
        accuracies = learn(name)
        mean = sum(accuracies) / CLASSES
        print(f"{name:5}", *(f"{share:4.0%}" for share in accuracies), f"  mean {mean:.0%}")


if __name__ == "__main__":
    main()
