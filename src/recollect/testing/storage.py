"""Conformance of a storage policy."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from recollect.memory import Memory
from recollect.storage import Placement, Storage
from recollect.testing.watching import check_indices, explained, fail, filled_memory, watched

_MEASURED_AT_INSERTION = ("insertion", "both", "all")


def check_storage(build: Callable[[], Storage]) -> None:
    """Check that a storage policy does what the learner relies on.

    The check uses streams with batches smaller and larger than the memory, and begins with an empty
    memory and with full ones. The policy must admit newcomers in order, give each admitted one a
    slot in range or -1, and take free slots in order. It must not change labels, memory or global
    generators. It may call only for evidence that it declared. With the same generator it must
    decide the same. It must take real-valued labels unless `needs_classes`. And `state()` must
    bring it back: in a new instance, as after a checkpoint, and in the same one, as after a failed
    step.

    Args:
        build: Makes a new policy at every call: the class itself if it needs no arguments, else a
            function without arguments.

    Raises:
        AssertionError: what broke, and at which batch.

    Example:
        >>> from recollect.storage import ConfidenceReservoir, Reservoir
        >>> check_storage(Reservoir)
        >>> check_storage(lambda: ConfidenceReservoir(pick="proportional"))
    """
    if isinstance(build, Storage) or not callable(build):
        raise TypeError(f"`build` is {build!r}; pass a function that makes a policy, or its class.")
    if not isinstance(built := build(), Storage):
        raise TypeError(f"`build` made {built!r}; make an instance of a subclass of `Storage`.")
    for capacity in (1, 5):
        for sizes in ([1] * 12, [3, 1, 5, 2, 4], [20, 1, 20]):
            for seed in range(2):
                _check_stream(build, Memory(capacity), sizes, seed)
                _check_stream(build, filled_memory(capacity, capacity, seed=seed), sizes, seed)
    if not built.needs_classes:
        _check_real_labels(build)


@dataclass(frozen=True)
class _MadeUpEvidence:
    """Measurements that follow from the seed."""

    storage: Storage
    memory: Memory
    num_newcomers: int
    seed: int

    def margin_increments(self) -> Tensor:
        if self.storage.margins not in _MEASURED_AT_INSERTION:
            fail(
                self.storage,
                f"asked for margin increments though its `margins` is {self.storage.margins!r}; "
                f"set it to one of {', '.join(map(repr, _MEASURED_AT_INSERTION))}.",
            )
        return self._cosines(self.num_newcomers)

    def point_against(self, slots: Tensor) -> bool:
        return bool((self.cosines(slots)[1] < 0).all())

    def cosines(self, slots: Tensor) -> tuple[Tensor, Tensor]:
        asked = slots.flatten()
        if slots.ndim != 2 or not 0 <= int(asked.min()) <= int(asked.max()) < len(self.memory):
            fail(
                self.storage,
                f"asked for cosines with slots {slots.tolist()}; pass batches of filled slots, 0 "
                f"to {len(self.memory) - 1}.",
            )
        return self._cosines(self.num_newcomers, len(slots)), self._cosines(len(slots))

    def _cosines(self, *shape: int) -> Tensor:
        rng = torch.Generator().manual_seed(self.seed)
        return 2 * torch.rand(shape, generator=rng) - 1


def _check_stream(
    build: Callable[[], Storage], memory: Memory, sizes: list[int], seed: int
) -> None:
    """Drive three policies alike; they, and the one that is put back, must agree at every batch."""
    policy, twin = build(), build()
    for number, labels in enumerate(_batches(sizes, seed)):
        case = f"batch {number + 1} of sizes {sizes}, capacity {memory.capacity}"
        state = _state(policy, case)
        reloaded = build()
        _restore(reloaded, {name: tensor.clone() for name, tensor in state.items()}, case)
        placement, examples = _decided(policy, memory, labels, seed + number, case)
        for other, why in (
            (twin, "decided differently from the same generator"),
            (reloaded, "decided differently in a new instance that took its state back"),
        ):
            if not _same(placement, _decided(other, memory, labels, seed + number, case)[0]):
                fail(policy, f"{why} ({case}).")
        ahead = _state(policy, case)
        _restore(policy, state, case)
        if not _same(placement, _decided(policy, memory, labels, seed + number, case)[0]):
            fail(
                policy,
                f"decided differently after a step was undone ({case}); `state` must return copies "
                "and `restore` take back all of them.",
            )
        if not _same_state(ahead, _state(policy, case)):
            fail(policy, f"has another state after the same step done twice ({case}).")
        _write(memory, placement, examples, labels)


def _batches(sizes: list[int], seed: int) -> list[Tensor]:
    rng = torch.Generator().manual_seed(100 + seed)
    return [torch.randint(3, (size,), generator=rng) for size in sizes]


def _decided(
    policy: Storage, memory: Memory, labels: Tensor, seed: int, case: str
) -> tuple[Placement, Tensor]:
    """Ask for one decision and check its form; return it with the newcomers it is about."""
    rng = torch.Generator().manual_seed(seed)
    given = labels.clone()
    with watched(policy, f"`admit` and `place`, {case}", memory):
        admitted = check_indices(policy, policy.admit(given, memory, rng), "admitted newcomers")
        if admitted.tolist() != sorted(set(admitted.tolist()) & set(range(len(labels)))):
            fail(
                policy,
                f"admitted {admitted.tolist()} of {len(labels)} newcomers ({case}); return "
                "distinct indices of the batch, ascending.",
            )
        placement = Placement(admitted)
        if len(admitted):  # else the learner asks no further
            evidence = _MadeUpEvidence(policy, memory, len(admitted), seed)
            asking = given[admitted]
            placement = policy.place(asking, memory, evidence, rng)
            _check_placement(policy, placement, memory, len(admitted), case)
            if not torch.equal(asking, labels[admitted]):
                fail(policy, f"changed the labels it was given in `place` ({case}).")
    if not torch.equal(given, labels):
        fail(policy, f"changed the labels it was given in `admit` ({case}).")
    return placement, admitted


def _check_placement(
    policy: Storage, placement: object, memory: Memory, num_admitted: int, case: str
) -> None:
    if not isinstance(placement, Placement):
        fail(policy, f"returned {placement!r} from `place`; return a `Placement`.")
    slots = check_indices(policy, placement.slots, "the slots of newcomers").tolist()
    if len(slots) != num_admitted:
        fail(policy, f"placed {len(slots)} of {num_admitted} newcomers ({case}); use -1 for none.")
    if not all(-1 <= slot < memory.capacity for slot in slots):
        fail(policy, f"chose slots {slots} ({case}); they run from -1 to {memory.capacity - 1}.")
    free = sorted({slot for slot in slots if slot >= len(memory)})
    if free != list(range(len(memory), len(memory) + len(free))):
        fail(policy, f"took free slots {free} ({case}); the next free one is {len(memory)}.")
    for name, scores, count in (
        ("scores", placement.scores, num_admitted),
        ("stored_scores", placement.stored_scores, len(memory)),
    ):
        if scores is not None and (scores.shape != (count,) or not bool(scores.isfinite().all())):
            fail(policy, f"returned `{name}` {scores.tolist()} ({case}); give {count} finite ones.")


def _state(policy: Storage, case: str) -> dict[str, Tensor]:
    with explained(policy, f"`state`, {case}"):
        state = policy.state()
    for name, tensor in state.items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            fail(policy, f"has {name!r}: {tensor!r} in its state; checkpoints hold named tensors.")
    return state


def _restore(policy: Storage, state: dict[str, Tensor], case: str) -> None:
    with explained(policy, f"`restore`, {case}"):
        policy.restore(state)


def _same(first: Placement, second: Placement) -> bool:
    pairs = (
        (first.slots, second.slots),
        (first.scores, second.scores),
        (first.stored_scores, second.stored_scores),
    )
    return all(a is b or (a is not None and b is not None and torch.equal(a, b)) for a, b in pairs)


def _same_state(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    return first.keys() == second.keys() and all(
        torch.equal(tensor, second[name]) for name, tensor in first.items()
    )


def _write(memory: Memory, placement: Placement, admitted: Tensor, labels: Tensor) -> None:
    """Do as the learner does: the later of two newcomers keeps a slot."""
    if placement.stored_scores is not None:
        memory.score[: len(memory)] = placement.stored_scores
    last = {slot: i for i, slot in enumerate(placement.slots.tolist()) if slot >= 0}
    slots = torch.tensor(list(last), dtype=torch.int64)
    positions = list(last.values())
    examples = admitted[positions]
    memory.write(
        slots,
        torch.zeros(len(slots), 2),
        labels[examples],
        arrived_at=memory.seen + 1 + examples,
    )
    if placement.scores is not None:
        memory.score[slots] = placement.scores[positions].float()
    memory.seen += len(labels)
    memory.clock += 1
    if not memory.is_empty:
        memory.mark_replayed(torch.arange(0, len(memory), 2))


def _check_real_labels(build: Callable[[], Storage]) -> None:
    policy, memory = build(), Memory(3)
    for number, size in enumerate([2, 5, 1, 4]):
        labels = torch.rand(size, generator=torch.Generator().manual_seed(number))
        case = f"real-valued labels, batch {number + 1}; if it needs classes, say `needs_classes`"
        placement, admitted = _decided(policy, memory, labels, number, case)
        _write(memory, placement, admitted, labels)
