"""WHAT is asked of the model's outputs, for incoming and for replayed examples."""

from recollect.objectives.answers import Answers, Part
from recollect.objectives.asymmetric import AsymmetricCrossEntropy
from recollect.objectives.contrast import SupervisedContrast
from recollect.objectives.cross_entropy import CrossEntropy
from recollect.objectives.dark_experience import DarkExperience
from recollect.objectives.loss import LossFunction
from recollect.objectives.objective import Objective

__all__ = [
    "Answers",
    "AsymmetricCrossEntropy",
    "CrossEntropy",
    "DarkExperience",
    "LossFunction",
    "Objective",
    "Part",
    "SupervisedContrast",
]
