"""An objective in a learner: who is asked what, what is kept for it, and what rules weigh."""

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.unit.learner.support import (
    CLASSES,
    fingerprint,
    jitter,
    learner,
    model,
    run,
    sgd,
    stream,
)
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

from recollect import Learner, Memory
from recollect.errors import CheckpointError, UnsupportedModuleError
from recollect.memory import MemoryColumn
from recollect.models import GrowingHead, seeded, with_growing_head, with_projection
from recollect.objectives import (
    Answers,
    AsymmetricCrossEntropy,
    CrossEntropy,
    DarkExperience,
    Objective,
    Part,
    SupervisedContrast,
)
from recollect.retrieval import MaximallyInterfered, Uniform
from recollect.rules import GradientSum, PrincipalDirection, Rule, WeightedSum

STREAM = stream(12, seed=3)


def asking(objective: Objective, kind: str = "mlp", **options: Any) -> Learner:
    net = model(kind, dtype=torch.float64)
    if objective.takes_projections:
        net = seeded(lambda: with_projection(model(kind), width=6), 0).double()
        options.setdefault("augment", jitter)
    options.setdefault("retrieval", Uniform(4))
    return Learner(net, sgd(net), memory=Memory(12), objective=objective, **options)


DOUBLES = stream(12, seed=3, dtype=torch.float64)


@pytest.mark.parametrize("passes", ["joint", "separate"])
@pytest.mark.parametrize("kind", ["mlp", "batch norm"])
def test_an_objective_that_asks_the_same_is_the_default_to_the_bit(kind: str, passes: Any) -> None:
    usual = run(learner("er", kind, passes=passes), STREAM)
    asked = learner("er", kind, passes=passes)
    explicit = Learner(
        asked.model,
        asked.optimizer,
        memory=asked.memory,
        retrieval=asked.retrieval,
        objective=CrossEntropy(),
        passes=passes,
    )
    assert fingerprint(run(explicit, STREAM)) == fingerprint(usual)


def test_a_loss_beside_an_objective_is_refused() -> None:
    with pytest.raises(ValueError, match="`objective` and `loss` were both given"):
        asking(CrossEntropy(), loss=nn.MSELoss())


def test_what_is_no_objective_is_refused() -> None:
    with pytest.raises(TypeError, match="pass an instance of a subclass of `Objective`"):
        asking(CrossEntropy)  # type: ignore[arg-type]


@pytest.mark.parametrize("passes", ["joint", "separate"])
def test_incoming_and_replayed_examples_are_asked_apart(passes: Any) -> None:
    one = run(asking(AsymmetricCrossEntropy(), passes=passes), DOUBLES[:6])
    inputs, labels = DOUBLES[6]
    with torch.no_grad():
        logits = one.model(inputs)
    absent = [c for c in range(CLASSES) if c not in labels.tolist()]
    update = one.observe(inputs, labels).updates[0]
    few = logits.index_fill(1, torch.tensor(absent, dtype=torch.int64), float("-inf"))
    torch.testing.assert_close(
        update.incoming_losses, F.cross_entropy(few, labels, reduction="none")
    )
    old = update.outputs[len(labels) :]
    assert one.memory is not None
    assert update.replayed_losses.shape == (4,)
    assert old.shape == (4, CLASSES)


def test_classes_count_as_seen_from_their_first_batch_on(tmp_path: Path) -> None:
    one = asking(AsymmetricCrossEntropy("unseen"))
    for inputs, labels in DOUBLES[:5]:
        one.observe(inputs, labels)
    seen = sorted({int(label) for _, labels in DOUBLES[:5] for label in labels})
    assert one._classes_seen.numbers.tolist() == seen
    with pytest.raises(ValueError, match="labels"):
        one.observe(DOUBLES[5][0], torch.full((5,), CLASSES + 3))
    assert one._classes_seen.numbers.tolist() == seen
    one.save(tmp_path / "c.ckpt")
    again = asking(AsymmetricCrossEntropy("unseen"))
    again.load(tmp_path / "c.ckpt")
    assert again._classes_seen.numbers.tolist() == seen
    assert fingerprint(run(again, DOUBLES[5:])) == fingerprint(run(one, DOUBLES[5:]))


