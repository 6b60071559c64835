"""Generators of the learner's own, and lending one to a model that draws from torch's."""

import hashlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import TracebackType

import torch


def derived_generator(seed: int, purpose: str) -> torch.Generator:
    """Make a generator that depends on `seed` and `purpose` only."""
    digest = hashlib.sha256(f"{seed}/{purpose}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8]) % 2**63)


def keeping_generators(device: torch.device) -> AbstractContextManager[None]:
    """Put torch's own generators, the CPU's and that of `device`, back behind a block."""
    if device.type == "cpu":
        return torch.random.fork_rng(devices=[])
    index = 0 if device.index is None else device.index
    return torch.random.fork_rng(devices=[index], device_type=device.type)


class SameDraws:
    """Let several blocks draw the same from torch's own generators, and leave no trace there.

    Every block starts from where the generators stood when this was made. With `device` None,
    nothing in the blocks draws, and nothing is done.
    """

    def __init__(self, device: torch.device | None) -> None:
        self._device = device
        self._states = [] if device is None else _generator_states(device)

    def have_begun(self) -> bool:
        """Whether something was drawn outside the blocks since."""
        if self._device is None:
            return False
        return not all(map(torch.equal, self._states, _generator_states(self._device)))

    @contextmanager
    def again(self) -> Iterator[None]:
        """Draw the same again in a block."""
        if self._device is None:
            yield
            return
        with keeping_generators(self._device):
            torch.set_rng_state(self._states[0])
            if self._device.type != "cpu":
                accelerator = torch.get_device_module(self._device)
                accelerator.set_rng_state(self._states[1], self._device)
            yield


def _generator_states(device: torch.device) -> list[torch.Tensor]:
    states = [torch.get_rng_state()]
    if device.type != "cpu":
        states.append(torch.get_device_module(device).get_rng_state(device))
    return states


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
        self._fork = ExitStack()
        self._fork.enter_context(keeping_generators(self._device))
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
