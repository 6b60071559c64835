"""Small models, one for each way in which a layer's gradients are found."""

import torch
from tests.golden.streams import CLASSES, FEATURES, NUM_TOKENS, POSITIONS
from torch import Tensor, nn
from torch.nn import functional as F

from recollect.models import SequenceTransformer, mlp, reduced_resnet18, with_projection

WIDTH = 8


def perceptron() -> nn.Module:
    return mlp(FEATURES, CLASSES, hidden=(16,))


def wide_perceptron() -> nn.Module:
    """So many weights that GSS measures memory's batches one after the other."""
    return mlp(FEATURES, CLASSES, hidden=(24_000,))


def regression() -> nn.Module:
    return mlp(FEATURES, 1, hidden=(16,))


def perceptron_with_dropout() -> nn.Module:
    parts = nn.Linear(FEATURES, 16), nn.ReLU(), nn.Dropout(0.4), nn.Linear(16, CLASSES)
    return nn.Sequential(*parts)


def perceptron_on_pixels() -> nn.Module:
    return mlp(3 * 8 * 8, CLASSES, hidden=(16,))


def projecting() -> nn.Module:
    return with_projection(perceptron_on_pixels(), width=6)


def resnet() -> nn.Module:
    return reduced_resnet18(CLASSES, image_size=25, width=2)


def resnet_with_groups() -> nn.Module:
    return reduced_resnet18(CLASSES, image_size=25, width=5, norm="group")


def convolutions() -> nn.Module:
    """Plain, grouped and strided convolutions, and statistics by example."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.GroupNorm(2, 8),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2, groups=4),
        nn.InstanceNorm2d(16, affine=True),
        nn.Tanh(),
        nn.Conv2d(16, 16, 3, groups=16, padding=1),
        nn.Conv2d(16, 6, 1, bias=False),
        nn.Flatten(),
        nn.Linear(54, CLASSES),
    )


def late_convolutions() -> nn.Module:
    """The second has many weights and one position: examples are held as factors."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2),
        nn.ReLU(),
        nn.Conv2d(8, 48, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(48, CLASSES),
    )


def batch_norm() -> nn.Module:
    """No bias in front of it: its gradient is rounding alone, which Adam would make steps of."""
    return nn.Sequential(
        nn.Conv2d(3, 6, 3, bias=False),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(216, CLASSES),
    )


class Captioned(nn.Module):
    """An image with a few words: a convolution beside an embedding, and Conv1d over the words."""

    def __init__(self) -> None:
        super().__init__()
        self.picture = nn.Conv2d(3, 4, 3, stride=2)
        self.words = nn.Embedding(NUM_TOKENS, WIDTH, padding_idx=0)
        self.phrases = nn.Conv1d(WIDTH, 6, 3)
        self.head = nn.Linear(4 * 9 + 6, CLASSES)

    def forward(self, image: Tensor, tokens: Tensor) -> Tensor:
        seen = F.relu(self.picture(image)).flatten(1)
        read = F.relu(self.phrases(self.words(tokens).transpose(1, 2))).amax(2)
        return self.head(torch.cat((seen, read), 1))


class Encoder(nn.Module):
    """Torch's own transformer block over learnt positions, which all examples share."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.words = nn.Embedding(NUM_TOKENS, WIDTH)
        self.places = nn.Embedding(POSITIONS, WIDTH)
        self.block = nn.TransformerEncoderLayer(WIDTH, 2, 16, dropout, batch_first=True)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = self.words(tokens) + self.places(torch.arange(POSITIONS))
        return self.head(self.block(hidden).mean(1))


def transformer() -> nn.Module:
    return Encoder(0.0)


def transformer_with_dropout() -> nn.Module:
    return Encoder(0.2)


def sequence_transformer() -> nn.Module:
    return SequenceTransformer(
        NUM_TOKENS, CLASSES, length=POSITIONS, width=WIDTH, heads=2, layers=1, dropout=0.0
    )


class OwnAttention(nn.Module):
    """One attention layer written out, with a token of its own and a scaled input matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(NUM_TOKENS, WIDTH)
        self.first = nn.Parameter(torch.randn(WIDTH))
        self.norm = nn.LayerNorm(WIDTH)
        self.three = nn.utils.parametrizations.weight_norm(nn.Linear(WIDTH, 3 * WIDTH))
        self.out = nn.Linear(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, tokens: Tensor) -> Tensor:
        first = self.first.expand(len(tokens), 1, WIDTH)
        hidden = torch.cat((first, self.words(tokens)), 1)
        queries, keys, values = self.three(self.norm(hidden)).chunk(3, -1)
        hidden = hidden + self.out(F.scaled_dot_product_attention(queries, keys, values))
        return self.head(hidden[:, 0])


class Recurrent(nn.Module):
    """A recurrent layer over embedded words; the head reads its last state."""

    def __init__(self, kind: type[nn.LSTM] | type[nn.GRU]) -> None:
        super().__init__()
        self.words = nn.Embedding(NUM_TOKENS, WIDTH)
        self.layer = kind(WIDTH, WIDTH, batch_first=True)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.layer(self.words(tokens))[0][:, -1])


def lstm() -> nn.Module:
    return Recurrent(nn.LSTM)


def gru() -> nn.Module:
    return Recurrent(nn.GRU)


class SequenceFirst(nn.Module):
    """Linear layers with the examples in the second dimension, one of them used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(NUM_TOKENS, WIDTH)
        self.each = nn.Linear(WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, CLASSES, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = self.words(tokens).transpose(0, 1)
        hidden = self.norm(torch.tanh(self.each(torch.tanh(self.each(hidden)))))
        return self.head(hidden.mean(0))


class Routed(nn.Module):
    """A second expert that is used from some step on only, and weights that are tied."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(FEATURES, 12)
        self.second = nn.Linear(FEATURES, 12)
        self.shared = nn.Linear(12, 12, bias=False)
        self.head = nn.Linear(12, CLASSES)

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = self.first(inputs)
        far = inputs[:, :1] > 1.0
        if bool(far.any()):
            hidden = torch.where(far, self.second(inputs), hidden)
        hidden = torch.tanh(F.linear(torch.tanh(self.shared(hidden)), self.shared.weight.t()))
        return self.head(hidden)
