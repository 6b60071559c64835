"""Step along the target gradient."""

from collections.abc import Mapping

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
        _plain_sgd_step(optimizer, parameters, target)
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


@torch.no_grad()
def _plain_sgd_step(
    optimizer: torch.optim.Optimizer,
    parameters: Mapping[str, nn.Parameter],
    target: Mapping[str, Tensor],
) -> None:
    # The same sums as torch.optim.SGD's own step, bit for bit, in one fused call a group.
    gradients = {id(parameters[name]): gradient for name, gradient in target.items()}
    for group in optimizer.param_groups:
        moved: list[Tensor] = [p for p in group["params"] if id(p) in gradients]
        along = [gradients[id(p)] for p in moved]
        if moved:
            torch._foreach_add_(moved, along, alpha=-group["lr"])
