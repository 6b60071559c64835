"""An `observe` that raises leaves no trace, whatever raised, wherever it was."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
import torch
from tests.unit.learner.support import (
    CAPACITY,
    OPTIONS,
    SHAPE,
    Batch,
    differences,
    fingerprint,
    learner,
    model,
    run,
    sgd,
    stream,
)
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

from recollect import METHODS, Learner, Memory
from recollect.errors import NonFiniteError
from recollect.memory import Memory as MemoryType
from recollect.objectives import Answers, CrossEntropy, Objective, Part
from recollect.predictors import Predictor, View
from recollect.retrieval import Probe, Retrieval
from recollect.rules import Rule
from recollect.storage import Evidence, Placement, Storage


@dataclass
class Fuse:
    """Says whether the planted fault goes off, and how many updates were made since it was lit."""

    is_lit: bool = False
    updates: int = 0

    @contextmanager
    def lit(self) -> Iterator[None]:
        self.is_lit, self.updates = True, 0
        yield
        self.is_lit = False


@dataclass
class FaultyStorage(Storage):
    """A storage that works until the fuse is lit, and then fails in `place` after drawing."""

    inner: Storage
    fuse: Fuse
    answer: Callable[[Placement], Placement]

    def __post_init__(self) -> None:
        self.margins = self.inner.margins

    @override
    def admit(self, labels: Tensor, memory: MemoryType, rng: torch.Generator) -> Tensor:
        if self.fuse.is_lit:
            torch.rand(3, generator=rng)
            return torch.arange(len(labels))
        return self.inner.admit(labels, memory, rng)

    @override
    def place(
        self, labels: Tensor, memory: MemoryType, evidence: Evidence, rng: torch.Generator
    ) -> Placement:
        placement = self.inner.place(labels, memory, evidence, rng)
        return self.answer(placement) if self.fuse.is_lit else placement

    @override
    def state(self) -> dict[str, Tensor]:
        return self.inner.state()

    @override
    def restore(self, state: object) -> None:
        assert isinstance(state, dict)
        self.inner.restore(state)


@dataclass
class FaultyRetrieval(Retrieval):
    inner: Retrieval
    fuse: Fuse
    answer: Callable[[Tensor], Tensor]

    def __post_init__(self) -> None:
        self.replay = self.inner.replay

    @override
    def select(self, memory: MemoryType, probe: Probe, rng: torch.Generator) -> Tensor:
        slots = self.inner.select(memory, probe, rng)
        return self.answer(slots) if self.fuse.is_lit else slots


@dataclass
class FaultyRule(Rule):
    inner: Rule
    fuse: Fuse

    @override
    def __call__(self, gram: Tensor) -> Tensor:
        weights = self.inner(gram)
        return weights * torch.nan if self.fuse.is_lit else weights


class FaultyObjective(Objective):
    """An objective that works until the fuse is lit; it says of itself what the inner one says."""

    def __init__(self, inner: Objective, fuse: Fuse, fault: "Fault") -> None:
        self.inner, self.fuse, self.fault = inner, fuse, fault
        for said in ("takes_logits", "needs_classes", "couples", "draws", "views", "columns"):
            setattr(self, said, getattr(inner, said))

    @property
    @override
    def needs_classes_seen(self) -> bool:
        return self.inner.needs_classes_seen

    @override
    def __call__(self, answers: Answers) -> Tensor:
        losses = self.inner(answers)
        fails = self.fuse.is_lit and self.fuse.updates == self.fault.after_updates
        if not fails or self.fault.loss is None:
            return losses
        return self.fault.loss(losses, answers.outputs[: len(losses)])

    @override
    def rows_to_keep(self, incoming: Part) -> Mapping[str, Tensor]:
        if self.fuse.is_lit and self.fault.rows:
            raise RuntimeError("the policy is broken")
        return self.inner.rows_to_keep(incoming)


class FaultyPredictor(Predictor):
    """Averages weights until the fuse is lit."""

    follows_weights = True

    def __init__(self, inner: Predictor, fuse: Fuse) -> None:
        self.inner, self.fuse = inner, fuse

    @override
    def __call__(self, inputs: object, view: View) -> object:
        return self.inner(inputs, view)

    @override
    def prepared(self, weights: Mapping[str, Tensor]) -> Callable[[], None]:
        if self.fuse.is_lit:
            raise RuntimeError("the policy is broken")
        return self.inner.prepared(weights)

    @override
    def state(self) -> dict[str, Tensor]:
        return self.inner.state()


def broken(*_: object) -> Placement:
    raise RuntimeError("the policy is broken")


def broken_slots(_: Tensor) -> Tensor:
    raise RuntimeError("the policy is broken")


def interrupted(losses: Tensor, _: Tensor) -> Tensor:
    raise KeyboardInterrupt


def interrupted_while_switching(losses: Tensor, _: Tensor) -> Tensor:
    """Do what an interrupt does that comes just behind the switch of a `no_grad` block."""
    torch.set_grad_enabled(False)
    raise KeyboardInterrupt


def without_gradient_at_zero(losses: Tensor, outputs: Tensor) -> Tensor:
    """Add sqrt(0), whose slope is infinite: a finite loss with a NaN gradient."""
    return losses + (outputs - outputs.detach()).square().sqrt().sum(1)


@dataclass(frozen=True)
class Fault:
    """One way to fail: how the batch or a part goes wrong, and the error it must lead to."""

    error: type[BaseException] | tuple[type[BaseException], ...]
    message: str | None
    batch: Callable[[Tensor, Tensor], Batch] = lambda inputs, labels: (inputs, labels)
    loss: Callable[[Tensor, Tensor], Tensor] | None = None
    storage: Callable[[Placement], Placement] | None = None
    retrieval: Callable[[Tensor], Tensor] | None = None
    rule: bool = False
    optimizer: bool = False
    rows: bool = False
    average: bool = False
    only_logits: bool = False
    after_updates: int = 0

    def can_befall(self, method: str) -> bool:
        """Say whether a method has the part that fails."""
        row = METHODS[method]
        needs_memory = self.storage is not None or self.retrieval is not None or self.rule
        return (
            (row.storage is not None or not needs_memory)
            and (bool(row.objective.columns) or not self.rows)
            and (row.predictor.follows_weights or not self.average)
            and (row.objective.takes_logits or not self.only_logits)
        )


def with_entry(value: float) -> Callable[[Tensor, Tensor], Batch]:
    def spoil(inputs: Tensor, labels: Tensor) -> Batch:
        spoilt = inputs.clone()
        spoilt.view(-1)[7] = value
        return spoilt, labels

    return spoil


def with_label(value: int) -> Callable[[Tensor, Tensor], Batch]:
    def spoil(inputs: Tensor, labels: Tensor) -> Batch:
        spoilt = labels.clone()
        spoilt[-1] = value
        return inputs, spoilt

    return spoil


FAULTS = {
    "NaN input": Fault(NonFiniteError, "`inputs` holds 1 NaN", batch=with_entry(torch.nan)),
    "infinite input": Fault(NonFiniteError, "`inputs` holds 1 NaN", batch=with_entry(-torch.inf)),
    "label too large": Fault(
        ValueError, "`labels` holds 4, but", batch=with_label(4), only_logits=True
    ),
    "negative label": Fault(ValueError, "`labels` holds -1", batch=with_label(-1)),
    "NaN loss": Fault(NonFiniteError, "losses are NaN", loss=lambda x, _: x * torch.nan),
    "NaN loss in the second update": Fault(
        NonFiniteError, "losses are NaN", loss=lambda x, _: x * torch.nan, after_updates=1
    ),
    "infinite loss in the third update": Fault(
        NonFiniteError, "losses are NaN", loss=lambda x, _: x + torch.inf, after_updates=2
    ),
    "NaN gradient": Fault(NonFiniteError, "gradient|losses are NaN", loss=without_gradient_at_zero),
    "interrupt in the second update": Fault(
        KeyboardInterrupt, None, loss=interrupted, after_updates=1
    ),
    "interrupt while gradients are switched off": Fault(
        KeyboardInterrupt, None, loss=interrupted_while_switching
    ),
    "storage raises": Fault(RuntimeError, "policy is broken", storage=broken),
    "storage names no slot": Fault(
        ValueError,
        "the storage policy placed",
        storage=lambda p: Placement(torch.full_like(p.slots, CAPACITY)),
    ),
    "storage answers too short": Fault(
        ValueError, "the storage policy placed", storage=lambda p: Placement(p.slots[1:])
    ),
    "retrieval raises": Fault(RuntimeError, "policy is broken", retrieval=broken_slots),
    "rule returns NaN": Fault(NonFiniteError, "NaN or infinite weights", rule=True),
    "objective keeps nothing": Fault(RuntimeError, "policy is broken", rows=True, after_updates=1),
    "average of weights raises": Fault(RuntimeError, "policy is broken", average=True),
}


@dataclass
class Planted:
    """A learner with a fault in it."""

    learner: Learner
    fault: Fault
    fuse: Fuse = field(default_factory=Fuse)

    def fail(self, batch: Batch) -> None:
        with self.fuse.lit(), pytest.raises(self.fault.error, match=self.fault.message):
            self.learner.observe(*self.fault.batch(*batch))


def planted(name: str, kind: str, fault: Fault) -> Planted:
    """Build a method of three updates a step, with momentum, around parts that can fail."""
    fuse = Fuse()

    def loss(outputs: Tensor, labels: Tensor) -> Tensor:
        losses = F.cross_entropy(outputs, labels, reduction="none")
        if fuse.is_lit and fault.loss is not None and fuse.updates == fault.after_updates:
            return fault.loss(losses, outputs)
        return losses

    whole = learner(name, kind)
    net = model(kind)
    optimizer = sgd(net, momentum=0.9, weight_decay=0.01)

    def count(*_: object) -> None:
        fuse.updates += 1
        if fuse.is_lit and fault.optimizer:
            raise RuntimeError("the optimizer is broken")

    optimizer.register_step_post_hook(count)
    storage, retrieval, rule = whole.storage, whole.retrieval, whole.rule
    if storage is not None and fault.storage is not None:
        storage = FaultyStorage(storage, fuse, fault.storage)
    if retrieval is not None and fault.retrieval is not None:
        retrieval = FaultyRetrieval(retrieval, fuse, fault.retrieval)
    objective: Objective | None = whole.objective
    asks_labels_alone = isinstance(objective, CrossEntropy)
    if asks_labels_alone and fault.loss is not None:
        objective = None  # a loss of the user's stands in its place
    elif fault.loss is not None or fault.rows:
        objective = FaultyObjective(whole.objective, fuse, fault)
    predictor = whole.predictor
    return Planted(
        Learner(
            net,
            optimizer,
            memory=None if storage is None else Memory(CAPACITY),
            storage=storage,
            retrieval=retrieval,
            rule=FaultyRule(rule, fuse) if fault.rule else rule,
            objective=objective,
            predictor=FaultyPredictor(predictor, fuse) if fault.average else predictor,
            loss=loss if objective is None else None,
            augment=OPTIONS.get(name, {}).get("augment"),
            iterations=fault.after_updates + 1,
        ),
        fault,
        fuse,
    )


def cases(names: list[str], kinds: list[str]) -> list[tuple[str, str, str]]:
    return [
        (name, kind, what)
        for name in names
        for kind in kinds
        for what, fault in FAULTS.items()
        if fault.can_befall(name)
    ]


@pytest.mark.parametrize(
    ("name", "kind", "what"),
    cases(list(METHODS), ["batch norm"]) + cases(["er", "er-pc-mir", "gss"], ["mlp", "dropout"]),
)
def test_a_failed_observe_leaves_everything_as_it_was(name: str, kind: str, what: str) -> None:
    world = planted(name, kind, FAULTS[what])
    *earlier, last = stream(5)
    run(world.learner, earlier)
    before = fingerprint(world.learner)
    world.fail(last)
    assert differences(before, fingerprint(world.learner)) == []


@pytest.mark.parametrize(
    ("name", "kind", "what"),
    cases(["van", "er-pc-mir", "der++-p", "er-ema"], ["batch norm"])
    + cases(["er-cb", "er-p", "scr"], ["dropout"]),
)
def test_after_a_failure_the_learner_goes_on_as_if_it_had_not_happened(
    name: str, kind: str, what: str
) -> None:
    *earlier, last = stream(5)
    world, twin = (planted(name, kind, FAULTS[what]) for _ in range(2))
    run(world.learner, earlier)
    run(twin.learner, earlier)
    world.fail(last)
    run(world.learner, [last])
    run(twin.learner, [last])
    assert differences(fingerprint(world.learner), fingerprint(twin.learner)) == []


@pytest.mark.parametrize(
    "what",
    # Nothing is replayed in the first step, so neither retrieval nor rule can fail there.
    [
        what
        for what, fault in FAULTS.items()
        if fault.retrieval is None and not fault.rule and fault.can_befall("er")
    ],
)
@pytest.mark.parametrize("name", ["er", "gss"])
def test_a_failure_in_the_very_first_step_leaves_a_new_learner(name: str, what: str) -> None:
    world = planted(name, "mlp", FAULTS[what])
    before = fingerprint(world.learner)
    world.fail(stream(1)[0])
    assert differences(before, fingerprint(world.learner)) == []


def test_a_failed_first_step_does_not_fix_the_shape_of_the_memory() -> None:
    def flexible(outputs: Tensor, labels: Tensor) -> Tensor:
        return outputs.sum(1) * 0 + labels

    net = nn.Linear(3, 2)
    world = Learner(net, sgd(net), memory=Memory(10), loss=flexible)
    with pytest.raises(ValueError, match="shapes cannot be multiplied"):
        world.observe(torch.zeros(2, 7), torch.zeros(2))
    world.observe(torch.zeros(2, 3), torch.zeros(2))
    assert world.memory is not None
    assert len(world.memory) == 2


def test_a_memory_too_large_to_be_had_is_refused_before_anything_is_learnt() -> None:
    net = nn.Linear(3, 2)
    world = Learner(
        net,
        sgd(net),
        memory=Memory(2**20),
        transform=lambda image: image[:, :3].float(),
    )
    # Examples of 2^27 bytes each, which take none themselves: the memory would need 2^47.
    inputs = torch.zeros(1, dtype=torch.uint8).expand(1, 2**27)
    before = fingerprint(world)
    with pytest.raises(RuntimeError, match=r"(?i)alloc|memory"):
        world.observe(inputs, torch.tensor([0]))
    assert differences(before, fingerprint(world)) == []


class CountsInItsGroups(torch.optim.Optimizer):
    """Keeps in its groups what others keep by parameter, as some optimizers do."""

    def __init__(self, parameters: Iterator[nn.Parameter]) -> None:
        super().__init__(parameters, {"lr": 0.1, "steps": 0, "scale": torch.ones(())})

    @override
    @torch.no_grad()
    def step(self, closure: object = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            group["steps"] += 1
            group["scale"].mul_(0.5)
            group["since"] = group["steps"]
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.sub_(parameter.grad * group["scale"], alpha=group["lr"])


def test_a_failure_puts_back_what_an_optimizer_keeps_in_its_groups() -> None:
    net, fuse = model(), Fuse()
    optimizer = CountsInItsGroups(net.parameters())
    storage = FaultyStorage(learner("er").storage or Forgetful(), fuse, broken)
    world = Learner(net, optimizer, memory=Memory(CAPACITY), storage=storage)
    before = fingerprint(world)
    for batch in stream(3):
        with fuse.lit(), pytest.raises(RuntimeError, match="policy is broken"):
            world.observe(*batch)
        assert differences(before, fingerprint(world)) == []
        run(world, [batch])
        before = fingerprint(world)
    assert optimizer.param_groups[0]["steps"] == 3


def too_few_scores(placement: Placement) -> Placement:
    return Placement(placement.slots, scores=torch.zeros(1))


def too_many_stored_scores(placement: Placement) -> Placement:
    return Placement(placement.slots, stored_scores=torch.zeros(CAPACITY + 1))


@pytest.mark.parametrize("answer", [too_few_scores, too_many_stored_scores])
@pytest.mark.parametrize("name", ["er", "er-c"])
def test_a_storage_whose_scores_do_not_fit_leaves_no_trace(
    name: str, answer: Callable[[Placement], Placement]
) -> None:
    world = planted(
        name, "mlp", Fault((ValueError, IndexError, RuntimeError), None, storage=answer)
    )
    *earlier, last = stream(5)
    run(world.learner, earlier)
    before = fingerprint(world.learner)
    world.fail(last)
    assert differences(before, fingerprint(world.learner)) == []


@pytest.mark.parametrize("name", ["van", "er", "er-p", "er-c"])
def test_an_optimizer_that_raises_after_its_step_leaves_no_trace(name: str) -> None:
    world = planted(name, "mlp", Fault(RuntimeError, "the optimizer is broken", optimizer=True))
    *earlier, last = stream(5)
    run(world.learner, earlier)
    before = fingerprint(world.learner)
    world.fail(last)
    assert differences(before, fingerprint(world.learner)) == []


class Counting(nn.Module):
    """A model whose own statistics are replaced by new tensors, not filled in place."""

    def __init__(self) -> None:
        super().__init__()
        self.body = model("mlp")
        self.register_buffer("mean", torch.zeros(SHAPE))
        self.mean: Tensor

    @override
    def forward(self, inputs: Tensor) -> Tensor:
        self.mean = 0.9 * self.mean + 0.1 * inputs.mean(0)
        return self.body(inputs - self.mean)


@pytest.mark.parametrize("name", ["van", "er", "gss"])
def test_a_failure_puts_back_buffers_that_the_model_replaces(name: str) -> None:
    net = Counting()
    whole = learner(name)
    world = Learner(
        net, sgd(net), memory=whole.memory, storage=whole.storage, retrieval=whole.retrieval
    )
    *earlier, (inputs, labels) = stream(4)
    run(world, earlier)
    before = fingerprint(world)
    with pytest.raises(ValueError, match="`labels` holds 99"):
        world.observe(inputs, torch.full_like(labels, 99))
    assert differences(before, fingerprint(world)) == []


class Forgetful(Storage):
    """Has nothing to remember before its first decision, which fails."""

    def __init__(self) -> None:
        self.decisions = 0

    @override
    def place(
        self, labels: Tensor, memory: MemoryType, evidence: Evidence, rng: torch.Generator
    ) -> Placement:
        self.decisions += 1
        raise RuntimeError("the policy is broken")

    @override
    def state(self) -> dict[str, Tensor]:
        return {"decisions": torch.tensor(self.decisions)} if self.decisions else {}

    @override
    def restore(self, state: Mapping[str, Tensor]) -> None:
        self.decisions = int(state.get("decisions", 0))


def test_a_policy_that_had_nothing_to_remember_yet_is_put_back() -> None:
    net, policy = model(), Forgetful()
    with pytest.raises(RuntimeError, match="policy is broken"):
        run(Learner(net, sgd(net), memory=Memory(CAPACITY), storage=policy), stream(1))
    assert policy.decisions == 0


WRONG_SLOTS: dict[str, Callable[[Tensor], Tensor]] = {
    "an empty slot": lambda slots: slots + len(slots),
    "no slot": lambda slots: slots + CAPACITY,
    "a slot below zero": lambda slots: slots - CAPACITY,
    "the same slot twice": torch.zeros_like,
    "more than it said": lambda slots: torch.cat((slots, slots)),
    "real numbers": lambda slots: slots.double(),
}


@pytest.mark.parametrize("what", WRONG_SLOTS)
@pytest.mark.parametrize("name", ["er", "er-p"])
def test_a_retrieval_that_names_wrong_slots_is_refused(name: str, what: str) -> None:
    fault = Fault((ValueError, TypeError), "retrieval", retrieval=WRONG_SLOTS[what])
    world = planted(name, "mlp", fault)
    first, second = stream(2, size=4)
    run(world.learner, [first])
    before = fingerprint(world.learner)
    world.fail(second)
    assert differences(before, fingerprint(world.learner)) == []