# --- memory columns -------------------------------------------------------------------------------


def test_logits_are_stored_as_the_last_pass_before_storing_gave_them() -> None:
    one = asking(DarkExperience(), iterations=2)
    assert one.memory is not None
    for inputs, labels in DOUBLES:
        report = one.observe(inputs, labels)
        stored = one.memory.declared("logits", report.written_slots)
        assert stored is not None
        said = report.updates[-1].incoming_outputs[report.written.examples]
        assert torch.equal(stored, said)
    counts = one.memory.declared("num_logits", torch.arange(len(one.memory)))
    assert counts is not None
    assert counts.tolist() == [CLASSES] * 12
    assert one.memory.slot(3).columns["logits"].shape == (CLASSES,)


def test_stored_logits_count_towards_the_bytes_of_a_memory() -> None:
    net = model(dtype=torch.float64)
    plain, dark = (
        Learner(net, sgd(net), memory=Memory(100, max_bytes=4000), objective=objective)
        for objective in (CrossEntropy(), DarkExperience())
    )
    for one in (plain, dark):
        run(one, DOUBLES)
        assert one.memory is not None
        assert one.memory.nbytes <= 4000
    assert plain.memory is not None
    assert dark.memory is not None
    assert dark.memory.capacity < plain.memory.capacity


def test_logits_go_with_their_example_when_another_is_forgotten() -> None:
    one = run(asking(DarkExperience()), DOUBLES)
    memory = one.memory
    assert memory is not None
    known = {memory.slot(i).id: memory.slot(i).columns["logits"] for i in range(12)}
    gone = memory.forget(slots=[0, 5])
    assert len(memory) == 10
    for slot in map(memory.slot, range(10)):
        assert slot.id not in gone
        assert torch.equal(slot.columns["logits"], known[slot.id])
    run(one, DOUBLES[:3])


@pytest.mark.parametrize("slots", [8, 30])
def test_logits_go_into_a_memory_of_another_size(slots: int, tmp_path: Path) -> None:
    one = run(asking(DarkExperience()), DOUBLES)
    one.save(tmp_path / "c.ckpt")
    net = model(dtype=torch.float64)
    other = Learner(
        net, sgd(net), memory=Memory(slots), retrieval=Uniform(4), objective=DarkExperience()
    )
    other.load(tmp_path / "c.ckpt", changed=["capacity"])
    assert one.memory is not None
    assert other.memory is not None
    known = {one.memory.slot(i).id: one.memory.slot(i).columns["logits"] for i in range(12)}
    for slot in map(other.memory.slot, range(len(other.memory))):
        assert torch.equal(slot.columns["logits"], known[slot.id])
    run(other, DOUBLES[:3])


def test_logits_of_a_head_that_grew_are_compared_over_the_classes_they_cover() -> None:
    net = with_growing_head(nn.Sequential(nn.Flatten(), nn.Linear(16, 2)))
    one = Learner(
        net, sgd(net), memory=Memory(12), retrieval=Uniform(4), objective=DarkExperience()
    )
    for inputs, labels in STREAM[:8]:
        one.observe(inputs, labels)
    head = one.head
    assert isinstance(head, GrowingHead)
    assert head.out_features > 2
    assert one.memory is not None
    counts = one.memory.declared("num_logits", torch.arange(12))
    assert counts is not None
    assert 2 in counts.tolist()
    assert head.out_features in counts.tolist()


def test_a_learner_goes_on_with_another_objective_and_asks_old_examples_what_it_can(
    tmp_path: Path,
) -> None:
    one = run(asking(CrossEntropy()), DOUBLES[:5])
    one.save(tmp_path / "c.ckpt")
    other = asking(DarkExperience(alpha=1.0, beta=0.0))
    with pytest.raises(CheckpointError, match="objective: the checkpoint has None"):
        other.load(tmp_path / "c.ckpt")
    other.load(tmp_path / "c.ckpt", changed=["objective"])
    report = other.observe(*DOUBLES[5])
    assert report.updates[0].replayed_losses.tolist() == [0.0] * 4  # stored without logits
    for batch in DOUBLES[6:]:
        report = other.observe(*batch)
    assert report.updates[0].replayed_losses.max() > 0


