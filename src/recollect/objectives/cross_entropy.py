"""Cross entropy, the usual objective."""

from dataclasses import dataclass
from typing import ClassVar, final

from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F
from typing_extensions import override

from recollect.objectives.answers import Answers
from recollect.objectives.objective import Objective


@final
@dataclass(frozen=True)
class CrossEntropy(Objective):
    r"""Ask for the label among all classes, of incoming and replayed examples alike.

        loss(x, y) = -log softmax(z)_y,    z the logits of x

    Example:
        >>> import torch
        >>> answers = Answers(torch.zeros(1, 4), torch.tensor([2]), [False])
        >>> CrossEntropy()(answers)  # log 4
        tensor([1.3863])

    References:
        Chaudhry et al., On tiny episodic memories in continual learning, 2019: the loss of ER.
    """

    draws: ClassVar[bool] = False
    is_cross_entropy: ClassVar[bool] = True
    #: Checkpoints named no objective when this was the only one, and need not now.
    is_recorded: ClassVar[bool] = False

    @override
    def __call__(self, answers: Answers) -> Float[Tensor, " examples"]:
        return F.cross_entropy(answers.outputs, answers.labels.long(), reduction="none")
