"""Where it was measured: processor, caches, versions and how busy the machine was."""

import os
import subprocess
from pathlib import Path

from perf.peers.process import PYTHON
from recollect.experiments.running.machine import commit, machine, usable_cores, versions

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_PEERS = ("avalanche-lib", "capymoa")


def surroundings() -> dict[str, dict[str, str]]:
    """Return machine and versions, without a host name or a path."""
    here = {**machine(), "usable cores": str(usable_cores()), **caches()}
    return {"machine": here, "versions": {**versions(), "commit": commit()[:11], **peer_versions()}}


def load() -> float:
    """Return the mean number of processes that wanted a core in the last minute."""
    return os.getloadavg()[0]


def caches() -> dict[str, str]:
    """Return the sizes of the first core's caches, where Linux says them."""
    found = {}
    for folder in sorted(_CACHES.glob("index*")):
        level, kind, size = (
            (folder / name).read_text().strip() for name in ("level", "type", "size")
        )
        if kind != "Instruction":
            found[f"L{level} cache"] = size
    return found


def peer_versions() -> dict[str, str]:
    """Ask the peers' environment what it holds."""
    if not PYTHON.exists():
        return {}
    words = f"from importlib.metadata import version as v; print(*map(v, {_PEERS!r}))"
    ended = subprocess.run([str(PYTHON), "-c", words], capture_output=True, text=True, check=False)
    return dict(zip(_PEERS, ended.stdout.split(), strict=False))
