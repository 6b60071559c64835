"""Numbers from counts: pure functions, floats out, no rounding."""

from recollect.metrics.average_accuracy import anytime_average_accuracy, average_accuracy
from recollect.metrics.evaluate import HeldOut, evaluate, fitting_batch_size
from recollect.metrics.forgetting import ForgettingDefinition, forgetting
from recollect.metrics.margins import margins
from recollect.metrics.matrix import AccuracyMatrix
from recollect.metrics.prequential import PrequentialAccuracy
from recollect.metrics.transfer import backward_transfer, forward_transfer, learning_accuracy

__all__ = [
    "AccuracyMatrix",
    "ForgettingDefinition",
    "HeldOut",
    "PrequentialAccuracy",
    "anytime_average_accuracy",
    "average_accuracy",
    "backward_transfer",
    "evaluate",
    "fitting_batch_size",
    "forgetting",
    "forward_transfer",
    "learning_accuracy",
    "margins",
]
