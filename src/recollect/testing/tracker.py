"""Check that a tracker of your own keeps what it was given, also over the end of a process."""

import tempfile
from collections.abc import Callable
from pathlib import Path

from recollect.trackers import Tracker


def check_tracker(build: Callable[[Path], Tracker]) -> None:
    """Check that a tracker knows its last step, also when it is opened again.

    Args:
        build: Builds the tracker of a folder, such as the class itself.

    Raises:
        AssertionError: The tracker breaks a rule; the message says which.

    Example:
        >>> from recollect.trackers import CSV
        >>> check_tracker(CSV)
    """
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        tracker = build(folder)
        _require(folder.is_dir(), "its folder is not there; call `super().__init__(folder, run)`")
        _require(tracker.last_step == 0, f"a new one has `last_step` {tracker.last_step}, not 0")
        tracker.keep(3, {"loss/incoming": 0.5, "accuracy/classes 0, 1": 1.0})
        tracker.keep(7, {"loss/incoming": float("nan"), "memory/class 2": 4})
        _require(tracker.last_step == 7, f"`last_step` is {tracker.last_step} after step 7")
        tracker.close()
        again = build(folder)
        _require(
            again.last_step == 7,
            f"opened again, it has `last_step` {again.last_step}; a run that is continued would "
            "write its steps twice",
        )
        again.keep(8, {"another name": 1.0})
        again.close()
        third = build(folder)
        _require(third.last_step == 8, f"opened a third time, it has {third.last_step}, not 8")
        third.close()


def _require(holds: bool, broken: str) -> None:
    if not holds:
        raise AssertionError(f"A tracker must not do this: {broken}.")
