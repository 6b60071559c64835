"""Generators of the learner's own, and lending one to a model that draws from torch's."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch


def derived_generator(seed: int, purpose: str) -> torch.Generator:
    """Make a generator that depends on `seed` and `purpose` only."""
    digest = hashlib.sha256(f"{seed}/{purpose}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8]) % 2**63)


@contextmanager
def drawing_from(
    generator: torch.Generator, device: torch.device, *, advance: bool
) -> Iterator[None]:
    """Let torch's own generator, from which dropout draws, continue `generator` in the block.

    Afterwards torch's generator is where the caller left it. `advance` says whether `generator`
    moves on or also stays.
    """
    if device.type != "cpu":
        with _seeded_on(generator, device, advance=advance):
            yield
        return
    outer, inner = torch.get_rng_state(), generator.get_state()
    torch.set_rng_state(inner)
    try:
        yield
    finally:
        if advance:
            generator.set_state(torch.get_rng_state())
        torch.set_rng_state(outer)


@contextmanager
def _seeded_on(
    generator: torch.Generator, device: torch.device, *, advance: bool
) -> Iterator[None]:
    # An accelerator's generator state is not portable; a fresh seed for every step is.
    before = generator.get_state()
    seed = int(torch.randint(2**62, (), generator=generator))
    if not advance:
        generator.set_state(before)
    index = device.index if device.index is not None else 0
    with torch.random.fork_rng(devices=[index], device_type=device.type):
        torch.manual_seed(seed)
        yield
