"""Generators of the learner's own, and lending one to a model that draws from torch's."""

import hashlib
from contextlib import ExitStack
from types import TracebackType

import torch


def derived_generator(seed: int, purpose: str) -> torch.Generator:
    """Make a generator that depends on `seed` and `purpose` only."""
    digest = hashlib.sha256(f"{seed}/{purpose}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8]) % 2**63)


class DrawingFrom:
    """Let torch's own generator, from which dropout draws, continue `generator` in a block.

    Afterwards torch's generator is where the caller left it, and `generator` has moved on, unless
    `advance` is False. On an accelerator, whose generator state is not portable, the block gets a
    fresh seed drawn from `generator`.
    """

    def __init__(
        self, generator: torch.Generator, device: torch.device, *, advance: bool = True
    ) -> None:
        self._generator, self._device, self.advance = generator, device, advance

    def __enter__(self) -> None:
        self._before = self._generator.get_state()
        if self._device.type == "cpu":
            self._outer = torch.get_rng_state()
            torch.set_rng_state(self._before)
            return
        seed = int(torch.randint(2**62, (), generator=self._generator))
        index = 0 if self._device.index is None else self._device.index
        fork = torch.random.fork_rng(devices=[index], device_type=self._device.type)
        self._fork = ExitStack()
        self._fork.enter_context(fork)
        torch.manual_seed(seed)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._device.type == "cpu":
            after = torch.get_rng_state()
            torch.set_rng_state(self._outer)
        else:
            after = self._generator.get_state()
            self._fork.close()
        self._generator.set_state(after if self.advance else self._before)
