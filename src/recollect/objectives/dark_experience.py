"""Dark experience replay (DER, DER++)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F
from typing_extensions import override

from recollect.memory import MemoryColumn
from recollect.objectives.answers import Answers, Part
from recollect.objectives.objective import Objective
from recollect.ranges import Linear, Log

_LOGITS, _COUNT = "logits", "num_logits"


@final
@dataclass(frozen=True)
class DarkExperience(Objective):
    r"""Ask replayed examples for the logits they had when they were stored (DER, DER++).

        incoming:  loss(x, y) = -log softmax(z)_y
        replayed:  loss(x, y) = alpha * mean_c (z_c - h_c)^2 + beta * (-log softmax(z)_y)

    h are the logits of the last training pass before the example was stored, augmented as that pass
    was. They are a column of the memory. Classes that the head has got since count only in the
    second term, and so do examples stored without logits.

    Args:
        alpha: Weight of the stored logits.
        beta: Weight of the labels of replayed examples. Zero is DER, above zero DER++.

    As in Avalanche, both terms are of the same replayed batch. The authors draw one for each. As in
    the authors' code and in Avalanche, the square is a mean over classes; in the paper it is a sum.

    Example:
        >>> stored = {"logits": torch.tensor([[1.0, 0.0]]), "num_logits": torch.tensor([2])}
        >>> answers = Answers(torch.tensor([[3.0, 0.0]]), torch.tensor([0]), [True], stored)
        >>> DarkExperience(alpha=0.5, beta=0.0)(answers)  # 0.5 * (2^2 + 0^2) / 2
        tensor([1.])

    References:
        Buzzega et al., Dark experience for general continual learning: a strong, simple baseline,
        NeurIPS 2020, Eq. 5 and 6. Avalanche 0.6.0, `DER`, which stores logits of the example as it
        came, after training on its whole experience.
    """

    draws: ClassVar[bool] = False
    columns: ClassVar[tuple[MemoryColumn, ...]] = (MemoryColumn(_LOGITS), MemoryColumn(_COUNT))

    alpha: Annotated[float, Log(0.03, 3.0)] = 0.3
    beta: Annotated[float, Linear(0.0, 2.0)] = 0.0

    def __post_init__(self) -> None:
        for name, value in (("alpha", self.alpha), ("beta", self.beta)):
            if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
                raise ValueError(f"`{name}` is {value!r}; pass a number from 0 up.")

    @override
    def __call__(self, answers: Answers) -> Float[Tensor, " examples"]:
        incoming, replayed = answers.incoming, answers.replayed
        of_incoming = F.cross_entropy(incoming.outputs, incoming.labels.long(), reduction="none")
        if not len(replayed):
            return of_incoming
        of_replayed = self.alpha * self._distance(replayed)
        if self.beta:
            labels = replayed.labels.long()
            of_replayed = of_replayed + self.beta * F.cross_entropy(
                replayed.outputs, labels, reduction="none"
            )
        return answers.in_order(of_incoming, of_replayed)

    def _distance(self, replayed: Part) -> Float[Tensor, " replayed"]:
        """Mean square distance to the stored logits, over the classes that these cover."""
        logits: Tensor = replayed.outputs
        stored, counts = replayed.columns[_LOGITS], replayed.columns[_COUNT]
        width = min(stored.shape[1], logits.shape[1])
        is_stored = torch.arange(width, device=logits.device) < counts.to(logits.device)[:, None]
        apart = (logits[:, :width] - stored[:, :width].to(logits)) * is_stored
        return apart.square().sum(1) / counts.to(logits).clamp(1, width)

    @override
    def rows_to_keep(self, incoming: Part) -> Mapping[str, Tensor]:
        logits: Tensor = incoming.outputs
        counts = torch.full((len(logits),), logits.shape[1], dtype=torch.int64)
        return {_LOGITS: logits.detach(), _COUNT: counts}
