"""Tests talk to this machine only, but for those that are marked as fetching.

Servers that tests start on a loopback address are part of the test. Of processes that tests start,
the clients that fetch packages are refused; what other processes do is not watched.
"""

import ipaddress
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

# Python tells these before it connects, sends or looks a name up, to whoever asked for it.
_ADDRESS_AT: Final = {
    "socket.connect": 1,
    "socket.sendto": 1,
    "socket.getaddrinfo": 0,
    "socket.gethostbyname": 0,
}


# This machine's own; tests put stand-ins of these names first.
CLIENTS: Final = {
    path for name in ("npm", "apt-get", "pip", "curl", "wget") if (path := shutil.which(name))
}


class _Watch:
    """Fail the running test when it reaches out, in a way that no `except Exception` hides."""

    def __init__(self) -> None:
        self.is_open = False

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.is_open or not event.startswith(("socket.", "subprocess.")):
            return
        if event == "subprocess.Popen":
            reached = str(arguments[0])
            reaches_out = shutil.which(reached) in CLIENTS
        elif event in _ADDRESS_AT:
            reached = arguments[_ADDRESS_AT[event]]
            reaches_out = not _is_here(reached)
        else:
            return
        if reaches_out:
            pytest.fail(
                f"this test reaches out to {reached!r}; serve what it needs on 127.0.0.1, or mark "
                "it `network` if it fetches what cannot be kept here."
            )


_WATCH: Final = _Watch()
sys.addaudithook(_WATCH)  # for good: Python lets nobody take one away


@contextmanager
def opened(*, when: bool) -> Iterator[None]:
    """Let connections out during a block."""
    before, _WATCH.is_open = _WATCH.is_open, when
    try:
        yield
    finally:
        _WATCH.is_open = before


def _is_here(address: object) -> bool:
    """Whether an address is this machine: the path of a socket, a loopback address, or none."""
    host = address[0] if isinstance(address, tuple) else address
    text = host.decode(errors="replace") if isinstance(host, bytes) else str(host or "")
    if text in ("", "localhost") or text.startswith(("/", "\0")):
        return True
    try:
        return ipaddress.ip_address(text).is_loopback
    except ValueError:
        return False
