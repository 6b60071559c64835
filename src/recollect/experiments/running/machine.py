"""Where a run was made: versions, commit, code and machine, without a host name."""

import hashlib
import json
import os
import platform
import re
import resource
import subprocess
import sys
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Final

import recollect

_PACKAGE: Final = Path(__file__).parents[2]
_SOURCE: Final = _PACKAGE.parents[1]
# What shows numbers and cannot change them: no run imports it.
_SHOWN_BY: Final = frozenset({"cli", "reports", "paper"})

ABOUT: Final = "about.json"  # beside the package in a snapshot of it: the commit it was taken at

MOST_WORKERS: Final = 1000  # processes, or threads of one
CHECKPOINT_SHARE: Final = 0.01  # of the time of a run


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Return the versions that decide the numbers."""
    # Ours from the package: on the worker of a cluster it is a snapshot, and not installed.
    packages = {name: version(name) for name in ("torch", "numpy")}
    python = platform.python_version()
    return {"recollect": recollect.__version__, **packages, "python": python}


@lru_cache(maxsize=1)
def commit() -> str:
    """Return the commit of the code, with "+" if it was changed since; "" outside a checkout."""
    if (about := _PACKAGE.parent / ABOUT).is_file():
        told: str = json.loads(about.read_bytes())["commit"]
        return told
    if not (_SOURCE / ".git").exists():
        return ""
    head = _git("rev-parse", "HEAD")
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", "src")
    return f"{head}+" if head and changed else head


@lru_cache(maxsize=1)
def code() -> str:
    """Return a hash of the code that makes runs, wherever it is installed.

    A commit tells less: it changes with every page and record, and not with local changes.
    """
    return digest_of(source())


def source() -> dict[str, bytes]:
    """Return the files that make runs, by their paths in the package.

    Without those that show what came out, and without data: what is inside the package is checked
    whenever it is read.
    """
    paths = ((file, file.relative_to(_PACKAGE)) for file in _PACKAGE.rglob("*.py"))
    kept = ((file, where) for file, where in paths if where.parts[0] not in _SHOWN_BY)
    return {where.as_posix(): file.read_bytes() for file, where in kept}


def digest_of(files: Mapping[str, bytes]) -> str:
    """Return the SHA-256 of files with their names."""
    digest = hashlib.sha256()
    for name in sorted(files, key=lambda name: Path(name).parts):
        digest.update(f"{name}\0".encode() + files[name])
    return digest.hexdigest()


@lru_cache(maxsize=1)
def machine() -> dict[str, str]:
    """Return CPU model, what decides how it rounds, cores and system."""
    import torch  # here: the command asks this module for numbers of workers, without torch

    return {
        "cpu": _cpu_model(),
        "kernels": f"{processor()}, {torch.backends.cpu.get_cpu_capability()}",
        "cores": str(os.cpu_count() or 1),
        "system": f"{platform.system()} {platform.machine()}",
    }


def processor() -> str:
    """Return maker, family and model of the processor: one brand name covers several kinds."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return f"{platform.system()} {platform.processor() or platform.machine()}"
    fields = dict(re.findall(r"^(vendor_id|cpu family|model)\s*: (.+)$", text, re.MULTILINE))
    if len(fields) < 3:
        return f"{platform.system()} {platform.machine()}"
    return "{vendor_id} family {cpu family} model {model}".format(**fields)


def usable_cores() -> int:
    """Count the cores this process may run on, which a container may hold below the machine's."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def forget_peak_memory() -> None:
    """Start measuring the peak anew, where the system can: one process makes many runs."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def peak_memory() -> int:
    """Return the peak resident memory of this process in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(_SOURCE), *arguments]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ended.stdout.strip() if ended.returncode == 0 else ""


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"
