"""Flip one bit of a file after the other, and count what is read without a word."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

PARTS = range(6)
FLIPS = 100  # a part: 600 in all


@dataclass
class Flips:
    """What came of flips of single bits.

    Attributes:
        refused: How many were refused in words.
        harmless: How many changed nothing of what is read.
        silent: The bits after whose flip something else was read, without a word.
    """

    refused: int = 0
    harmless: int = 0
    silent: list[int] = field(default_factory=list)


def flipped(path: Path, part: int, read: Callable[[], object], refusal: type[Exception]) -> Flips:
    """Flip single bits of a file, each alone, and read it.

    Any other exception than `refusal` goes through.
    """
    whole, chance = path.read_bytes(), random.Random(part)
    before, outcome = read(), Flips()
    for place in (chance.randrange(8 * len(whole)) for _ in range(FLIPS)):
        altered = bytearray(whole)
        altered[place // 8] ^= 1 << (place % 8)
        path.write_bytes(altered)
        try:
            found = read()
        except refusal:
            outcome.refused += 1
            continue
        if found == before:
            outcome.harmless += 1
        else:
            outcome.silent.append(place)
    path.write_bytes(whole)
    assert read() == before
    return outcome


def silent_flips(
    path: Path, part: int, read: Callable[[], object], refusal: type[Exception]
) -> list[int]:
    """Return the bits after whose flip something else than before is read."""
    return flipped(path, part, read, refusal).silent
