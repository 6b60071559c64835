"""The kind of processor, by what decides how float32 sums are rounded."""

import os
import platform
import re
from functools import cache
from pathlib import Path
from typing import Final

import torch

# Each makes a library choose other kernels than the processor's own.
_OVERRIDES: Final = ("MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA")


@cache
def kind() -> str:
    """Name everything that decides which kernels run: on the same kind, every bit agrees."""
    parts = [
        f"torch {torch.__version__}",
        *_libraries(),
        torch.backends.cpu.get_cpu_capability(),
        _processor(),
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


def _processor() -> str:
    """Maker, family and model: brand names differ where the kernels do not."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return f"{platform.system()} {platform.processor() or platform.machine()}"
    fields = dict(re.findall(r"^(vendor_id|cpu family|model)\s*: (.+)$", text, re.MULTILINE))
    if len(fields) < 3:
        return f"{platform.system()} {platform.machine()}"
    return "{vendor_id} family {cpu family} model {model}".format(**fields)
