"""How sure the model is of the right class."""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def margins(
    logits: Float[Tensor, "examples classes"], labels: Int[Tensor, " examples"]
) -> Float[Tensor, " examples"]:
    r"""Return the probability of the right class minus that of the strongest wrong one.

        m = p_y - max over y' != y of p_y'                                            (Eq. 13)

    Args:
        logits: Outputs of the model before the softmax, at least two classes.
        labels: y, the right classes.

    Returns:
        Values from -1 (surely wrong) to 1 (surely right).

    Example:
        >>> margins(torch.tensor([[0.0, 0.0], [0.0, 100.0]]), torch.tensor([0, 1]))
        tensor([0., 1.])
    """
    if logits.ndim != 2 or logits.shape[1] < 2:
        raise ValueError(
            f"`logits` has shape {tuple(logits.shape)}; a margin needs (examples, classes) with at "
            "least two classes."
        )
    if logits.dtype in (torch.bfloat16, torch.float16):  # differences of rounded probabilities
        logits = logits.float()
    probabilities = torch.softmax(logits, dim=1)
    right_class = labels.unsqueeze(1)
    right = probabilities.gather(1, right_class).squeeze(1)
    wrong = probabilities.scatter(1, right_class, -torch.inf).amax(dim=1)
    return right - wrong
