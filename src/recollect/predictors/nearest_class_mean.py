"""Nearest class mean of stored examples."""

from dataclasses import dataclass
from typing import Any, ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F
from typing_extensions import override

from recollect.memory import Memory
from recollect.predictors.predictor import Predictor, View

_AT_ONCE = 256  # stored examples per pass


@dataclass(frozen=True, eq=False)
class _Means:
    """Class means, and what they were taken of."""

    moment: object
    labels: Tensor
    arrived_at: Tensor
    means: Float[Tensor, "classes features"]
    is_held: Tensor

    def hold(self, moment: object, labels: Tensor, arrived_at: Tensor) -> bool:
        """Whether neither the model nor what is stored has changed since."""
        same = torch.equal(self.arrived_at, arrived_at) and torch.equal(self.labels, labels)
        return same and self.moment == moment


@final
@dataclass(eq=False)
class NearestClassMean(Predictor):
    r"""Answer the class whose stored examples lie nearest on average (NCM).

        score(x, c) = -|u(x) - m_c|^2,    m_c = mean of u over the stored examples of c, scaled

    u are the features in front of the model's last layer, scaled to length 1. Means are taken once
    after each step that is asked about. A class that the memory does not hold gets the lowest
    score there is.

    Args:
        layer: Path of the layer whose input are the features. None is the last linear layer, or the
            projection of a model from `recollect.models.with_projection`.

    References:
        Rebuffi et al., iCaRL, CVPR 2017, Algorithm 1. Mai et al., Supervised contrastive replay,
        CVPR workshops 2021.
    """

    needs_memory: ClassVar[bool] = True

    layer: str | None = None

    def __post_init__(self) -> None:
        self._known: _Means | None = None

    def __getstate__(self) -> dict[str, object]:
        """Leave out the means: a copy takes them anew."""
        return vars(self) | {"_known": None}

    @override
    def __call__(self, inputs: object, view: View) -> Any:
        means, is_held = self._means(view)
        features = F.normalize(view.features(inputs, self.layer), dim=1)
        scores = -torch.cdist(features, means).square()
        return scores.masked_fill(~is_held, torch.finfo(scores.dtype).min)

    def _means(self, view: View) -> tuple[Float[Tensor, "classes features"], Tensor]:
        """Return the mean of each class, and whether the memory holds the class."""
        memory = view.memory
        if memory is None or memory.is_empty:
            raise ValueError(
                "NearestClassMean predicts from stored examples, and the memory holds none yet; "
                "call `observe` first."
            )
        labels, arrived = memory.labels.cpu(), memory.arrived_at[: len(memory)]
        if self._known is None or not self._known.hold(view.moment, labels, arrived):
            found = self._taken(view, memory, labels)
            self._known = _Means(view.moment, labels.clone(), arrived.clone(), *found)
        return self._known.means, self._known.is_held

    def _taken(self, view: View, memory: Memory, labels: Tensor) -> tuple[Tensor, Tensor]:
        if labels.ndim != 1 or labels.is_floating_point() or int(labels.min()) < 0:
            raise TypeError("NearestClassMean needs labels that are classes, counted from 0.")
        everything = torch.split(torch.arange(len(memory)), _AT_ONCE)
        features = torch.cat([view.features(memory.read(s)[0], self.layer) for s in everything])
        labels = labels.long().to(features.device)
        counts = torch.bincount(labels)
        sums = features.new_zeros(len(counts), features.shape[1])
        sums.index_add_(0, labels, F.normalize(features, dim=1))
        return F.normalize(sums, dim=1), counts > 0
