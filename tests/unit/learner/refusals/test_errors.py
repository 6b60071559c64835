"""What cannot be learnt from is refused with a message that says why, and changes nothing."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
import torch
from tests.unit.learner.support import (
    CAPACITY,
    CLASSES,
    WITH_MEMORY,
    differences,
    fingerprint,
    learner,
    model,
    run,
    sgd,
    stream,
)
from torch import Tensor, nn
from typing_extensions import override

from recollect import Learner, Memory, method
from recollect.errors import NonFiniteError
from recollect.retrieval import Uniform
from recollect.rules import PrincipalDirection, Rule
from recollect.storage import Reservoir

INPUTS, LABELS = stream(1, seed=5)[0]

BAD_BATCHES: dict[str, tuple[object, object, type[Exception], str]] = {
    "NaN in the inputs": (INPUTS * torch.nan, LABELS, NonFiniteError, "`inputs` holds 80 NaN"),
    "infinite inputs": (INPUTS + torch.inf, LABELS, NonFiniteError, "`inputs` holds 80 NaN"),
    "labels too large": (INPUTS, LABELS + CLASSES, ValueError, r"model has 4 outputs.*0 to 3"),
    "negative labels": (INPUTS, LABELS - 9, ValueError, r"`labels` holds -\d; classes count from"),
    "real labels": (INPUTS, LABELS.float(), TypeError, r"dtype torch.float32.*needs classes"),
    "true or false": (INPUTS, LABELS > 0, TypeError, r"dtype torch.bool.*needs classes"),
    "complex labels": (INPUTS, LABELS + 0j, TypeError, r"dtype torch.complex64.*needs classes"),
    "one-hot labels": (INPUTS, torch.eye(4).long()[LABELS], ValueError, "pass a vector"),
    "labels that are names": (INPUTS, list("abcab"), TypeError, r"label_map=LabelMap\(\)"),
    "no labels": (INPUTS, None, TypeError, "`labels` is a NoneType"),
    "a single object": (object(), LABELS, TypeError, "`inputs` holds a object"),
    "no inputs": ((), LABELS, ValueError, "`inputs` holds no tensor"),
    "an input that is one number": (torch.tensor(1.0), LABELS, ValueError, "no dimension for"),
    "too few labels": (INPUTS, LABELS[:-1], ValueError, "4 entries for 5 `inputs`"),
    "too many labels": (INPUTS[:3], LABELS, ValueError, "5 entries for 3 `inputs`"),
    "one label that is a number": (INPUTS, LABELS[0], ValueError, "no entries for 5 `inputs`"),
    "an empty batch": (INPUTS[:0], LABELS[:0], ValueError, "empty batch"),
    "another shape": (INPUTS[..., :3], LABELS, ValueError, r"shape \(1, 4, 3\), the memory holds"),
    "another dtype": (INPUTS.double(), LABELS, TypeError, "dtype torch.float64, the memory holds"),
    "another structure": ((INPUTS,), LABELS, ValueError, "another structure"),
    "names instead of position": ({"input": INPUTS}, LABELS, ValueError, "another structure"),
    "another label dtype": (INPUTS, LABELS.float(), TypeError, "`labels` has dtype torch.float32"),
}


def refusals() -> list[tuple[str, str]]:
    """List what each method refuses: comparing features, SCR has no number of classes to exceed."""
    every = [(what, name) for what in BAD_BATCHES for name in WITH_MEMORY]
    return [pair for pair in every if pair != ("labels too large", "scr")]


@pytest.mark.parametrize(("what", "name"), refusals())
def test_a_bad_batch_is_refused_and_changes_nothing(what: str, name: str) -> None:
    inputs, labels, error, message = BAD_BATCHES[what]
    world = run(learner(name), stream(2))
    before = fingerprint(world)
    with pytest.raises(error, match=message):
        world.observe(inputs, labels)
    assert differences(before, fingerprint(world)) == []


@pytest.mark.parametrize("name", ["van", "er"])
def test_without_examples_in_memory_a_model_judges_shapes_itself(name: str) -> None:
    world = learner(name)
    before = fingerprint(world)
    with pytest.raises(ValueError, match=r"layer `1`, Linear.*shape \(2, 3\).*takes 16 features"):
        world.observe(torch.zeros(2, 3), torch.zeros(2, dtype=torch.int64))
    assert differences(before, fingerprint(world)) == []


def test_nan_in_complex_inputs_is_refused() -> None:
    world = learner("er", transform=lambda spectrum: spectrum.real)
    with pytest.raises(NonFiniteError, match="`inputs` holds 80 NaN"):
        world.observe(torch.complex(INPUTS, INPUTS * torch.nan), LABELS)


class Answer(nn.Module):
    """A model whose answer goes wrong when it is told to."""

    def __init__(self, wrong: Callable[[Tensor], Any], *, is_wrong: bool = True) -> None:
        super().__init__()
        self.body, self.wrong, self.is_wrong = model(), wrong, is_wrong

    @classmethod
    def around(cls, body: nn.Module) -> "Answer":
        """A model of another class, which is not passed by hand."""
        answer = cls(lambda logits: logits, is_wrong=False)
        answer.body = body
        return answer

    @override
    def forward(self, inputs: Tensor) -> Any:
        logits = self.body(inputs)
        return self.wrong(logits) if self.is_wrong else logits


BAD_ANSWERS: dict[str, tuple[Callable[[Tensor], Any], type[Exception], str]] = {
    "a tuple": (lambda logits: (logits, logits), TypeError, "the model returned a tuple"),
    "a dict": (lambda logits: {"logits": logits}, TypeError, "the model returned a dict"),
    "three dimensions": (lambda logits: logits[:, None], ValueError, r"shape \(\d+, 1, 4\)"),
    "one dimension": (lambda logits: logits[:, 0], ValueError, r"shape \(\d+,\)"),
    "classes instead of logits": (lambda logits: logits.argmax(1), ValueError, "dtype torch.int64"),
    "one class": (lambda logits: logits[:, :1], ValueError, "returned 1 class"),
    "too few rows": (lambda logits: logits[1:], ValueError, r"rows for \d+ examples"),
    "probabilities": (lambda logits: logits.softmax(1), ValueError, "drop the softmax"),
    "NaN": (lambda logits: logits * torch.nan, NonFiniteError, "losses are NaN"),
    "infinity": (lambda logits: logits + torch.inf, NonFiniteError, "losses are NaN"),
}


@pytest.mark.parametrize("name", ["van", "er", "er-p", "er-mir", "gss"])
@pytest.mark.parametrize("what", BAD_ANSWERS)
def test_outputs_that_are_not_logits_are_refused_at_once(what: str, name: str) -> None:
    wrong, error, message = BAD_ANSWERS[what]
    net = Answer(wrong)
    world = method(name, net, sgd(net), capacity=CAPACITY)
    before = fingerprint(world)
    with pytest.raises(error, match=message):
        world.observe(INPUTS, LABELS)
    assert differences(before, fingerprint(world)) == []


@pytest.mark.parametrize("what", [what for what in BAD_ANSWERS if what != "probabilities"])
@pytest.mark.parametrize("name", ["er", "er-mir", "gss"])
def test_outputs_that_stop_being_logits_are_refused(what: str, name: str) -> None:
    wrong, error, message = BAD_ANSWERS[what]
    net = Answer(wrong, is_wrong=False)
    world = run(method(name, net, sgd(net), capacity=CAPACITY), stream(2))
    before = fingerprint(world)
    net.is_wrong = True
    with pytest.raises(error, match=message):
        world.observe(INPUTS, LABELS)
    assert differences(before, fingerprint(world)) == []


HONEST: dict[str, tuple[list[float], int]] = {
    "four equal ones": ([0.25, 0.25], 2),
    "a bias that sums to one": ([0.3, 0.7], 1),
    "a bias that sums to one, four times": ([0.3, 0.7], 4),
}


@pytest.mark.parametrize("what", HONEST)
@pytest.mark.parametrize("wrap", [lambda net: net, lambda net: Answer.around(net)])
def test_logits_of_an_untrained_model_do_not_pass_for_probabilities(
    what: str, wrap: Callable[[nn.Module], nn.Module]
) -> None:
    bias, count = HONEST[what]
    net = nn.Linear(3, 2)
    nn.init.zeros_(net.weight)
    with torch.no_grad():
        net.bias.copy_(torch.tensor(bias))
    world = Learner(wrap(net), sgd(net))
    labels = torch.arange(count) % 2
    for step in range(1, 4):
        assert world.observe(torch.randn(count, 3), labels).step == step


def test_no_fresh_model_is_taken_for_one_that_ends_in_a_softmax() -> None:
    rng = torch.Generator().manual_seed(0)
    weights = torch.empty(200_000, 2, 5).uniform_(-0.45, 0.45, generator=rng)
    inputs = torch.rand(200_000, 5, 1, generator=rng)
    logits = (weights @ inputs).flatten(1)
    looks_like = ((logits.sum(1) - 1).abs() < 1e-4) & (logits >= 0).all(1) & (logits <= 1).all(1)
    suspicious = weights[looks_like], inputs[looks_like]
    assert len(suspicious[0]) > 3  # chance makes some
    for weight, example in zip(*suspicious, strict=True):
        net = nn.Linear(5, 2, bias=False)
        with torch.no_grad():
            net.weight.copy_(weight)
        report = Learner(Answer.around(net), sgd(net)).observe(example.T, torch.tensor([0]))
        assert report.step == 1


HIDDEN_SOFTMAX: dict[str, Callable[[Tensor], Tensor]] = {
    "two views": lambda logits: logits[:, None].softmax(2).squeeze(1).view(-1, logits.shape[1]),
    "a copy in double precision": lambda logits: logits.softmax(1).double().clone(),
    "a clamp": lambda logits: logits.softmax(1).clamp(1e-7, 1),
}


@pytest.mark.parametrize("what", HIDDEN_SOFTMAX)
def test_a_softmax_is_found_behind_what_changes_no_value(what: str) -> None:
    net = Answer(HIDDEN_SOFTMAX[what])
    with pytest.raises(ValueError, match="drop the softmax"):
        Learner(net, sgd(net)).observe(INPUTS, LABELS)


def test_a_softmax_written_by_hand_is_warned_of_once() -> None:
    net = Answer(lambda logits: logits.exp() / logits.exp().sum(1, keepdim=True))
    world = Learner(net, sgd(net))
    with pytest.warns(UserWarning, match="outputs look like probabilities: 5 different rows"):
        world.observe(INPUTS, LABELS)
    world.observe(INPUTS, LABELS)


@pytest.mark.parametrize(
    "loss",
    [
        lambda outputs, labels: nn.functional.cross_entropy(outputs, labels),
        lambda _, labels: torch.zeros(len(labels) + 1, 1),
        lambda *_: 1.0,
    ],
    ids=["mean", "too many rows", "number"],
)
def test_a_loss_that_is_not_one_value_an_example_is_refused(
    loss: Callable[[Tensor, Tensor], Tensor],
) -> None:
    world = learner("er", loss=loss)
    before = fingerprint(world)
    with pytest.raises(ValueError, match=r"`loss` returned .* for 5 examples; return one loss per"):
        world.observe(INPUTS, LABELS)
    assert differences(before, fingerprint(world)) == []


def test_a_transform_that_returns_no_tensor_is_refused() -> None:
    world = learner("er", transform=lambda _: 3)
    before = fingerprint(world)
    with pytest.raises(TypeError, match="`transform` returned a int"):
        world.observe(INPUTS, LABELS)
    assert differences(before, fingerprint(world)) == []


@pytest.mark.parametrize("name", ["van", "er"])
def test_a_model_in_evaluation_mode_is_not_trained(name: str) -> None:
    world = run(learner(name, "batch norm"), stream(2))
    world.model.eval()
    before = fingerprint(world)
    with pytest.raises(ValueError, match=r"evaluation mode; call `model.train\(\)`"):
        world.observe(INPUTS, LABELS)
    assert differences(before, fingerprint(world)) == []


def test_part_of_a_model_may_stay_in_evaluation_mode() -> None:
    world = learner("er", "batch norm")
    norm = next(module for module in world.model.modules() if isinstance(module, nn.BatchNorm2d))
    norm.eval()
    run(world, stream(2))
    assert not norm.training
    assert norm.running_mean is not None
    assert not norm.running_mean.any()


def test_a_batch_larger_than_the_memory_is_learnt_and_fills_it() -> None:
    world = learner("er", capacity=3, replay=2)
    report = world.observe(*stream(1, size=20)[0])
    assert world.memory is not None
    assert (len(world.memory), world.memory.seen, report.seen) == (3, 20, 20)
    assert len(set(world.memory.arrived_at.tolist())) == 3


@pytest.mark.parametrize("name", WITH_MEMORY)
def test_every_method_takes_batches_larger_than_its_memory(name: str) -> None:
    world = run(learner(name, capacity=4, replay=3), stream(4, size=9))
    assert world.memory is not None
    assert (len(world.memory), world.memory.seen, world.seen) == (4, 36, 36)


@pytest.mark.parametrize("name", WITH_MEMORY)
def test_every_method_takes_single_examples(name: str) -> None:
    world = run(learner(name), stream(15, size=1))
    assert world.memory is not None
    assert (world.memory.is_full, world.seen) == (True, 15)


@pytest.mark.parametrize("capacity", [0, -1])
def test_a_memory_without_slots_is_refused(capacity: int) -> None:
    with pytest.raises(ValueError, match=rf"`capacity` is {capacity}; .*'van'"):
        learner("er", capacity=capacity)


@pytest.mark.parametrize("capacity", [2.0, "5", True, None])
def test_a_capacity_that_is_no_whole_number_is_refused(capacity: object) -> None:
    with pytest.raises(TypeError, match=r"`capacity` is .*; pass a whole number"):
        learner("er", capacity=capacity)


@pytest.mark.parametrize("name", WITH_MEMORY)
def test_replaying_more_than_the_memory_holds_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="`replay` is 4, but the memory has 3 slots"):
        learner(name, capacity=3)


@pytest.mark.parametrize("replay", [0, -1, 2.5, True])
def test_a_replay_that_is_no_whole_number_from_one_is_refused(replay: object) -> None:
    with pytest.raises(ValueError, match=r"`replay` is .*; pass a whole number from 1"):
        learner("er", replay=replay)


@pytest.mark.parametrize("iterations", [0, -1, 1.5, True])
def test_iterations_that_are_no_whole_number_from_one_are_refused(iterations: object) -> None:
    with pytest.raises(ValueError, match=r"`iterations` is .*; pass a whole number from 1"):
        learner("er", iterations=iterations)


def test_an_unknown_way_through_the_network_is_refused() -> None:
    with pytest.raises(ValueError, match="`passes` is 'both'; choose one of 'joint', 'separate'"):
        learner("er", passes="both")


@pytest.mark.parametrize("name", ["er", "er-p", "a-gem"])
def test_grouped_passes_need_a_rule_with_groups(name: str) -> None:
    with pytest.raises(ValueError, match=r"PrincipalDirection\(groups="):
        learner(name, passes="grouped")


class Averaging(Rule):
    """A rule of the user's own, with groups."""

    def __init__(self, groups: object) -> None:
        self.groups = cast("int | None", groups)
        self.sizes = list[int]()

    @override
    def __call__(self, gram: Tensor) -> Tensor:
        self.sizes.append(len(gram))
        return torch.ones_like(gram[0])


