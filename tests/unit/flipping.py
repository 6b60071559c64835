"""Flip one bit of a file after the other, and count what is read without a word."""

import random
from collections.abc import Callable
from pathlib import Path

PARTS = range(6)
FLIPS = 100  # a part: 600 in all


def silent_flips(
    path: Path, part: int, read: Callable[[], object], refusal: type[Exception]
) -> list[int]:
    """Return the bits after whose flip something else than before is read.

    Any other exception than `refusal` ends the test.
    """
    whole, chance = path.read_bytes(), random.Random(part)
    before, silent = read(), []
    for place in (chance.randrange(8 * len(whole)) for _ in range(FLIPS)):
        altered = bytearray(whole)
        altered[place // 8] ^= 1 << (place % 8)
        path.write_bytes(altered)
        try:
            found = read()
        except refusal:
            continue
        if found != before:
            silent.append(place)
    path.write_bytes(whole)
    assert read() == before
    return silent
