"""What people call things, in which order, and in which colour: one literal table each."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple


class Colour(NamedTuple):
    """A colour on white and its counterpart on black."""

    light: str
    dark: str


# Blue, orange and green families stay apart for every common kind of colour blindness; neighbours
# of one family (ER and ER-P, ER-C and ER-PC) differ in lightness, so they differ in grey as well.
_METHODS: Final[Mapping[str, tuple[str, Colour]]] = {
    "van": ("VAN", Colour("#757575", "#a3a3a3")),
    "er": ("ER", Colour("#00609c", "#4da3dd")),
    "er-p": ("ER-P", Colour("#3f9fd8", "#8ccdf5")),
    "er-c": ("ER-C", Colour("#dd9000", "#f0b440")),
    "er-pc": ("ER-PC", Colour("#b8400a", "#ef8354")),
    "er-mir": ("ER-MIR", Colour("#00805a", "#37bd92")),
    "er-p-mir": ("ER-P-MIR", Colour("#5e4fa2", "#a396e0")),
    "er-pc-mir": ("ER-PC-MIR", Colour("#b03a80", "#e68abb")),
    "gss": ("GSS", Colour("#7a6a16", "#c3b04f")),
    "a-gem": ("A-GEM", Colour("#12868f", "#58c3cb")),
    "er-cb": ("ER-CB", Colour("#4a4a4a", "#cfcfcf")),
}
_SPARE: Final = (
    Colour("#8c3b5e", "#d98bac"),
    Colour("#3d6b35", "#93c489"),
    Colour("#6b4c9a", "#b79ae0"),
    Colour("#8a5a2b", "#d0a06f"),
)
_BENCHMARKS: Final[Mapping[str, str]] = {
    "mnist-split": "MNIST-S",
    "mnist-permuted": "MNIST-P",
    "cifar10-split": "CIFAR10-S",
    "mini-imagenet-split": "MINI-S",
}
# The paper's tables read ER, then what is added to it; figures read from VAN to the best.
_METHOD_ORDER: Final = (
    "van",
    "er",
    "er-p",
    "er-c",
    "er-pc",
    "gss",
    "a-gem",
    "er-cb",
    "er-mir",
    "er-p-mir",
    "er-pc-mir",
)


def method_title(method: str) -> str:
    """Return a method's name as the paper writes it.

    Example:
        >>> method_title("er-pc-mir"), method_title("my-own")
        ('ER-PC-MIR', 'my-own')
    """
    return _METHODS[method][0] if method in _METHODS else method


def benchmark_title(benchmark: str) -> str:
    """Return a benchmark's name as the paper writes it, or as it is."""
    return _BENCHMARKS.get(benchmark, benchmark)


def method_order(method: str) -> tuple[int, str]:
    """Return a key that sorts methods as the paper lists them, others behind."""
    known = _METHOD_ORDER.index(method) if method in _METHOD_ORDER else len(_METHOD_ORDER)
    return known, method


def benchmark_order(benchmark: str) -> tuple[int, str]:
    """Return a key that sorts benchmarks as the paper lists them, others behind."""
    known = list(_BENCHMARKS)
    return known.index(benchmark) if benchmark in known else len(known), benchmark


def method_colours(methods: Iterable[str]) -> dict[str, Colour]:
    """Return a colour for each method: its own if it is one of ours, else a spare one."""
    colours: dict[str, Colour] = {}
    num_spare = 0
    for method in sorted(set(methods), key=method_order):
        if method in _METHODS:
            colours[method] = _METHODS[method][1]
        else:
            colours[method] = _SPARE[num_spare % len(_SPARE)]
            num_spare += 1
    return colours