class KeepsTooLittle(Objective):
    """Declares two columns and keeps one."""

    columns = (MemoryColumn("one"), MemoryColumn("two"))

    @override
    def __call__(self, answers: Answers) -> Tensor:
        return F.cross_entropy(answers.outputs, answers.labels, reduction="none")

    @override
    def rows_to_keep(self, incoming: Part) -> dict[str, Tensor]:
        return {"one": torch.zeros(len(incoming))}


def test_an_objective_that_keeps_other_than_it_declares_is_refused_and_nothing_is_learnt() -> None:
    one = asking(KeepsTooLittle())
    before = fingerprint(one)
    with pytest.raises(ValueError, match=r"declares \['one', 'two'\] and keeps \['one'\]"):
        one.observe(*DOUBLES[0])
    assert fingerprint(one) == before


@pytest.mark.parametrize("default", [float("inf"), float("nan")])
def test_a_default_that_no_checkpoint_holds_is_refused(default: float) -> None:
    with pytest.raises(ValueError, match=r"`default` of the column `mine` is (inf|nan), which no"):
        MemoryColumn("mine", default)


def test_two_parts_cannot_keep_columns_of_one_name() -> None:
    class Clashing(CrossEntropy):  # type: ignore[misc]
        columns = (MemoryColumn("best_loss"),)

    with pytest.raises(ValueError, match="give each a name of its own"):
        asking(Clashing(), retrieval=MaximallyInterfered(4, 8, beside="best"))


# --- retrieval by the best loss -------------------------------------------------------------------


def test_the_best_loss_of_a_candidate_is_the_smallest_it_had_as_one() -> None:
    one = asking(CrossEntropy(), retrieval=MaximallyInterfered(4, 100, beside="best"))
    memory = one.memory
    assert memory is not None
    best: dict[int | str, float] = {}
    for inputs, labels in DOUBLES:
        if len(memory) > 4:
            slots = torch.arange(len(memory))
            stored, stored_labels = memory.read(slots)
            with torch.no_grad():
                now = F.cross_entropy(one.model(stored), stored_labels, reduction="none")
            for name, loss in zip(memory.ids(), now.tolist(), strict=True):
                best[name] = min(best.get(name, float("inf")), loss)
        ids = memory.ids()
        one.observe(inputs, labels)
        kept = memory.declared("best_loss", torch.arange(len(memory)))
        assert kept is not None
        for name, found in zip(memory.ids(), kept.tolist(), strict=True):
            if name in best and name in ids:
                assert found == pytest.approx(best[name], rel=1e-5)


# --- objectives that couple examples --------------------------------------------------------------


def test_contributions_are_what_flows_through_an_examples_own_outputs() -> None:
    rule = PrincipalDirection(step_size=0.1)
    options: Any = {"rule": rule, "augment": torch.clone, "measure_all": True}
    one = run(asking(SupervisedContrast(0.5), **options), DOUBLES[:4])
    assert one.memory is not None
    stored, classes = one.memory.read(torch.arange(12))
    assert isinstance(stored, Tensor)
    net = copy.deepcopy(one.model)
    inputs, labels = DOUBLES[4]
    update = one.observe(inputs, labels).updates[0]
    slots = update.replayed_slots
    rows = contributions(net, inputs, labels, stored[slots], classes[slots])
    assert update.gram is not None
    assert update.weights is not None
    torch.testing.assert_close(update.gram, rows @ rows.T)
    moved = [before - after for before, after in zip(*map(flat, (net, one.model)), strict=True)]
    torch.testing.assert_close(torch.stack(moved), 0.1 * update.weights @ rows)


def flat(net: nn.Module) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in net.parameters()])


