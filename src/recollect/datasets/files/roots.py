"""Where data lies on this machine."""

import os
from pathlib import Path


def cache_root() -> Path:
    """Return the folder our own copies live in.

    `RECOLLECT_DATA` if set, else `recollect` under the platform's cache folder
    (`XDG_CACHE_HOME` or `~/.cache`).
    """
    if named := os.environ.get("RECOLLECT_DATA"):
        return Path(named).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base).expanduser() if base else Path.home() / ".cache") / "recollect"


def huggingface_hub() -> Path:
    """Return the Hugging Face hub's cache folder, as its client finds it."""
    if named := os.environ.get("HF_HUB_CACHE"):
        return Path(named).expanduser()
    home = os.environ.get("HF_HOME")
    return (Path(home).expanduser() if home else Path.home() / ".cache" / "huggingface") / "hub"
