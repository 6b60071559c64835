"""A-GEM's rule, without tasks."""

from dataclasses import dataclass
from typing import ClassVar, final

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from recollect.rules.rule import Rule


@final
@dataclass(frozen=True)
class AveragedProjection(Rule):
    r"""Take the incoming gradient, less its part against the mean replayed one (A-GEM).

        w = g                                      if <g, g_ref> >= 0
        w = g - <g, g_ref> / |g_ref|^2 * g_ref     otherwise,       g_ref = mean_i g_i

    Example:
        >>> # g = (1, 0), g_1 = (-1, 1): what is left of g is (1, 1) / 2
        >>> AveragedProjection()(torch.tensor([[1.0, -1.0], [-1.0, 2.0]]))
        tensor([1.0000, 0.5000])

    References:
        Chaudhry et al., Efficient lifelong learning with A-GEM, Eq. 11. Theirs replays other tasks
        only; ours knows no tasks and replays from the whole memory.
    """

    draws: ClassVar[bool] = False

    @override
    def __call__(self, gram: Float[Tensor, "gradients gradients"]) -> Float[Tensor, " gradients"]:
        weights = gram.new_zeros(len(gram))
        weights[0] = 1
        agreement = gram[0, 1:].mean()
        squared_length = gram[1:, 1:].mean()  # of g_ref
        # Replayed gradients that cancel leave a g_ref of rounding errors, which has no direction.
        rounding = torch.finfo(gram.dtype).eps * gram.diagonal()[1:].mean()
        if agreement < 0 and squared_length > rounding:
            weights[1:] = -agreement / squared_length / (len(gram) - 1)
        return weights
