"""Batches that cannot be learnt from, over small models of several kinds."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from tests.unit.learner.support import sgd
from torch import Tensor, nn
from torch.nn import functional as F

from recollect import Learner, method
from recollect.models import seeded
from recollect.nested import map_leaves

EXAMPLES, CLASSES, ENTRIES, LENGTH = 5, 4, 7, 6

Bad = Callable[[Any, Tensor], tuple[object, object]]


class Pair(nn.Module):
    """An image and a text, by name."""

    def __init__(self) -> None:
        super().__init__()
        self.image, self.table = nn.Linear(16, 8), nn.Embedding(ENTRIES, 8)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, image: Tensor, tokens: Tensor) -> Tensor:
        return self.head(torch.tanh(self.image(image.flatten(1)) + self.table(tokens).mean(1)))


class Text(nn.Module):
    """Tokens alone."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(ENTRIES, 8), nn.Linear(8, CLASSES)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(torch.tanh(self.table(tokens).mean(1)))


def _perceptron() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 12), nn.Tanh(), nn.Linear(12, CLASSES))


def _convolutions() -> nn.Module:
    layers = nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten()
    return nn.Sequential(*layers, nn.Linear(12, CLASSES))


MODELS: Mapping[str, Callable[[], nn.Module]] = {
    "perceptron": _perceptron,
    "convolutions": _convolutions,
    "text": Text,
    "pair": Pair,
}


