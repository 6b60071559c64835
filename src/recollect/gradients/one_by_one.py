"""Per-example gradients the slow way, one backward pass per example: the tests' oracle."""

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from recollect.gradients.groups import as_rows


def one_by_one(
    losses: Float[Tensor, " examples"], parameters: Mapping[str, nn.Parameter]
) -> dict[str, Float[Tensor, "examples ..."]]:
    """Differentiate every entry of `losses` on its own.

    Exact for every model: where examples mix (BatchNorm), row i is the gradient of example i's loss
    with the others' inputs held fixed, which is not the contribution of note P8.
    """
    rows: dict[str, list[Tensor]] = {name: [] for name in parameters}
    for loss in losses:
        found = torch.autograd.grad(
            loss, list(parameters.values()), retain_graph=True, allow_unused=True
        )
        for (name, parameter), gradient in zip(parameters.items(), found, strict=True):
            rows[name].append(torch.zeros_like(parameter) if gradient is None else gradient)
    return {name: torch.stack(found_rows) for name, found_rows in rows.items()}


def gram_of(rows: Sequence[Tensor]) -> Float[Tensor, "rows rows"]:
    """Inner products of gradients that are written out, one tensor of rows a parameter."""
    flat = torch.cat([as_rows(tensor) for tensor in rows], dim=1)
    return flat @ flat.T
