"""Average the replayed gradients in groups: a linear map, so it acts on the Gram matrix alone."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor


def group_matrix(
    num_replayed: int, num_groups: int, *, like: Tensor
) -> Float[Tensor, "rows gradients"]:
    """Build the matrix that keeps g and averages the g_i in `num_groups` groups of equal size.

    Sizes differ by at most one when the number does not divide.
    """
    matrix = like.new_zeros(1 + num_groups, 1 + num_replayed)
    matrix[0, 0] = 1
    members = torch.arange(num_replayed).tensor_split(num_groups)
    for group, indices in enumerate(members):
        matrix[1 + group, 1 + indices] = 1 / len(indices)
    return matrix


def weigh_in_groups(
    gram: Float[Tensor, "gradients gradients"],
    groups: int | None,
    weigh: Callable[[Tensor], Tensor],
) -> Float[Tensor, " gradients"]:
    """Let `weigh` see g and the means of `groups` groups; return weights of g and the g_i."""
    if groups is None or groups >= len(gram) - 1:
        return weigh(gram)
    to_groups = group_matrix(len(gram) - 1, groups, like=gram)
    return weigh(to_groups @ gram @ to_groups.T) @ to_groups
