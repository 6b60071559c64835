"""Step along the target gradient."""

from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import Tensor, nn
from torch.optim.optimizer import _global_optimizer_post_hooks, _global_optimizer_pre_hooks


def descend(
    optimizer: torch.optim.Optimizer,
    parameters: Mapping[str, nn.Parameter],
    target: Mapping[str, Tensor],
) -> None:
    """Let `optimizer` take one step along `target`; parameters without gradient stay."""
    if is_plain_sgd(optimizer):
        plain_sgd_step(optimizer, parameters, target)()
        return
    along = {id(parameters[name]): gradient for name, gradient in target.items()}
    held = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for parameter in held:  # all of them: an old gradient of a frozen one must not move it
        parameter.grad = along.get(id(parameter))
    optimizer.step()
    for parameter in held:
        parameter.grad = None


def is_plain_sgd(optimizer: torch.optim.Optimizer) -> bool:
    """Whether a step is p <- p - lr * grad and nobody would notice that we take it ourselves.

    A scheduler replaces the optimizer's `step` to count calls, and hooks want to be called.
    """
    if type(optimizer) is not torch.optim.SGD or "step" in vars(optimizer):
        return False
    if optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks:
        return False
    if _global_optimizer_pre_hooks or _global_optimizer_post_hooks:
        return False
    return all(
        isinstance(group["lr"], float)
        and not (group["momentum"] or group["weight_decay"] or group["maximize"])
        and not (group["differentiable"] or group["fused"])
        for group in optimizer.param_groups
    )


def plain_sgd_step(
    optimizer: torch.optim.Optimizer,
    parameters: Mapping[str, nn.Parameter],
    target: Mapping[str, Tensor],
) -> Callable[[], None]:
    """Prepare the step of `torch.optim.SGD`: the same sums, bit for bit, in one call per group.

    Called again after an interrupt, the step moves what has not moved yet: every tensor counts how
    often it was written to, so that no weight needs to be copied.
    """
    gradients = {id(parameters[name]): gradient for name, gradient in target.items()}
    moves = []
    for group in optimizer.param_groups:
        weights = [p for p in group["params"] if id(p) in gradients]
        if weights:
            along = [gradients[id(p)] for p in weights]
            moves.append((-group["lr"], weights, along, [p._version for p in weights]))
    return partial(_move, moves)


@torch.no_grad()
def _move(moves: list[tuple[float, list[Tensor], list[Tensor], list[int]]]) -> None:
    for factor, weights, along, versions in moves:
        # One call, which nothing interrupts: all of them have moved, or none.
        if [weight._version for weight in weights] == versions:
            torch._foreach_add_(weights, along, alpha=factor)
