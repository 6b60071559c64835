"""Losses as people have them, as one value per example."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, cast, final

from jaxtyping import Float
from torch import Tensor, nn
from typing_extensions import override

from recollect.objectives.answers import Answers
from recollect.objectives.cross_entropy import CrossEntropy
from recollect.objectives.objective import Objective

Loss = Callable[[Any, Any], Tensor]


@final
@dataclass(frozen=True)
class LossFunction(Objective):
    """Ask the same of incoming and replayed examples: `loss(outputs, labels)`, a value for each.

    Values of more than one dimension are averaged over all but the first; where labels may be
    ignored, over those that are not. `Learner(loss=...)` makes one.

    Args:
        loss: Takes whatever the model returns.
        ignored: A label that does not count.
    """

    takes_logits: ClassVar[bool] = False
    needs_classes: ClassVar[bool] = False
    is_recorded: ClassVar[bool] = False

    loss: Loss
    ignored: int | None = None

    @override
    def __call__(self, answers: Answers) -> Float[Tensor, " examples"]:
        labels = answers.labels
        losses = self.loss(answers.outputs, labels)
        if not isinstance(losses, Tensor) or losses.ndim < 2:
            return losses
        values = losses.flatten(1)
        if self.ignored is None or labels.shape != losses.shape:
            return values.mean(1)
        counted = (labels.flatten(1) != self.ignored).sum(1)
        return values.sum(1) / counted.clamp_min(1)


def objective_of(loss: Loss | None) -> Objective:
    """Return the objective that a loss stands for; a module of torch's is asked not to reduce."""
    if loss is None or (isinstance(loss, nn.CrossEntropyLoss) and _is_plain(loss)):
        return CrossEntropy()
    if isinstance(loss, nn.modules.loss._Loss):
        each = copy.copy(loss)
        each.reduction = "none"
        ignored = each.ignore_index if isinstance(each, nn.CrossEntropyLoss | nn.NLLLoss) else None
        return LossFunction(cast("Loss", each), ignored)
    return LossFunction(loss)


def _is_plain(loss: nn.CrossEntropyLoss) -> bool:
    """Whether it is the default loss: cross entropy on logits, with nothing more to it."""
    return loss.weight is None and loss.label_smoothing == 0 and loss.ignore_index == -100
