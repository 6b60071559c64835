"""CapyMOA's ER: ten examples, and ten more from its reservoir. It has no MIR and no GSS."""

from collections.abc import Iterator

import torch
from capymoa.classifier import Finetune
from capymoa.ocl.strategy import ExperienceReplay
from capymoa.stream import Schema

from perf.peers.models import BATCH, CAPACITY, CLASSES, EXAMPLES, LEARNING_RATE, model_for


def steps(method: str, shape: str, inputs: torch.Tensor, labels: torch.Tensor) -> Iterator[None]:
    """Build a learner; it learns from ten more examples each time the next item is asked for."""
    if method != "er":
        raise ValueError(f"CapyMOA has no {method}.")
    example = EXAMPLES[shape]
    # Its memory keeps vectors; a convolutional model has to unflatten them.
    model = torch.nn.Sequential(torch.nn.Unflatten(1, example), model_for(shape))
    features = [f"x{i}" for i in range(inputs[0].numel())]
    schema = Schema.from_custom(
        features=[*features, "y"],
        target="y",
        categories={"y": [str(label) for label in range(CLASSES)]},
        name="synthetic",
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    learner = ExperienceReplay(Finetune(schema, model, optimizer), buffer_size=CAPACITY)
    return trained(learner, inputs.flatten(1), labels)


def trained(
    learner: ExperienceReplay, inputs: torch.Tensor, labels: torch.Tensor
) -> Iterator[None]:
    """Hand the stream over batch by batch."""
    for start in range(0, len(labels) - BATCH + 1, BATCH):
        learner.batch_train(inputs[start : start + BATCH], labels[start : start + BATCH])
        yield