def own_loss(outputs: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(outputs, labels, reduction="none")


def _learner(name: str, kind: str, *, steps: int, **options: Any) -> Learner:
    model = seeded(MODELS[kind], 0)
    options = {"capacity": 12, "replay": 4, "seed": 0} | options
    learner = method(name, model, sgd(model, momentum=0.5), **options)
    for step in range(steps):
        learner.observe(*good(kind, step))
    return learner


LEARNERS: Mapping[str, Callable[[str], Learner]] = {
    "without memory": lambda kind: _learner("van", kind, steps=0),
    "with an empty memory": lambda kind: _learner("er-p", kind, steps=0),
    "in mid-stream": lambda kind: _learner("er-pc-mir", kind, steps=3, candidates=8),
    "with a loss of its own": lambda kind: _learner("van", kind, steps=1, loss=own_loss),
}


def good(kind: str, seed: int) -> tuple[Any, Tensor]:
    """Make a batch that the model takes."""
    rng = torch.Generator().manual_seed(seed)
    image = torch.randn(EXAMPLES, 1, 4, 4, generator=rng)
    tokens = torch.randint(ENTRIES, (EXAMPLES, LENGTH), generator=rng)
    labels = torch.randint(CLASSES, (EXAMPLES,), generator=rng)
    inputs = {"pair": {"image": image, "tokens": tokens}, "text": tokens}.get(kind, image)
    return inputs, labels


def _each(change: Callable[[Tensor], object]) -> Bad:
    """Change every tensor of the inputs."""
    return lambda inputs, labels: (map_leaves(change, inputs), labels)  # type: ignore[arg-type]


def _inputs(change: Callable[[Any], object]) -> Bad:
    return lambda inputs, labels: (change(inputs), labels)


def _labels(change: Callable[[Tensor], object]) -> Bad:
    return lambda inputs, labels: (inputs, change(labels))


def _entries(change: Callable[[dict[str, Any]], object]) -> Bad:
    """Change a dict of inputs; a single tensor is first made one."""
    return _inputs(lambda i: change(dict(i) if isinstance(i, dict) else {"x": i}))


def _nested(tensor: Tensor) -> Tensor:
    return torch.nested.nested_tensor(list(tensor))


def _jagged(tensor: Tensor) -> Tensor:
    return torch.nested.nested_tensor(list(tensor), layout=torch.jagged)


def _quantized(tensor: Tensor) -> Tensor:
    return torch.quantize_per_tensor(tensor.float(), 0.1, 10, torch.quint8)


def _set(tensor: Tensor, value: float) -> Tensor:
    changed = tensor.clone()
    changed[(0,) * tensor.ndim] = value
    return changed


def _to(name: str) -> Callable[[Tensor], Tensor]:
    dtype = getattr(torch, name)
    return lambda tensor: tensor.to(dtype)


DTYPES = [
    *("float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"),
    *("complex32", "complex64", "complex128"),
    *("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "bool"),
]

BAD: dict[str, Bad] = {
    **{f"inputs in {name}": _each(_to(name)) for name in DTYPES},
    **{f"labels in {name}": _labels(_to(name)) for name in DTYPES},
    "one feature fewer": _each(lambda t: t[..., :-1]),
    "one feature more": _each(lambda t: torch.cat((t, t[..., :1]), -1)),
    "no features": _each(lambda t: t[..., :0]),
    "one dimension more": _each(lambda t: t.unsqueeze(1)),
    "two dimensions more": _each(lambda t: t[..., None, None]),
    "one dimension fewer": _each(lambda t: t[..., 0]),
    "one number per example": _each(lambda t: t.flatten(1)[:, 0]),
    "a single number": _each(lambda t: t.flatten()[0]),
    "examples in the last dimension": _each(lambda t: t.movedim(0, -1)),
    "twice as many channels": _each(lambda t: torch.cat((t, t), 1)),
    "examples for half of the labels": _each(lambda t: t[: EXAMPLES // 2]),
    "no examples": lambda i, y: (map_leaves(lambda t: t[:0], i), y[:0]),
    "one example": lambda i, y: (map_leaves(lambda t: t[:1], i), y[:1]),
    "one position": _each(lambda t: t[..., :1]),
    "NaN": _each(lambda t: t * torch.nan),
    "infinity": _each(lambda t: t + torch.inf),
    "one NaN": _each(lambda t: _set(t.float(), torch.nan)),
    "huge numbers": _each(lambda t: t.float() * 1e30),
    "numbers that overflow": _each(lambda t: _set(t.float(), 3e38)),
    "negative numbers": _each(lambda t: -1 - t.abs()),
    "large numbers": _each(lambda t: t.abs() + 100),
    "one large number": _each(lambda t: _set(t, 99)),
    "numbers without values": _each(lambda t: t.to("meta")),
    "sparse numbers": _each(lambda t: t.to_sparse()),
    "sparse rows": _each(lambda t: t.flatten(1).to_sparse_csr()),
    "nested numbers": _each(_nested),
    "jagged numbers": _each(_jagged),
    "quantized numbers": _each(_quantized),
    "numbers of another graph": _each(lambda t: t.float().requires_grad_() * 1),
    "a parameter": _each(lambda t: nn.Parameter(t, requires_grad=t.is_floating_point())),
    "None": _inputs(lambda _: None),
    "a string": _inputs(lambda _: "image"),
    "strings": _inputs(lambda _: ["a"] * EXAMPLES),
    "a number": _inputs(lambda _: 3.5),
    "a function": _inputs(lambda _: good),
    "a set of tensors": _inputs(lambda _: {torch.zeros(EXAMPLES)}),
    "nothing in a tuple": _inputs(lambda _: ()),
    "nothing in a list": _inputs(lambda _: []),
    "nothing in a dict": _inputs(lambda _: {}),
    "an array": _inputs(lambda _: torch.zeros(EXAMPLES, 16).numpy()),
    "an array of objects": _inputs(lambda _: torch.zeros(EXAMPLES).numpy().astype(object)),
    "lists of numbers": _inputs(lambda _: torch.zeros(EXAMPLES, 16).tolist()),
    "a tuple of one": _inputs(lambda i: (i,)),
    "a tuple of two": _inputs(lambda i: (i, i)),
    "a tuple of three": _inputs(lambda i: (i, i, i)),
    "a list of tensors": _inputs(lambda i: [i, i]),
    "None beside a tensor": _inputs(lambda i: (i, None)),
    "a string beside a tensor": _inputs(lambda i: (i, "mask")),
    "names that the model does not know": _entries(lambda d: {f"{k}s": v for k, v in d.items()}),
    "names that are numbers": _entries(lambda d: dict(enumerate(d.values()))),
    "a name too many": _entries(lambda d: d | {"mask": next(iter(d.values()))}),
    "the last name missing": _entries(lambda d: dict(list(d.items())[:-1])),
    "the first name missing": _entries(lambda d: dict(list(d.items())[1:])),
    "names for None": _entries(lambda d: dict.fromkeys(d)),
    "names for strings": _entries(lambda d: dict.fromkeys(d, "image")),
    "a dict within a dict": _entries(lambda d: {"inputs": d}),
    "entries exchanged": _entries(lambda d: dict(zip(d, reversed(d.values()), strict=True))),
    "entries of differing lengths": _entries(
        lambda d: {k: v[: EXAMPLES - i] for i, (k, v) in enumerate(d.items())}
    ),
    "an entry without values": _entries(
        lambda d: d | {"tokens": torch.empty(EXAMPLES, 6).to("meta")}
    ),
    "a label too large": _labels(lambda t: _set(t, CLASSES)),
    "a huge label": _labels(lambda t: _set(t, 2**62)),
    "a negative label": _labels(lambda t: _set(t, -1)),
    "a label to be ignored": _labels(lambda t: _set(t, -100)),
    "one-hot labels": _labels(lambda t: F.one_hot(t, CLASSES)),
    "probabilities as labels": _labels(lambda t: F.one_hot(t, CLASSES).float()),
    "labels in a column": _labels(lambda t: t[:, None]),
    "labels in a row": _labels(lambda t: t[None]),
    "a single label": _labels(lambda t: t[0]),
    "a label too few": _labels(lambda t: t[:-1]),
    "a label too many": _labels(lambda t: torch.cat((t, t[:1]))),
    "no labels": _labels(lambda t: t[:0]),
    "labels that are NaN": _labels(lambda t: t * torch.nan),
    "labels without values": _labels(lambda t: t.to("meta")),
    "sparse labels": _labels(lambda t: t.to_sparse()),
    "nested labels": _labels(lambda t: torch.nested.nested_tensor([t, t])),
    "jagged labels": _labels(lambda t: torch.nested.nested_tensor([t] * 5, layout=torch.jagged)),
    "quantized labels": _labels(_quantized),
    "labels that are None": _labels(lambda _: None),
    "a string as labels": _labels(lambda _: "cat"),
    "a label as a number": _labels(lambda _: 3),
    "strings as labels": _labels(lambda _: ["cat"] * EXAMPLES),
    "None as labels": _labels(lambda _: [None] * EXAMPLES),
    "labels in a list": _labels(Tensor.tolist),
    "labels in an array": _labels(Tensor.numpy),
    "labels in a tuple": _labels(lambda t: (t,)),
    "labels in a dict": _labels(lambda t: {"labels": t}),
}
