"""What an objective is."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from recollect.memory import MemoryColumn
from recollect.objectives.answers import Answers, Part


class Objective(ABC):
    """Say what is asked of the model's outputs: one loss for each example of a pass.

    The learner takes the mean over incoming and the mean over replayed examples, and hands both
    gradients, or each replayed example's own, to the rule. Where incoming and replayed examples
    pass the network apart, each call holds one of them only.
    """

    #: Whether outputs are logits, (examples, classes), and labels are numbers of these classes. The
    #: learner then checks both.
    takes_logits: ClassVar[bool] = True
    #: Whether the model should end in a projection instead of a classifier.
    takes_projections: ClassVar[bool] = False
    #: Whether labels must be classes: whole numbers from 0.
    needs_classes: ClassVar[bool] = True
    #: Whether an example's loss depends on the outputs of others in the pass. Rules that weigh
    #: gradients one by one then get each example's contribution: what reaches the weights through
    #: its own outputs. Contributions add up to the gradient of the mean losses.
    couples: ClassVar[bool] = False
    #: Whether it may draw from torch's own generator, which the learner then looks after.
    draws: ClassVar[bool] = True
    #: How many views of each example pass the network, each augmented on its own.
    views: ClassVar[int] = 1
    #: Whether it is cross entropy on logits and nothing else, which has a faster pass.
    is_cross_entropy: ClassVar[bool] = False
    #: Whether a checkpoint names it. A function of the user's is code, which no file holds.
    is_recorded: ClassVar[bool] = True
    #: What the memory keeps of each stored example; see `rows_to_keep`.
    columns: ClassVar[tuple[MemoryColumn, ...]] = ()

    @property
    def needs_classes_seen(self) -> bool:
        """Whether it asks which classes the stream has shown so far."""
        return False

    @abstractmethod
    def __call__(self, answers: Answers) -> Float[Tensor, " examples"]:
        """Return one loss per example, in the order of `answers.labels`."""

    def rows_to_keep(self, incoming: Part) -> Mapping[str, Tensor]:  # noqa: ARG002
        """Return what is kept of newcomers, a row per example for each of `columns`.

        Args:
            incoming: What the model answered in the last pass before the memory takes them.
        """
        return {}
