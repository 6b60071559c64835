"""Supervised contrastive replay (SCR)."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F
from typing_extensions import override

from recollect.objectives.answers import Answers
from recollect.objectives.objective import Objective
from recollect.ranges import Log


@final
@dataclass(frozen=True)
class SupervisedContrast(Objective):
    r"""Pull examples of one class together and push the others away (SCR).

        loss(i) = mean over views a of i of
                  -1/|P(a)| sum over p in P(a) of log( exp(u_a.u_p / T) / sum_b exp(u_a.u_b / T) )

    u are the model's outputs, scaled to length 1: of two views of every example, each augmented on
    its own. P(a) are the other views of a's class, b runs over all views but a, incoming and
    replayed. So an example's loss depends on all others of the pass.

    The model ends in a projection instead of a classifier (`recollect.models.with_projection`).
    `recollect.predictors.NearestClassMean` then predicts from the features in front of it.

    Args:
        temperature: T.

    Mai et al. pass each example as it came and augmented; here both views are augmented. Their loss
    is one mean over all examples, here it is the sum of the means over incoming and over replayed
    ones, so that rules can weigh them: with as many of both, twice theirs.

    Example:
        >>> u = torch.tensor([[1.0, 0.0], [0.0, 1.0]])  # two examples, both views alike
        >>> answers = Answers(torch.cat((u, u)), torch.tensor([0, 1]), [False, True], views=2)
        >>> SupervisedContrast(temperature=1.0)(answers)  # log((e + 2) / e)
        tensor([0.5514, 0.5514])

    References:
        Khosla et al., Supervised contrastive learning, NeurIPS 2020, Eq. 2. Mai et al., Supervised
        contrastive replay, CVPR workshops 2021. Avalanche 0.6.0, `SCRLoss` with one temperature.
    """

    takes_logits: ClassVar[bool] = False
    takes_projections: ClassVar[bool] = True
    couples: ClassVar[bool] = True
    draws: ClassVar[bool] = False
    views: ClassVar[int] = 2

    temperature: Annotated[float, Log(0.03, 1.0)] = 0.1

    def __post_init__(self) -> None:
        value = self.temperature
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            raise ValueError(f"`temperature` is {value!r}; pass a number above 0.")

    @override
    def __call__(self, answers: Answers) -> Float[Tensor, " examples"]:
        outputs = answers.outputs
        if not isinstance(outputs, Tensor) or outputs.ndim != 2 or outputs.shape[1] < 2:
            raise TypeError(
                "SupervisedContrast takes a (examples, features) tensor of projections; end the "
                "model with `recollect.models.with_projection`."
            )
        u = F.normalize(outputs, dim=1)
        labels = answers.labels.repeat(answers.views)
        is_same = torch.eye(len(u), dtype=torch.bool, device=u.device)
        similar = (u @ u.T / self.temperature).masked_fill(is_same, float("-inf"))
        logs = similar.log_softmax(1).masked_fill(is_same, 0.0)
        partners = (labels[:, None] == labels) & ~is_same
        of_views = -(logs * partners).sum(1) / partners.sum(1).clamp_min(1)
        return of_views.reshape(answers.views, -1).mean(0)
