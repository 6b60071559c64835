"""Change a whole learner, or nothing of it."""

import copy
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from recollect.errors import CheckpointError
from recollect.rollback.snapshot import Snapshot
from recollect.rollback.surroundings import Surroundings
from recollect.rollback.transaction import Transaction

if TYPE_CHECKING:
    from recollect.learner.learner import Learner


def take_over_whole(
    learner: "Learner", take_over: Callable[["Learner", Transaction], None]
) -> None:
    """Run `take_over`; whatever it raises, also Ctrl-C, the learner is then as it was.

    Raises:
        CheckpointError: A part of the learner did not take what it was given.
    """

    def change(transaction: Transaction) -> None:
        _remember(learner, transaction)
        take_over(learner, transaction)

    try:
        Transaction().run(change)
    except CheckpointError:
        raise
    except Exception as error:  # of a part of the user's: it may raise anything
        raise CheckpointError(
            "a part of the learner cannot take what the checkpoint holds "
            f"({type(error).__name__}: {error}); nothing was loaded."
        ) from error


def _remember(learner: "Learner", transaction: Transaction) -> None:
    """Remember everything; what a user's code puts back comes last, for it may raise again."""
    transaction.on_failure(_way_back_of_storage(learner))
    kept_predictor = {name: tensor.clone() for name, tensor in learner.predictor.state().items()}
    transaction.on_failure(partial(learner.predictor.restore, kept_predictor))
    for module in learner.model.modules():
        if type(module).get_extra_state is not torch.nn.Module.get_extra_state:
            kept = copy.deepcopy(module.get_extra_state())
            transaction.on_failure(partial(module.set_extra_state, kept))
    around = Surroundings([*learner.model.modules()], next(learner.model.parameters()).device)
    transaction.on_failure(around.put_back)
    optimizer = learner.optimizer
    state, groups = optimizer.state, optimizer.param_groups
    snapshot = Snapshot(learner.model, optimizer)
    transaction.on_failure(snapshot.take_weights())
    transaction.on_failure(snapshot.take_buffers())
    transaction.on_failure(partial(_set, optimizer, {"state": state, "param_groups": groups}))
    transaction.on_failure(partial(_set, learner, {"step": learner.step, "seen": learner.seen}))
    if learner.memory is not None:
        transaction.on_failure(partial(_set, learner.memory, dict(vars(learner.memory))))
    for generator in learner.generators.values():
        transaction.on_failure(partial(generator.set_state, generator.get_state()))


def _set(owner: object, attributes: dict[str, object]) -> None:
    vars(owner).update(attributes)


def _way_back_of_storage(learner: "Learner") -> Callable[[], None]:
    storage = learner.storage
    if storage is None:
        return lambda: None
    state = {name: tensor.clone() for name, tensor in storage.state().items()}
    attributes = dict(getattr(storage, "__dict__", {}))

    def put_back() -> None:
        for name, value in attributes.items():
            object.__setattr__(storage, name, value)
        # A policy that cannot read its state back is asked only where its attributes do not do.
        if not _are_alike(storage.state(), state):
            storage.restore({name: tensor.clone() for name, tensor in state.items()})

    return put_back


def _are_alike(state: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> bool:
    return state.keys() == other.keys() and all(
        tensor.dtype == other[name].dtype and torch.equal(tensor, other[name])
        for name, tensor in state.items()
    )
