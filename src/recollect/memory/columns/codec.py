"""Objects as bytes, so that they are bounded, saved without pickle, and can be overwritten."""

import json
from typing import Protocol, final, runtime_checkable

from typing_extensions import override


@runtime_checkable
class Codec(Protocol):
    """Turns the objects of a stream into bytes and back."""

    def encode(self, example: object) -> bytes:
        """Return the bytes that stand for an example."""

    def decode(self, stored: bytes) -> object:
        """Return the example again."""


@final
class PlainCodec(Codec):
    """Keeps strings, bytes, and whatever JSON keeps as it is."""

    @override
    def encode(self, example: object) -> bytes:
        if isinstance(example, str):
            return b"s" + example.encode("utf-8", "surrogatepass")
        if isinstance(example, bytes):
            return b"b" + example
        try:
            stored = json.dumps(example).encode()
            is_kept = json.loads(stored) == example
        except (TypeError, ValueError, RecursionError):
            is_kept = False
        if not is_kept:
            raise TypeError(
                f"`inputs` holds a {type(example).__name__}, which a memory cannot keep without "
                "pickle; pass tensors, strings, bytes or what JSON keeps, or a `codec` to `Memory` "
                "that turns it into bytes and back."
            )
        return b"j" + stored

    @override
    def decode(self, stored: bytes) -> object:
        kind, content = stored[:1], stored[1:]
        if kind == b"s":
            return content.decode("utf-8", "surrogatepass")
        return content if kind == b"b" else json.loads(content)