def contributions(
    net: nn.Module, inputs: Tensor, labels: Tensor, old: Any, old_labels: Tensor
) -> Tensor:
    """Return g and each g_i by a backward pass for each, from cotangents at the outputs."""
    both = torch.cat((inputs, old))
    classes = torch.cat((labels, old_labels))
    outputs = net(torch.cat((both, both)))
    flags = [False] * len(inputs) + [True] * len(old)
    losses = SupervisedContrast(0.5)(Answers(outputs, classes, flags, views=2))
    total = losses[: len(inputs)].mean() + losses[len(inputs) :].mean()
    (cotangents,) = torch.autograd.grad(total, outputs, retain_graph=True)
    weights = list(net.parameters())
    found = []
    groups = [list(range(len(inputs))), *([i] for i in range(len(inputs), len(both)))]
    for group in groups:
        rows = [row for i in group for row in (i, i + len(both))]
        scale = 1.0 if len(group) > 1 else float(len(old))
        share = scale * (outputs[rows] * cotangents[rows]).sum()
        gradients = torch.autograd.grad(share, weights, retain_graph=True)
        found.append(torch.cat([gradient.flatten() for gradient in gradients]))
    return torch.stack(found)


@pytest.mark.parametrize("kind", ["mlp", "batch norm"])
def test_contributions_with_ers_weights_make_the_gradient_of_the_mean_losses(kind: str) -> None:
    class Measured(Rule):
        """ER's weights, by a rule that has gradients measured."""

        @override
        def __call__(self, gram: Tensor) -> Tensor:
            return gram.new_tensor([1.0] + [1 / (len(gram) - 1)] * (len(gram) - 1))

    summed, measured = (
        run(asking(SupervisedContrast(0.5), kind, rule=rule), DOUBLES)
        for rule in (GradientSum(), Measured())
    )
    for one, other in zip(summed.model.parameters(), measured.model.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-7, atol=1e-9)


def test_a_fixed_weight_acts_on_contributions_as_it_does_when_they_are_measured() -> None:
    class Measured(WeightedSum):  # type: ignore[misc]
        needs = "matrix"

    fixed, measured = (
        run(asking(SupervisedContrast(0.5), rule=rule), DOUBLES)
        for rule in (WeightedSum(3.0), Measured(3.0))
    )
    for one, other in zip(fixed.model.parameters(), measured.model.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("passes", ["separate", "grouped"])
def test_an_objective_that_compares_both_parts_is_refused_where_they_pass_apart(
    passes: Any,
) -> None:
    with pytest.raises(ValueError, match=f"`passes` is '{passes}', but SupervisedContrast comp"):
        asking(SupervisedContrast(), passes=passes, rule=PrincipalDirection(groups=2))


def test_two_views_without_an_augmentation_are_refused() -> None:
    with pytest.raises(ValueError, match="would be the same without `augment`"):
        asking(SupervisedContrast(), augment=None)


class Described(nn.Module):
    """Answers with something that is no tensor with a row per example."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 3)

    def forward(self, inputs: Tensor) -> object:
        return {"all": self.layer(inputs.flatten(1)).sum(0, keepdim=True)}


class Together(Objective):
    """One number for all, shared out."""

    takes_logits = False
    couples = True

    @override
    def __call__(self, answers: Answers) -> Tensor:
        total: Tensor = answers.outputs["all"].square().sum()
        return (total / len(answers.labels)).expand(len(answers.labels))


def test_a_rule_that_weighs_gradients_refuses_outputs_that_are_nobodys_own() -> None:
    net = Described()
    one = Learner(net, sgd(net), memory=Memory(8), objective=Together(), rule=PrincipalDirection())
    one.observe(*STREAM[0])  # nothing is replayed, and nothing weighed
    before = fingerprint(one)
    with pytest.raises(UnsupportedModuleError, match="Together couples examples, and the model"):
        one.observe(*STREAM[1])
    assert fingerprint(one) == before
    plain = Described()
    run(Learner(plain, sgd(plain, lr=1e-4), memory=Memory(8), objective=Together()), STREAM)


def test_classes_of_a_batch_that_was_not_learnt_are_not_seen() -> None:
    one = run(learner("er-ace", against="unseen"), [(x, y % 2) for x, y in STREAM[:4]])
    before = fingerprint(one)

    def broken(*_: object) -> None:
        raise RuntimeError("the optimizer is broken")

    handle = one.optimizer.register_step_post_hook(broken)
    with pytest.raises(RuntimeError, match="optimizer is broken"):
        one.observe(STREAM[4][0], torch.full((5,), 3))
    handle.remove()
    assert one._classes_seen.numbers.tolist() == [0, 1]
    assert fingerprint(one) == before
