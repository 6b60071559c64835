"""HOW THE LEARNER ANSWERS: by the model's outputs, by class means, or by averaged weights."""

from recollect.predictors.averaged_weights import AveragedWeights
from recollect.predictors.logits import Logits
from recollect.predictors.nearest_class_mean import NearestClassMean
from recollect.predictors.predictor import Predictor, View

__all__ = ["AveragedWeights", "Logits", "NearestClassMean", "Predictor", "View"]
