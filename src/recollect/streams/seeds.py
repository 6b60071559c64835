"""One seed, many independent generators."""

import hashlib
from operator import index

import torch


def derived_generator(seed: int, *purpose: str | int) -> torch.Generator:
    """Return a generator for one purpose, independent of the generators of every other purpose.

    Which examples are chosen, in which order they arrive and how pixels are permuted each draw from
    a generator of their own. Adding a draw to one of them then moves none of the others, and with
    the same seed every method gets the same stream (paired seeds).

    Args:
        seed: The seed of the stream, zero or more.
        purpose: What the numbers are for, such as `"permutation", 3`.

    Example:
        >>> first, again = (derived_generator(0, "order", 1) for _ in range(2))
        >>> torch.equal(torch.randperm(9, generator=first), torch.randperm(9, generator=again))
        True
    """
    whole = index(seed)  # a numpy integer is one, 0.5 is not
    if whole < 0:
        raise ValueError(f"`seed` is {seed}; pass zero or a positive whole number.")
    # repr() keeps ("a", 1) and ("a", "1") apart; hash() would change from process to process.
    digest = hashlib.sha256(repr((whole, *purpose)).encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "little") >> 1)
