"""The models and examples that steps are timed on.

Inputs are random numbers of the right shape and labels are random classes: what a step costs does
not depend on what is in the picture, save for GSS (see `perf.whole_stream`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import log

import torch
from torch import Tensor, nn

from perf.asking.targets import CIFAR, MINI, MLP, TRANSFORMER
from recollect.models import mlp, reduced_resnet18

BATCH = 10
CAPACITY = 500


@dataclass(frozen=True)
class Shape:
    """A model, its examples, and how much of it makes a block that can be timed."""

    name: str  # on the page
    build: Callable[[], nn.Module]
    example: tuple[int, ...]
    classes: int = 10
    words: int = 0  # inputs are token numbers below this, if it is not 0
    replay: int = 10
    learning_rate: float = 0.05
    stream: float = 10  # length of the stream, in memories: decides how many newcomers are admitted
    steps_a_block: int = 1
    repetitions: int = 10

    @property
    def admitted(self) -> float:
        """Share of newcomers that a reservoir admits, mean over the stream."""
        return (1 + log(self.stream)) / self.stream

    def inputs(self, count: int, rng: torch.Generator) -> Tensor:
        """Draw examples."""
        if self.words:
            return torch.randint(self.words, (count, *self.example), generator=rng)
        return torch.rand(count, *self.example, generator=rng)

    def labels(self, count: int, rng: torch.Generator) -> Tensor:
        """Draw as many labels."""
        return torch.randint(self.classes, (count,), generator=rng)


class SmallTransformer(nn.Module):
    """Two encoder layers of width 64 over 32 tokens, and a head on their mean."""

    def __init__(self, words: int, tokens: int, classes: int) -> None:
        super().__init__()
        self.words = nn.Embedding(words, 64)
        self.places = nn.Embedding(tokens, 64)
        # No dropout: a virtual step and its check must see the same network.
        layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(64, classes)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return logits for token numbers of shape (examples, tokens)."""
        places = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens)
        hidden = self.encoder(self.words(tokens) + self.places(places))
        logits: Tensor = self.head(hidden.mean(1))
        return logits


SHAPES = {
    "mlp": Shape(MLP, mlp, (784,), steps_a_block=20, repetitions=40),
    "cifar": Shape(
        CIFAR, reduced_resnet18, (3, 32, 32), stream=97.5, steps_a_block=2, repetitions=9
    ),
    "mini": Shape(
        MINI,
        partial(reduced_resnet18, 100, image_size=84),
        (3, 84, 84),
        classes=100,
        replay=20,
        stream=5,
        repetitions=3,
    ),
    "transformer": Shape(
        TRANSFORMER,
        partial(SmallTransformer, 1000, 32, 10),
        (32,),
        words=1000,
        steps_a_block=3,
        repetitions=15,
    ),
}
