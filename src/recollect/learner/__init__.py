"""The one place that knows model, memory and policies: `Learner.observe` is the whole step."""

from recollect.learner.label_map import LabelMap
from recollect.learner.learner import Learner
from recollect.learner.report import StepReport, Update

__all__ = ["LabelMap", "Learner", "StepReport", "Update"]