def test_grouped_passes_take_a_rule_of_ones_own_with_groups() -> None:
    net, rule = model(), Averaging(2)
    run(Learner(net, sgd(net), memory=Memory(CAPACITY), rule=rule, passes="grouped"), stream(3))
    assert rule.sizes == [3, 3]


@pytest.mark.parametrize("groups", [0, 2.0, True, "2"])
def test_groups_that_are_no_whole_number_from_one_are_refused(groups: object) -> None:
    net = model()
    with pytest.raises(ValueError, match=r"`groups` of rule Averaging is .*; .* whole number"):
        Learner(net, sgd(net), rule=Averaging(groups), passes="grouped")


@pytest.mark.parametrize("part", [{"storage": Reservoir()}, {"retrieval": Uniform(3)}])
def test_a_policy_without_a_memory_is_refused(part: dict[str, Any]) -> None:
    net = model()
    with pytest.raises(ValueError, match="`memory` is None, but a storage or retrieval"):
        Learner(net, sgd(net), **part)


def test_a_rule_without_a_memory_has_nothing_to_weigh_and_steps_along_g() -> None:
    net, twin = model(), model()
    run(Learner(net, sgd(net), rule=PrincipalDirection()), stream(3))
    run(Learner(twin, sgd(twin)), stream(3))
    assert all(map(torch.equal, net.parameters(), twin.parameters()))


