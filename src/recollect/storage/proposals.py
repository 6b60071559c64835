"""Draw slots in proportion to their scores without looking at every slot."""

from collections.abc import Callable
from typing import Final

import torch
from jaxtyping import Float, Int64
from torch import Tensor

_BLOCK: Final = 1024
_MAX_BLOCKS: Final = 4


def draw_by_proposals(
    num_slots: int,
    weights_of: Callable[[Int64[Tensor, " some"]], Float[Tensor, " some"]],
    bound: float,
    arriving: list[float],
    rng: torch.Generator,
) -> list[int]:
    """Draw a slot for each newcomer in turn; its weight replaces that of the slot it takes.

    Slots are proposed at random and accepted with probability weight / bound, which is a draw in
    proportion to weights, exactly. All scores change with every update, as ages do, so there is no
    sum of them that could be kept from step to step.

    Args:
        num_slots: How many there are.
        weights_of: Weights, from 0 up, of some slots.
        bound: No weight is larger.
        arriving: The newcomers' own weights.
        rng: All randomness comes from here.

    Returns:
        One slot per newcomer. Fewer if the weights are so small that hardly any proposal is
        accepted; the caller must draw the rest another way.
    """
    drawn: list[int] = []
    for _ in range(_MAX_BLOCKS):
        slots = torch.randint(num_slots, (_BLOCK,), generator=rng)
        heights = bound * torch.rand(_BLOCK, generator=rng, dtype=torch.float64)
        weights = weights_of(slots).double()
        for slot, weight in zip(drawn, arriving, strict=False):  # the latest to take a slot counts
            weights[slots == slot] = weight
        accepted = (heights < weights).nonzero().flatten().tolist()
        while accepted and len(drawn) < len(arriving):
            position = accepted.pop(0)
            slot, weight = int(slots[position]), arriving[len(drawn)]
            drawn.append(slot)
            again = (slots == slot).nonzero().flatten().tolist()
            if again[-1] > position:  # proposed once more, now with the newcomer's weight
                later = {other for other in again if other > position}
                welcome = {other for other in later if float(heights[other]) < weight}
                accepted = sorted(set(accepted) - later | welcome)
        if len(drawn) == len(arriving):
            break
    return drawn
