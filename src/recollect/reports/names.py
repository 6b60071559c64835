"""Names of methods and benchmarks, and their order: one literal table each."""

from collections.abc import Mapping
from typing import Final

_METHODS: Final[Mapping[str, str]] = {
    "van": "VAN",
    "er": "ER",
    "er-p": "ER-P",
    "er-c": "ER-C",
    "er-pc": "ER-PC",
    "er-mir": "ER-MIR",
    "er-p-mir": "ER-P-MIR",
    "er-pc-mir": "ER-PC-MIR",
    "gss": "GSS",
    "a-gem": "A-GEM",
    "er-cb": "ER-CB",
    "er-p-cb": "ER-P-CB",
    "er-w": "ER-W",
    "er-w-mir": "ER-W-MIR",
    "er-clip": "ER-CLIP",
    "er-clip-mir": "ER-CLIP-MIR",
    "er-pcgrad": "ER-PCGRAD",
    "er-mgda": "ER-MGDA",
    "er-cagrad": "ER-CAGRAD",
    "er-upgrad": "ER-UPGRAD",
    "er-ace": "ER-ACE",
    "er-ace-p": "ER-ACE-P",
    "er-ace-c": "ER-ACE-C",
    "er-ace-pc": "ER-ACE-PC",
    "er-ace-w": "ER-ACE-W",
    "er-ace-clip": "ER-ACE-CLIP",
    "der": "DER",
    "der++": "DER++",
    "der++-p": "DER++-P",
    "der++-c": "DER++-C",
    "der++-pc": "DER++-PC",
    "der++-w": "DER++-W",
    "der++-clip": "DER++-CLIP",
    "rar": "RAR",
    "rar-p": "RAR-P",
    "rar-c": "RAR-C",
    "rar-pc": "RAR-PC",
    "rar-w": "RAR-W",
    "rar-clip": "RAR-CLIP",
    "scr": "SCR",
    "er-ema": "ER-EMA",
    "er-p-converged": "ER-P, converged",
    "er-c-equal": "ER-C, equal storage",
    "er-c-replay": "ER-C, s1, MI at replay",
    "er-pc-equal": "ER-PC, equal storage",
    "er-pc-mir-equal": "ER-PC-MIR, equal storage",
}
_BENCHMARKS: Final[Mapping[str, str]] = {
    "mnist-split": "MNIST-S",
    "mnist-permuted": "MNIST-P",
    "cifar10-split": "CIFAR10-S",
    "mini-imagenet-split": "MINI-S",
    "languages-split": "LANG-S",
}
_PASSES: Final[Mapping[str, str]] = {
    "joint": "joint pass",
    "separate": "separate passes",
    "grouped": "grouped passes",
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
    "er-p-converged",
    "er-c-equal",
    "er-c-replay",
    "er-pc-equal",
    "er-pc-mir-equal",
    "er-p-cb",
    "er-w",
    "er-w-mir",
    "er-clip",
    "er-clip-mir",
    "er-pcgrad",
    "er-mgda",
    "er-cagrad",
    "er-upgrad",
    "er-ace",
    "er-ace-p",
    "er-ace-c",
    "er-ace-pc",
    "er-ace-w",
    "er-ace-clip",
    "der",
    "der++",
    "der++-p",
    "der++-c",
    "der++-pc",
    "der++-w",
    "der++-clip",
    "rar",
    "rar-p",
    "rar-c",
    "rar-pc",
    "rar-w",
    "rar-clip",
    "scr",
    "er-ema",
)


def method_title(method: str) -> str:
    """Return a method's name as the paper writes it.

    Example:
        >>> method_title("er-pc-mir"), method_title("my-own")
        ('ER-PC-MIR', 'my-own')
    """
    return _METHODS.get(method, method)


def benchmark_title(benchmark: str) -> str:
    """Return a benchmark's name as the paper writes it, or as it is."""
    return _BENCHMARKS.get(benchmark, benchmark)


def passes_title(passes: str) -> str:
    """Return how examples pass the network, in words that end a phrase.

    Example:
        >>> passes_title("joint"), passes_title("separate")
        ('joint pass', 'separate passes')
    """
    return _PASSES.get(passes, passes)


def method_order(method: str) -> tuple[int, str]:
    """Return a key that sorts methods as the paper lists them, others behind."""
    known = _METHOD_ORDER.index(method) if method in _METHOD_ORDER else len(_METHOD_ORDER)
    return known, method


def benchmark_order(benchmark: str) -> tuple[int, str]:
    """Return a key that sorts benchmarks as the paper lists them, others behind."""
    known = list(_BENCHMARKS)
    return known.index(benchmark) if benchmark in known else len(known), benchmark