@pytest.mark.parametrize("seed", [1.0, "3", True, None])
def test_a_seed_that_is_no_whole_number_is_refused(seed: object) -> None:
    net = model()
    with pytest.raises(TypeError, match=r"`seed` is .*; pass a whole number"):
        Learner(net, sgd(net), seed=seed)  # type: ignore[arg-type]


def test_a_numpy_seed_is_the_whole_number_it_holds() -> None:
    seed: Any = np.int64(3)
    first, second = (run(learner("er", seed=chosen), stream(4)) for chosen in (seed, 3))
    assert differences(fingerprint(first), fingerprint(second)) == []


def test_an_optimizer_of_another_model_is_refused() -> None:
    with pytest.raises(ValueError, match="holds none of the model's trainable parameters"):
        Learner(model(), sgd(model()))


def test_an_optimizer_of_frozen_parameters_only_is_refused() -> None:
    net = model().requires_grad_(False)
    with pytest.raises(ValueError, match="holds none of the model's trainable parameters"):
        Learner(net, sgd(net))


def test_parameters_of_others_in_the_optimizer_are_not_moved() -> None:
    net, other = model(), nn.Linear(2, 2)
    before = [parameter.detach().clone() for parameter in other.parameters()]
    both = torch.optim.SGD([*net.parameters(), *other.parameters()], lr=0.1, weight_decay=0.1)
    run(Learner(net, both, memory=Memory(CAPACITY)), stream(3))
    assert all(map(torch.equal, before, other.parameters()))


