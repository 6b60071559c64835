"""What every tracker does: keep numbers of a step once, and know which step was the last."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from recollect.trackers.numbers import memory_numbers, step_numbers

if TYPE_CHECKING:
    from recollect.learner import StepReport
    from recollect.memory import Memory


class Tracker(ABC):
    """Keeps numbers of one run.

    A tracker of your own has `last_step` and `keep`; `recollect.testing.check_tracker` says whether
    it behaves. `recollect run --track my_tracker.py:Mine` builds one for each run.

    Args:
        folder: Of this run alone. It is created.
        run: What is known of the run: `benchmark`, `protocol`, `method`, `capacity`, `seed`,
            `spec_hash`, `settings` (all of them, nested), `started_at`. Nothing in a loop of your
            own.
    """

    def __init__(self, folder: str | Path, run: Mapping[str, Any] | None = None) -> None:
        self.folder = Path(folder)
        self.run = dict(run or {})
        self.folder.mkdir(parents=True, exist_ok=True)

    @property
    @abstractmethod
    def last_step(self) -> int:
        """The last step that is kept whole, 0 if there is none; also of an earlier process."""

    @abstractmethod
    def keep(self, step: int, numbers: Mapping[str, float]) -> None:
        """Keep the numbers of a step, all of them or none, so that a kill does not lose them.

        Args:
            step: Higher than `last_step`.
            numbers: By name, such as `"loss/incoming"`. Another step may have other names.
        """

    def close(self) -> None:
        """Let go of files and connections; nothing is kept after this."""
        return

    @final
    def write(
        self, report: "StepReport", *, memory: "Memory | None" = None, **numbers: float
    ) -> None:
        """Keep what one call of `observe` did, in a loop of your own.

        A step that is kept already is passed over: a loop that was killed and continues from a
        checkpoint may repeat steps.

        Args:
            report: What `observe` returned.
            memory: `learner.memory`, to keep its classes and ages as well.
            **numbers: Others, such as `accuracy=0.9` or `seconds=0.01`.

        Raises:
            ValueError: The step is the first one, but later ones are kept: of another run.
        """
        if report.step <= self.last_step:
            if report.step == 1:
                raise ValueError(
                    f"`{self.folder}` holds steps up to {self.last_step} of another run, and this "
                    "one begins; pass another folder, or delete that one."
                )
            return
        found = step_numbers(report) | {"seen": float(report.seen)}
        if memory is not None:
            found |= memory_numbers(memory)
        self.keep(report.step, found | {name: float(value) for name, value in numbers.items()})
