"""Conformance of a formula for a node of autograd."""

import copy
import warnings
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from recollect.gradients import (
    Formula,
    GradientEngine,
    Groups,
    Objective,
    Visit,
    gram_of,
    one_by_one,
)
from recollect.gradients.share import Share
from recollect.testing.watching import fail

Losses = Callable[[Tensor], Float[Tensor, " examples"]]


def check_formula(
    name: str,
    formula: Formula,
    model: nn.Module,
    inputs: Tensor,
    *,
    losses: Losses | None = None,
) -> None:
    """Check that a formula finds what one backward pass per example finds, in float64.

    Every example apart, groups of several, the first half of the examples alone, and temporaries
    of any size.

    Args:
        name: Of the nodes that the formula is for, as `tensor.grad_fn.name()` says it.
        formula: To check; it need not be registered.
        model: One that leads to such a node, with parameters behind it. It is copied.
        inputs: At least four examples.
        losses: Makes one loss per example of what the model returns; by default the sum of its
            entries' sines.

    Raises:
        AssertionError: what broke, and for which examples.

    Example:
        >>> from recollect.gradients.formulas.linear import addmm
        >>> check_formula("AddmmBackward0", addmm, nn.Linear(3, 2), torch.randn(6, 3))
    """
    if len(inputs) < 4:
        raise ValueError(f"`inputs` has {len(inputs)} examples; pass at least 4.")
    model = copy.deepcopy(model).double()
    inputs = inputs.double() if inputs.is_floating_point() else inputs
    answers: list[bool] = []

    def watched(visit: Visit) -> Sequence[Share] | None:
        found = formula(visit)
        answers.append(found is not None)
        return found

    count = len(inputs)
    for limit_bytes in (2**26, 256):
        for sizes in ((1,) * count, (count - 2, 1, 1), (count,), (1,) * (count // 2)):
            given = inputs[: sum(sizes)]
            case = f"groups of {', '.join(map(str, sizes))}"
            _compare(model, given, sizes, losses or _sines, (name, watched), limit_bytes, case)
    if not answers:
        fail(_who(name), "was not used: the model leads to no such node in front of a parameter")
    if not all(answers):
        fail(_who(name), "answered None, so that it was not used")


def _compare(
    model: nn.Module,
    inputs: Tensor,
    sizes: tuple[int, ...],
    losses_of: Losses,
    known: tuple[str, Formula],
    limit_bytes: int,
    case: str,
) -> None:
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    name, formula = known
    engine = GradientEngine(model, parameters, limit_bytes=limit_bytes, formulas={name: formula})
    groups = Groups(sizes)
    for _ in range(2):  # the first pass makes a plan
        losses = losses_of(model(inputs))
        rows = {key: groups.sum(found) for key, found in one_by_one(losses, parameters).items()}
        ones, scales = torch.ones_like(losses), losses.new_ones(len(groups))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            measured = engine.measure(Objective(losses, ones, groups, scales))
        if engine.taken_apart:  # the engine noticed, and did without the formula
            fail(_who(name), f"gives a wrong gradient of `{min(engine.taken_apart)}` with {case}")
        with torch.no_grad():
            expected = gram_of(list(rows.values()))
            if not torch.allclose(measured.gram(), expected, rtol=1e-9, atol=1e-12):
                fail(_who(name), f"gives wrong inner products with {case}")
            weights = torch.linspace(-1, 2, len(groups), dtype=losses.dtype)
            combined = measured.combine(weights)
        for key, found in rows.items():
            total = torch.tensordot(weights, found, 1)
            if not torch.allclose(combined[key], total, rtol=1e-9, atol=1e-12):
                fail(_who(name), f"gives a wrong gradient of `{key}` with {case}")


def _who(name: str) -> str:
    return f"the formula for `{name}`"


def _sines(outputs: Tensor) -> Float[Tensor, " examples"]:
    return outputs.sin().flatten(1).sum(1)
