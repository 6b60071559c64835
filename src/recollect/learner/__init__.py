"""The one place that knows model, memory and policies: `Learner.observe` is the whole step."""

from recollect.learner.learner import Learner
from recollect.learner.report import StepReport, Update

__all__ = ["Learner", "StepReport", "Update"]
