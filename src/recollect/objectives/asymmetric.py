"""Asymmetric cross entropy (ER-ACE)."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, final, get_args

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F
from typing_extensions import override

from recollect.choices import Against
from recollect.objectives.answers import Answers
from recollect.objectives.objective import Objective
from recollect.ranges import Choice


@final
@dataclass(frozen=True)
class AsymmetricCrossEntropy(Objective):
    r"""Ask incoming examples for their label among few classes, replayed ones among all (ER-ACE).

        incoming:  loss(x, y) = -log( exp(z_y) / sum over c in C of exp(z_c) )
        replayed:  loss(x, y) = -log softmax(z)_y

    So an incoming example does not push down the logits of classes that only the memory still
    shows, which is what makes their representations change abruptly.

    Three versions of ER-ACE circulate. In the authors' code and in Mammoth, C holds the classes of
    the batch and every class from the highest one seen on, which assumes that labels ascend; and in
    the first task C holds all classes. In Avalanche, C holds the classes of the batch. Here, C
    follows from the classes themselves, and there are no tasks:

    Args:
        against: `"present"`, C holds the classes of the incoming batch, as in Avalanche;
            `"unseen"`, these and every class that the stream has not shown yet, which is what the
            authors mean.

    Avalanche halves the sum of both means. Here it is not halved, as in ER and in the authors'
    code, so a learning rate there is twice the one here.

    Example:
        >>> logits = torch.tensor([[2.0, 2.0, 5.0], [2.0, 2.0, 5.0]])
        >>> answers = Answers(logits, torch.tensor([0, 1]), [False, False])
        >>> AsymmetricCrossEntropy()(answers)  # log 2: class 2 is not in the batch
        tensor([0.6931, 0.6931])

    References:
        Caccia et al., New insights on reducing abrupt representation change in online continual
        learning, ICLR 2022, Eq. 3. Avalanche 0.6.0, `ACECriterion`.
    """

    draws: ClassVar[bool] = False

    against: Annotated[Against, Choice("present", "unseen", is_usual=False)] = "present"

    def __post_init__(self) -> None:
        if self.against not in get_args(Against):
            choices = " or ".join(map(repr, get_args(Against)))
            raise ValueError(f"`against` is {self.against!r}; choose {choices}.")

    @property
    @override
    def needs_classes_seen(self) -> bool:
        return self.against == "unseen"

    @override
    def __call__(self, answers: Answers) -> Float[Tensor, " examples"]:
        incoming, replayed = answers.incoming, answers.replayed
        labels = incoming.labels.long()
        logits: Tensor = incoming.outputs
        left_out = torch.ones(logits.shape[1], dtype=torch.bool, device=logits.device)
        if self.needs_classes_seen:
            left_out = torch.zeros_like(left_out)
            seen = answers.classes_seen.to(logits.device)
            left_out[seen[seen < len(left_out)]] = True
        left_out[labels] = False
        among_few = logits.masked_fill(left_out, float("-inf"))
        return answers.in_order(
            F.cross_entropy(among_few, labels, reduction="none"),
            F.cross_entropy(replayed.outputs, replayed.labels.long(), reduction="none"),
        )
