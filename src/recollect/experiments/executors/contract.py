"""What a sweep asks of those who make its runs: requests in, messages and records out, a stop."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from recollect.experiments.running.snapshots import Snapshot
from recollect.experiments.specs.request import Request

Kind = Literal[
    "started",
    "anew",
    "progress",
    "record",
    "stopped",
    "moved",
    "lost",
    "store-error",
]


@dataclass(frozen=True)
class Task:
    """A run to make.

    Attributes:
        request: Which.
        snapshot: The code to make it with.
    """

    request: Request
    snapshot: Snapshot


@dataclass(frozen=True)
class Message:
    """What an executor says of a run that it was given.

    Attributes:
        kind: It started, starts anew because its checkpoint cannot be continued, or made progress.
            It is over: `record` has what came out; `stopped` means that it saved its place;
            `lost` that its worker died, so that it is to be given out again. `moved`: its worker
            died and another has it already. `store-error`: nothing can be saved.
        request: Which run.
        facts: What belongs to the kind: fields of an `Event`, the `record` as a row, the `message`
            of a loss and whether it `is_final`.
    """

    kind: Kind
    request: Request
    facts: dict[str, Any] = field(default_factory=dict)


class Executor(ABC):
    """Makes runs, several at a time, and tells how they go.

    A sweep submits a run once it holds the claim on it, and writes the record that comes back. An
    executor sees to it that a run which was stopped or lost continues where it was last saved.
    """

    def start(self, on_notice: Callable[[str], None]) -> None:  # noqa: B027 - some do nothing
        """Get ready; called once, when there is something to make.

        Args:
            on_notice: Called, now or later, with what a person should know of the workers.

        Raises:
            WorkerError: Runs cannot be made.
        """

    @abstractmethod
    def room(self) -> int:
        """Return how many more runs it would take now."""

    @abstractmethod
    def submit(self, task: Task) -> None:
        """Take a run."""

    @abstractmethod
    def poll(self, seconds: float) -> list[Message]:
        """Return what happened, waiting up to `seconds` for something to happen.

        Raises:
            WorkerError: No run can be made any more.
        """

    @abstractmethod
    def stop(self) -> None:
        """Ask every run to save its place; `poll` tells when each is over."""

    @abstractmethod
    def close(self, seconds: float) -> None:
        """Give everything back; runs that are not over save their place within `seconds`."""