def test_an_old_gradient_of_a_frozen_parameter_does_not_move_it() -> None:
    net = model()
    frozen = next(net.parameters())
    frozen.grad = torch.ones_like(frozen)
    frozen.requires_grad_(False)
    before = frozen.detach().clone()
    run(Learner(net, sgd(net, momentum=0.9), memory=Memory(CAPACITY)), stream(3))
    assert torch.equal(frozen, before)


def test_an_optimizer_that_evaluates_the_loss_itself_is_refused() -> None:
    net = model()
    with pytest.raises(TypeError, match="`optimizer` is LBFGS"):
        Learner(net, torch.optim.LBFGS(net.parameters()))


def test_an_unknown_method_is_refused_with_the_nearest_name() -> None:
    net = model()
    with pytest.raises(ValueError, match=r"choose one of van, er.*Did you mean 'er-pc-mir'"):
        method("ER_PC_MIR2", net, sgd(net))


def test_an_unknown_option_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(TypeError, match=r"no option `stepsize`.*Did you mean `step_size`"):
        learner("er-p", stepsize=3.0)


def test_finite_losses_whose_sum_overflows_are_learnt_from() -> None:
    large = torch.finfo(torch.float32).max / 2
    world = learner("er", loss=lambda outputs, _: outputs.sum(1) * 0 + large)
    assert world.observe(INPUTS, LABELS).step == 1


@pytest.mark.parametrize("name", ["er", "er-p", "a-gem", "gss"])
def test_a_nan_gradient_where_gradients_are_first_measured_is_named_as_such(name: str) -> None:
    def loss(outputs: Tensor, labels: Tensor) -> Tensor:
        root = (outputs - outputs.detach()).square().sqrt().sum(1)
        return outputs.square().sum(1) + labels * 0 + (root if world.step == 1 else 0)

    world: Learner = learner(name, loss=loss)
    first, second = stream(2)
    world.observe(*first)
    before = fingerprint(world)
    with pytest.raises(NonFiniteError, match="gradient"):
        world.observe(*second)
    assert differences(before, fingerprint(world)) == []
