"""Numbers from counts: pure functions, floats out, no rounding."""

from typing import TYPE_CHECKING

from recollect.lazy import import_when_asked
from recollect.metrics.average_accuracy import anytime_average_accuracy, average_accuracy
from recollect.metrics.forgetting import ForgettingDefinition, forgetting
from recollect.metrics.matrix import AccuracyMatrix
from recollect.metrics.over_the_stream import (
    area_under_accuracy,
    minimum_accuracy,
    worst_case_accuracy,
)
from recollect.metrics.prequential import PrequentialAccuracy
from recollect.metrics.transfer import backward_transfer, forward_transfer, learning_accuracy

if TYPE_CHECKING:
    from recollect.metrics.evaluate import HeldOut, evaluate, fitting_batch_size
    from recollect.metrics.margins import margins

__all__ = [
    "AccuracyMatrix",
    "ForgettingDefinition",
    "HeldOut",
    "PrequentialAccuracy",
    "anytime_average_accuracy",
    "area_under_accuracy",
    "average_accuracy",
    "backward_transfer",
    "evaluate",
    "fitting_batch_size",
    "forgetting",
    "forward_transfer",
    "learning_accuracy",
    "margins",
    "minimum_accuracy",
    "worst_case_accuracy",
]

# Tables of records are made without torch, which these need.
import_when_asked(
    __name__,
    {
        "HeldOut": "recollect.metrics.evaluate",
        "evaluate": "recollect.metrics.evaluate",
        "fitting_batch_size": "recollect.metrics.evaluate",
        "margins": "recollect.metrics.margins",
    },
)
