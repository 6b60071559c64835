"""Try a checkpoint on a copy of the learner: a policy, an optimizer or a model may not take it."""

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from recollect import nested
from recollect.errors import CheckpointError
from recollect.learner.saved.checks import refuse
from recollect.memory import Memory
from recollect.network.runaway import LARGEST_WEIGHT
from recollect.rollback.generators import KeepingGenerators
from recollect.rollback.transaction import Transaction

if TYPE_CHECKING:
    from recollect.learner.learner import Learner


def rehearse(learner: "Learner", take_over: Callable[["Learner", Transaction], None]) -> None:
    """Take a checkpoint over in a copy, and refuse it if the copy cannot go on from there.

    What a policy, an optimizer or a model makes of what it is given only they can tell. A learner
    that cannot be copied is not rehearsed.

    Raises:
        CheckpointError: The copy could not take it, or cannot go on. The learner is as it was.
    """
    try:
        understudy = _copied(learner)
        steps = _can_step(understudy)
    except Exception:  # of a part of the user's: there is nothing to rehearse with
        return
    with KeepingGenerators(next(learner.model.parameters()).device):
        try:
            take_over(understudy, Transaction())
        except CheckpointError:
            raise
        except Exception as error:
            raise refuse(f"a part of the learner cannot take it ({_named(error)})") from error
        _check_answers(understudy)
        if steps and not _can_step(understudy):
            raise refuse("the optimizer cannot step from its state")


def _copied(learner: "Learner") -> "Learner":
    # The memory is replaced as a whole; its examples may be most of the learner.
    memo = {} if learner.memory is None else {id(learner.memory): Memory(learner.memory.num_slots)}
    return copy.deepcopy(learner, memo)


def _can_step(learner: "Learner") -> bool:
    """Whether the optimizer steps along a gradient of zero and leaves weights to learn with."""
    parameters = [p for group in learner.optimizer.param_groups for p in group["params"]]
    for parameter in parameters:
        parameter.grad = torch.zeros_like(parameter) if parameter.requires_grad else None
    try:
        learner.optimizer.step()
    except Exception:  # ours has none of its own to raise, a user's may raise anything
        return False
    # Also where one is NaN, which no comparison holds for.
    return all(bool((p.detach().abs() <= LARGEST_WEIGHT).all()) for p in parameters)


def _check_answers(learner: "Learner") -> None:
    """Refuse examples in memory that the model does not take, or has no class for."""
    memory = learner.memory
    if memory is None or memory.is_empty or not learner.objective.takes_logits:
        return
    dtype = next(learner.model.parameters()).dtype

    def as_weights(leaf: Tensor) -> Tensor:  # there may be no autocast around this, as elsewhere
        return leaf.to(dtype) if leaf.dtype in (torch.float16, torch.bfloat16) else leaf

    slots = torch.arange(2) % len(memory)  # two, because some layers take no single example
    inputs, _ = memory.read(slots)
    try:
        logits = learner._network.predict(nested.map_leaves(as_weights, inputs))
        learner.predict(nested.map_leaves(as_weights, inputs))
    except Exception as error:
        raise refuse(f"the model does not take what the memory holds ({_named(error)})") from error
    if isinstance(logits, Tensor) and logits.ndim == 2:
        if int(memory.labels.max()) >= logits.shape[1]:
            raise refuse(
                f"the memory holds class {int(memory.labels.max())}, the model knows "
                f"{logits.shape[1]}"
            )
        if not bool(torch.isfinite(logits).all()):
            raise refuse("the model answers NaN or infinite values")


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
