"""What of the gradients is measured: a row or the matrix, of all parameters or some."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from tests.unit.learner.support import differences, fingerprint, learner, run, stream
from torch import Tensor
from torch.nn import functional as F
from typing_extensions import override

from recollect import Learner, StepReport
from recollect.errors import CheckpointError
from recollect.gradients import gram_of, one_by_one
from recollect.learner import Update
from recollect.rules import ClippedSum, PrincipalDirection, Rule
from recollect.rules.rule import Needs

DOUBLE = torch.float64
KINDS = ("mlp", "batch norm", "dropout")
ROW_METHODS = ("er-p", "er-clip", "er-p-mir", "er-pc")


def last(world: Learner, steps: int = 4) -> Update:
    found: StepReport | None = None
    for inputs, labels in stream(steps, dtype=next(world.model.parameters()).dtype):
        found = world.observe(inputs, labels)
    assert found is not None
    return found.updates[-1]


# --- a row or the matrix --------------------------------------------------------------------------


def test_rules_say_how_little_they_need() -> None:
    assert PrincipalDirection().needs == ClippedSum().needs == "row"
    assert PrincipalDirection(steps=2).needs == PrincipalDirection(groups=2).needs == "matrix"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ROW_METHODS)
def test_to_measure_all_changes_no_bit(name: str, kind: str) -> None:
    usual, all_of_it = (
        run(learner(name, kind, measure_all=all_), stream(6)) for all_ in (False, True)
    )
    assert differences(fingerprint(usual), fingerprint(all_of_it)) == []


@pytest.mark.parametrize("passes", ["joint", "separate"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_row_says_what_the_matrix_says(kind: str, passes: str) -> None:
    options: dict[str, Any] = {"dtype": DOUBLE, "passes": passes}
    row = last(learner("er-p", kind, **options))
    both = last(learner("er-p", kind, measure_all=True, **options))
    assert row.gram is None
    assert both.gram is not None
    assert both.weights is not None
    close = torch.testing.assert_close
    close(row.replayed_products, both.gram[0, 1:], rtol=1e-9, atol=1e-12)
    close(row.replayed_norms, both.gram.diagonal()[1:].sqrt(), rtol=1e-9, atol=1e-12)
    assert row.incoming_norm == pytest.approx(float(both.gram[0, 0].sqrt()), rel=1e-9)


@pytest.mark.parametrize("kind", ["mlp", "dropout"])
def test_the_length_of_the_target_is_that_of_the_combined_gradient(kind: str) -> None:
    update = last(learner("er-p", kind, dtype=DOUBLE, measure_all=True))
    assert update.gram is not None
    assert update.weights is not None
    squared = float(update.weights @ update.gram @ update.weights)
    assert update.target_norm == pytest.approx(squared**0.5, rel=1e-9)


def test_a_rule_that_needs_the_matrix_gets_it() -> None:
    options: tuple[dict[str, Any], ...] = ({"steps": 3}, {"groups": 2})
    for chosen in options:
        update = last(learner("er-p", **chosen))
        assert update.gram is not None
        assert update.replayed_norms is not None
        assert update.replayed_products is not None


def test_nothing_is_told_of_gradients_that_were_not_measured() -> None:
    update = last(learner("er"))
    assert (update.gram, update.row, update.weights, update.target_norm) == (None,) * 4
    assert (update.incoming_norm, update.replayed_norms, update.replayed_products) == (None,) * 3


class _TooFew(Rule):
    needs: ClassVar[Needs] = "row"

    @override
    def __call__(self, gram: Tensor) -> Tensor:
        return gram[0]

    @override
    def row_weights(
        self, products: Sequence[float], squared_lengths: Sequence[float]
    ) -> Sequence[float]:
        return products[1:]


def test_too_few_weights_for_a_row_are_refused() -> None:
    world = run(learner("er-p"), stream(2))
    world.__dict__["rule"] = _TooFew()
    with pytest.raises(ValueError, match="`row_weights` of _TooFew returned 4 for 5 gradients"):
        run(world, stream(1))


# --- some of the parameters -----------------------------------------------------------------------


def observed(kind: str) -> tuple[Learner, Update, Tensor, dict[str, Tensor]]:
    """Take a step that measures the head; return losses as they were, and where weights went."""
    world = run(learner("er-p", kind, dtype=DOUBLE, measured="head"), stream(3, dtype=DOUBLE))
    inputs, labels = stream(1, seed=4, dtype=DOUBLE)[0]
    memory = world.memory
    assert memory is not None
    stored, stored_labels = memory.read(torch.arange(len(memory)))
    assert isinstance(stored, Tensor)
    state = {name: tensor.clone() for name, tensor in world.model.state_dict().items()}
    (update,) = world.observe(inputs, labels).updates
    after = {name: p.detach().clone() for name, p in world.model.named_parameters()}
    world.model.load_state_dict(state)
    slots = update.replayed_slots
    outputs = world.model(torch.cat((inputs, stored[slots])))
    both = torch.cat((labels, stored_labels[slots]))
    return world, update, F.cross_entropy(outputs, both, reduction="none"), after


@pytest.mark.parametrize("kind", ["mlp", "batch norm"])
def test_weights_come_from_the_head_alone(kind: str) -> None:
    world, update, losses, _ = observed(kind)
    head = dict([*world.model.named_parameters()][-2:])
    count = update.num_incoming
    rows = [
        torch.cat((row[:count].mean(0, keepdim=True), row[count:]))
        for row in one_by_one(losses, head).values()
    ]
    torch.testing.assert_close(update.weights, world.rule(gram_of(rows)), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", ["mlp", "batch norm"])
def test_the_update_is_the_gradient_of_weighted_losses(kind: str) -> None:
    world, update, losses, after = observed(kind)
    weights, count = update.weights, update.num_incoming
    assert weights is not None
    objective = weights[0] * losses[:count].mean() + weights[1:] @ losses[count:]
    parameters = dict(world.model.named_parameters())
    found = torch.autograd.grad(objective, list(parameters.values()))
    for (name, old), gradient in zip(parameters.items(), found, strict=True):
        expected = old.detach() - 0.1 * gradient
        torch.testing.assert_close(after[name], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["er-p", "er-p-mir", "er-clip", "a-gem"])
@pytest.mark.parametrize("kind", ["mlp", "dropout"])
def test_joint_and_separate_passes_measure_the_same_part(name: str, kind: str) -> None:
    worlds = [
        learner(name, kind, dtype=DOUBLE, measured="head", passes=passes)
        for passes in ("joint", "separate")
    ]
    for world in worlds:
        if kind == "dropout":
            world.model[3].p = 0.0  # type: ignore[index]
        run(world, stream(5, dtype=DOUBLE))
    states = [world.model.state_dict() for world in worlds]
    torch.testing.assert_close(states[0], states[1], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_all_parameters_by_name_are_all(kind: str) -> None:
    usual = run(learner("er-p", kind), stream(5))
    names = [name for name, _ in usual.model.named_parameters()]
    named = run(learner("er-p", kind, measured=names), stream(5))
    assert differences(fingerprint(usual), fingerprint(named)) == []


def test_a_layer_by_name_is_its_parameters() -> None:
    one, other, head = (
        run(learner("er-p", measured=measured), stream(5))
        for measured in (["3"], ["3.bias", "3.weight"], "head")
    )
    assert differences(fingerprint(one), fingerprint(other)) == []
    assert differences(fingerprint(one), fingerprint(head)) == []


def test_grouped_passes_measure_a_part() -> None:
    all_of_it, head = (
        last(learner("er-p", groups=2, passes="grouped", measured=measured))
        for measured in ("all", "head")
    )
    assert all_of_it.incoming_norm is not None
    assert head.incoming_norm is not None
    assert head.incoming_norm < all_of_it.incoming_norm


def test_storage_is_told_of_the_measured_part() -> None:
    scores = []
    for measured in ("all", "head"):
        world = run(learner("gss", measured=measured), stream(6))
        assert world.memory is not None
        scores.append(world.memory.score.clone())
    assert not torch.equal(*scores)


def test_all_that_is_not_measured_is_trained() -> None:
    world = learner("er-p", measured="head")
    before = [parameter.clone() for parameter in world.model.parameters()]
    run(world, stream(2))
    assert all(not torch.equal(a, b) for a, b in zip(before, world.model.parameters(), strict=True))


@pytest.mark.parametrize(
    ("measured", "complaint"),
    [
        ("tail", "`measured` is 'tail'; choose 'all', 'head' or a list"),
        ([], r"`measured` is \[\]; name at least one layer or parameter"),
        (["heed"], "`measured` names 'heed', which no trained parameter is called or lies in"),
        (["3.weigth"], "did you mean `3.weight`?"),
    ],
)
def test_what_names_nothing_is_refused(measured: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        learner("er-p", measured=measured)


def test_a_checkpoint_of_another_part_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "learner"
    run(learner("er-p", measured="head"), stream(3)).save(path)
    with pytest.raises(CheckpointError, match="measured: the checkpoint has head, this learner"):
        learner("er-p").load(path)
    learner("er-p").load(path, changed=("measured",))
    learner("er-p", measured="head").load(path)
    world = learner("er-p", measured="head")
    rebuilt = Learner.from_checkpoint(path, world.model, world.optimizer)
    assert rebuilt.measured == "head"
