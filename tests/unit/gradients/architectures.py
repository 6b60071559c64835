"""Models of the kinds that people have, small, each with inputs that suit it."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.utils.checkpoint import checkpoint

EXAMPLES, CLASSES, WORDS = 6, 3, 11


class Encoder(nn.Module):
    def __init__(self, *, batch_first: bool = True, norm_first: bool = False) -> None:
        super().__init__()
        self.table, self.batch_first = nn.Embedding(WORDS, 8, padding_idx=0), batch_first
        layer = nn.TransformerEncoderLayer(
            8, 2, 16, dropout=0.1, batch_first=batch_first, norm_first=norm_first
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = self.table(tokens)
        if not self.batch_first:
            hidden = hidden.transpose(0, 1)
        hidden = self.encoder(hidden, src_key_padding_mask=tokens == 0)
        return self.head(hidden.mean(1 if self.batch_first else 0))


class Attention(nn.Module):
    """Positions looked up once for all, a class token, tied weights, weight_norm, a scale."""

    def __init__(self, length: int = 6) -> None:
        super().__init__()
        self.table, self.positions = nn.Embedding(WORDS, 8), nn.Embedding(length + 1, 8)
        self.token = nn.Parameter(torch.randn(1, 1, 8))
        self.qkv = nn.Linear(8, 24)
        self.out = parametrizations.weight_norm(nn.Linear(8, 8))
        self.norm, self.drop = nn.LayerNorm(8), nn.Dropout(0.1)
        self.scale = nn.Parameter(torch.tensor(1.3))

    def forward(self, tokens: Tensor) -> Tensor:
        x = torch.cat([self.token.expand(len(tokens), -1, -1), self.table(tokens)], 1)
        x = x + self.positions(torch.arange(x.shape[1]))
        q, k, v = self.qkv(x).view(*x.shape[:2], 3, 2, 4).permute(2, 0, 3, 1, 4)
        dropout = 0.1 if self.training else 0.0
        attended = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout)
        x = self.norm(x + self.drop(self.out(attended.transpose(1, 2).flatten(2)))) * self.scale
        return F.linear(x[:, 0], self.table.weight)[:, :CLASSES]


class Recurrent(nn.Module):
    def __init__(self, kind: Callable[..., nn.RNNBase], *, time_first: bool = False, **of: Any):
        super().__init__()
        self.cell = kind(5, 4, batch_first=not time_first, **of)
        self.head = nn.Linear(8 if of.get("bidirectional") else 4, CLASSES)
        self.time_first = time_first

    def forward(self, x: Tensor) -> Tensor:
        states = self.cell(x.transpose(0, 1) if self.time_first else x)[0]
        return self.head(states[-1] if self.time_first else states[:, -1])


class LastStates(nn.Module):
    """What a recurrent network ends with, from a first state that is learnt."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTM(5, 4, num_layers=2, batch_first=True, dropout=0.2)
        self.first, self.head = nn.Parameter(torch.randn(2, 1, 4)), nn.Linear(8, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        first = self.first.expand(-1, len(x), -1).contiguous()
        _, (hidden, cell) = self.cell(x, (first, torch.zeros_like(first)))
        return self.head(torch.cat([hidden[-1], cell[0]], 1))


class Packed(nn.Module):
    """Sequences of different lengths, whose rows lie by time and length."""

    def __init__(self, kind: Callable[..., nn.RNNBase], **of: Any) -> None:
        super().__init__()
        self.cell = kind(5, 4, batch_first=True, **of)
        self.head = nn.Linear(8 if of.get("bidirectional") else 4, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        lengths = torch.arange(len(x)) % x.shape[1] + 1
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.cell(packed)[0], batch_first=True)
        return self.head(states.sum(1))


class Experts(nn.Module):
    """A mixture of experts: each position goes to the one its gate likes best."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.head = nn.Linear(5, 3), nn.Linear(6, CLASSES)
        self.experts = nn.ModuleList(nn.Linear(5, 6) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        rows = x.flatten(0, 1)
        weight, chosen = self.gate(rows).softmax(-1).max(-1)
        out = rows.new_zeros(len(rows), 6)
        for number, expert in enumerate(self.experts):
            mine = (chosen == number).nonzero()[:, 0]
            if len(mine):
                made = torch.tanh(expert(rows[mine])) * weight[mine, None]
                out = out.index_add(0, mine, made.to(out.dtype))
        return self.head(out.view(len(x), -1, 6).mean(1))


class Checkpointed(nn.Module):
    def __init__(self, *, blocks: int) -> None:
        super().__init__()
        self.first = nn.Linear(5, 8)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
            for _ in range(blocks)
        )
        self.head = nn.Linear(8, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = checkpoint(self.first, x, use_reentrant=False)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return self.head(x.mean(1))


class Wave(torch.autograd.Function):
    """An operation of the user's own, for which there is no formula."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor) -> Tensor:
        ctx.save_for_backward(x, w)
        return x * w.sin()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        (x, w), (d,) = ctx.saved_tensors, gradients
        return d * w.sin(), (d * x * w.cos()).sum((0, 1))


class Waves(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.randn(5))
        self.body, self.head = nn.Linear(5, 5), nn.Linear(5, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.tanh(Wave.apply(self.body(x), self.scale)).mean(1))  # type: ignore[no-untyped-call]


class Einsums(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.into = nn.Parameter(torch.randn(2, 5, 4))
        self.out = nn.Parameter(torch.randn(2, 4, CLASSES))

    def forward(self, x: Tensor) -> Tensor:
        heads = torch.tanh(torch.einsum("btd,hde->bhte", x, self.into))
        return torch.einsum("bhte,heo->bto", heads, self.out).mean(1)


class WeightsOnTheLeft(nn.Module):
    """Square weights, multiplied from the left, and a vector of them."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.vector = nn.Parameter(torch.randn(5, 5)), nn.Parameter(torch.randn(5))
        self.head = nn.Linear(5, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.tanh(self.left @ x.mean(1).T).T
        return self.head(y) + (y @ self.vector)[:, None] * torch.arange(3.0).to(y)


class CrossAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(
            6, 2, kdim=5, vdim=5, add_bias_kv=True, batch_first=True, dropout=0.1
        )
        self.query, self.head = nn.Linear(5, 6), nn.Linear(6, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.attention(self.query(x), x, x, need_weights=False)[0].mean(1))


class Bags(nn.Module):
    def __init__(self, mode: str) -> None:
        super().__init__()
        self.table, self.head = nn.EmbeddingBag(WORDS, 6, mode=mode), nn.Linear(6, CLASSES)

    def forward(self, tokens: Tensor) -> Tensor:
        offsets = torch.arange(len(tokens)) * 3  # bags of three, but for the last
        return self.head(torch.tanh(self.table(tokens.flatten()[: 3 * len(tokens) - 1], offsets)))


class Latest(nn.Module):
    """Reads what a position held that depends on the data."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(5, 6), nn.Linear(6, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        chosen = x.sum(-1).argmax(1)
        return self.head(torch.tanh(self.body(x))[torch.arange(len(x)), chosen])


class Shuffled(nn.Module):
    """Rows change places in every pass, and change back at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(5, 6), nn.Linear(6, 6)
        self.head = nn.Linear(6, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        order = torch.randperm(len(x))
        y = torch.tanh(self.first(x.mean(1)))[order]
        return self.head(torch.tanh(self.second(y))[order.argsort()])


class WithoutDimensions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Parameter(torch.tensor(0.7)), nn.Parameter(torch.tensor(0.2))
        self.body = nn.Linear(5, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.body(x.mean(1) * self.inner.exp()) / self.outer.exp() + self.outer


class OneRowEach(nn.Module):
    """A parameter with a row for each example of the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.rows, self.body = nn.Parameter(torch.randn(EXAMPLES, 5)), nn.Linear(5, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.body(torch.tanh(x.mean(1) * self.rows + self.rows))


def flat(*layers: nn.Module) -> nn.Module:
    return nn.Sequential(*layers, nn.Flatten(), nn.LazyLinear(CLASSES))


def tokens() -> Tensor:
    """Sentences of lengths from two to six words."""
    words = torch.randint(1, WORDS, (EXAMPLES, 6))
    return words.masked_fill(torch.arange(6) > 1 + torch.arange(EXAMPLES)[:, None], 0)


def sequences() -> Tensor:
    return torch.randn(EXAMPLES, 4, 5)


def long_sequences() -> Tensor:
    """As many steps as examples."""
    return torch.randn(EXAMPLES, EXAMPLES, 5)


def images() -> Tensor:
    return torch.randn(EXAMPLES, 4, 8, 8)


Architecture = tuple[Callable[[], nn.Module], Callable[[], Tensor]]
ARCHITECTURES: dict[str, Architecture] = {
    "encoder": (Encoder, tokens),
    "encoder, sequence first": (lambda: Encoder(batch_first=False), tokens),
    "encoder, norm first": (lambda: Encoder(norm_first=True), tokens),
    "attention": (Attention, tokens),
    "lstm": (lambda: Recurrent(nn.LSTM), sequences),
    "lstm, two layers": (lambda: Recurrent(nn.LSTM, num_layers=2, dropout=0.2), sequences),
    "lstm, both directions": (
        lambda: Recurrent(nn.LSTM, time_first=True, bidirectional=True),
        sequences,
    ),
    "lstm, last states": (LastStates, sequences),
    "lstm, packed": (lambda: Packed(nn.LSTM, num_layers=2, bidirectional=True), sequences),
    "gru": (lambda: Recurrent(nn.GRU, num_layers=2, dropout=0.2), sequences),
    "gru, both directions": (lambda: Recurrent(nn.GRU, bidirectional=True), sequences),
    "gru, packed": (lambda: Packed(nn.GRU), sequences),
    "rnn, as long as the batch": (lambda: Recurrent(nn.RNN), long_sequences),
    "experts": (Experts, sequences),
    "checkpointed": (lambda: Checkpointed(blocks=2), sequences),
    "custom function": (Waves, sequences),
    "einsums": (Einsums, sequences),
    "weights on the left": (WeightsOnTheLeft, sequences),
    "cross attention": (CrossAttention, sequences),
    "bags, mean": (lambda: Bags("mean"), tokens),
    "bags, sum": (lambda: Bags("sum"), tokens),
    "bags, max": (lambda: Bags("max"), tokens),
    "position by data": (Latest, sequences),
    "shuffled": (Shuffled, sequences),
    "without dimensions": (WithoutDimensions, sequences),
    "one row each": (OneRowEach, sequences),
    "convolutions": (
        lambda: flat(
            nn.Conv2d(4, 8, 3, groups=4),
            nn.PReLU(),
            nn.ConvTranspose2d(8, 4, 3, stride=2, padding=1, output_padding=1, groups=2),
            nn.PReLU(4),
            nn.Conv2d(4, 4, 3, groups=4),
        ),
        images,
    ),
    "instance norm": (
        lambda: flat(nn.Conv2d(4, 4, 3), nn.InstanceNorm2d(4, affine=True), nn.Tanh()),
        images,
    ),
    "group norm and dropout": (
        lambda: flat(nn.Conv2d(4, 4, 3), nn.GroupNorm(2, 4), nn.Tanh(), nn.Dropout(0.2)),
        images,
    ),
    "batch norm in eval mode": (
        lambda: flat(nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4).eval(), nn.Tanh()),
        images,
    ),
    "rms norm": (lambda: flat(nn.Linear(5, 6), nn.RMSNorm(6)), sequences),
    "bilinear": (lambda: Pairs(), sequences),
    "spectral norm": (lambda: flat(parametrizations.spectral_norm(nn.Linear(5, 6))), sequences),
    "weight norm on a convolution": (
        lambda: flat(parametrizations.weight_norm(nn.Conv2d(4, 4, 3)), nn.Tanh()),
        images,
    ),
}
#: Nodes without a formula, which are called once per gradient.
WITHOUT_FORMULA = {"custom function": "WaveBackward", "bilinear": "TrilinearBackward0"}


class Pairs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.both, self.head = nn.Bilinear(5, 5, 4), nn.Linear(4, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.both(x[:, 0], x[:, 1]))


def build(
    architecture: Architecture, dtype: torch.dtype = torch.float64
) -> tuple[nn.Module, Tensor, Tensor]:
    """Make a model, inputs and labels, the same each time."""
    torch.manual_seed(0)
    make, give = architecture
    model, inputs = make(), give()
    with torch.no_grad():
        model(inputs)  # lazy layers take shape
    inputs = inputs.to(dtype) if inputs.is_floating_point() else inputs
    return model.to(dtype), inputs, torch.randint(CLASSES, (len(inputs),))
