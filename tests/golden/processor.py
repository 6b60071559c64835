"""The kind of processor, by what decides how float32 sums are rounded."""

import os
import re
from functools import cache
from typing import Final

import torch

from recollect.experiments.running.machine import processor

# Each makes a library choose other kernels than the processor's own.
_OVERRIDES: Final = ("MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA")


@cache
def kind() -> str:
    """Name everything that decides which kernels run: on the same kind, every bit agrees."""
    parts = [
        f"torch {torch.__version__}",
        *_libraries(),
        torch.backends.cpu.get_cpu_capability(),
        processor(),
        *(f"{name}={os.environ[name]}" for name in _OVERRIDES if name in os.environ),
    ]
    return ", ".join(parts)


def _libraries() -> list[str]:
    """The versions of the two libraries that torch hands products and convolutions to."""
    built = torch.__config__.show()
    found = (
        ("MKL", re.search(r"Math Kernel Library Version ([\w.]+)", built)),
        ("oneDNN", re.search(r"MKL-DNN v([\w.]+)", built)),
    )
    return [f"{name} {match[1]}" for name, match in found if match]
