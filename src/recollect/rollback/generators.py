"""Generators of the learner's own, and lending one to a model that draws from torch's."""

import hashlib
from types import TracebackType

import torch
from torch import Tensor


def derived_generator(seed: int, purpose: str) -> torch.Generator:
    """Make a generator that depends on `seed` and `purpose` only."""
    digest = hashlib.sha256(f"{seed}/{purpose}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8]) % 2**63)


def generator_states(device: torch.device) -> list[Tensor]:
    """Where torch's own generators stand: the CPU's and that of `device`."""
    states = [torch.get_rng_state()]
    if device.type != "cpu":
        states.append(torch.get_device_module(device).get_rng_state(device))
    return states


def set_generator_states(device: torch.device, states: list[Tensor]) -> None:
    """Put torch's own generators where `generator_states` found them."""
    torch.set_rng_state(states[0])
    if device.type != "cpu":
        torch.get_device_module(device).set_rng_state(states[1], device)


class KeepingGenerators:
    """Put torch's own generators, the CPU's and that of `device`, back behind a block.

    A class, as all blocks of a step are: a generator function that an interrupt left unfinished
    would finish whenever its traceback is let go, and put back what is long out of date.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def __enter__(self) -> None:
        self._states = generator_states(self._device)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        set_generator_states(self._device, self._states)


class SameDraws:
    """Let several blocks draw the same from torch's own generators, and leave no trace there.

    Every block, `with draws:`, starts from where the generators stood when this was made. With
    `device` None, nothing in the blocks draws, and nothing is done.
    """

    def __init__(self, device: torch.device | None) -> None:
        self._device = device
        self._states = [] if device is None else generator_states(device)

    def have_begun(self) -> bool:
        """Whether something was drawn outside the blocks since."""
        if self._device is None:
            return False
        return not all(map(torch.equal, self._states, generator_states(self._device)))

    def __enter__(self) -> None:
        if self._device is not None:
            self._outer = generator_states(self._device)
            set_generator_states(self._device, self._states)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._device is not None:
            set_generator_states(self._device, self._outer)


def lend(generator: torch.Generator, device: torch.device) -> None:
    """Let torch's own generator, from which dropout draws, continue `generator`.

    On an accelerator, whose generator state is not portable, it gets a fresh seed drawn from
    `generator`. Whoever lends puts torch's generators back.
    """
    if device.type == "cpu":
        torch.set_rng_state(generator.get_state())
    else:
        torch.manual_seed(int(torch.randint(2**62, (), generator=generator)))


def lent_state(generator: torch.Generator, device: torch.device) -> Tensor:
    """Return where `generator` will stand when it is given back: on from what was drawn."""
    return torch.get_rng_state() if device.type == "cpu" else generator.get_state()
