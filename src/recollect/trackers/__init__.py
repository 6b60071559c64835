"""Numbers of a run, step by step, kept where another tool shows them."""

from typing import TYPE_CHECKING

from recollect.lazy import import_when_asked
from recollect.trackers.tracker import Tracker

if TYPE_CHECKING:
    from recollect.trackers.csv_file import CSV
    from recollect.trackers.tensorboard_file import TensorBoard

__all__ = ["CSV", "TensorBoard", "Tracker"]

# A command that is told the name of a tracker wrongly need not import what trackers read.
import_when_asked(
    __name__,
    {
        "CSV": "recollect.trackers.csv_file",
        "TensorBoard": "recollect.trackers.tensorboard_file",
    },
)
