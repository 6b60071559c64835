import dataclasses

import pytest
import torch
from tests.unit.learner.support import jitter
from torch import Tensor, nn

import recollect
from recollect import METHODS, Learner, Method, method, methods
from recollect.models import mlp, seeded
from recollect.retrieval import MaximallyInterfered, Uniform
from recollect.rules import (
    MGDA,
    AveragedProjection,
    CAGrad,
    ClippedSum,
    GradientSum,
    PCGrad,
    PrincipalDirection,
    UPGrad,
    WeightedSum,
)
from recollect.storage import ClassBalanced, ConfidenceReservoir, GSSGreedy, Reservoir

# The paper's table of methods, and ours.
ROWS = {
    "van": (None, None, GradientSum),
    "er": (Reservoir, Uniform, GradientSum),
    "er-p": (Reservoir, Uniform, PrincipalDirection),
    "er-c": (ConfidenceReservoir, Uniform, GradientSum),
    "er-pc": (ConfidenceReservoir, Uniform, PrincipalDirection),
    "er-mir": (Reservoir, MaximallyInterfered, GradientSum),
    "er-p-mir": (Reservoir, MaximallyInterfered, PrincipalDirection),
    "er-pc-mir": (ConfidenceReservoir, MaximallyInterfered, PrincipalDirection),
    "gss": (GSSGreedy, Uniform, GradientSum),
    "a-gem": (Reservoir, Uniform, AveragedProjection),
    "er-cb": (ClassBalanced, Uniform, GradientSum),
    "er-p-cb": (ClassBalanced, Uniform, PrincipalDirection),
    "er-w": (Reservoir, Uniform, WeightedSum),
    "er-w-mir": (Reservoir, MaximallyInterfered, WeightedSum),
    "er-clip": (Reservoir, Uniform, ClippedSum),
    "er-clip-mir": (Reservoir, MaximallyInterfered, ClippedSum),
    "er-pcgrad": (Reservoir, Uniform, PCGrad),
    "er-mgda": (Reservoir, Uniform, MGDA),
    "er-cagrad": (Reservoir, Uniform, CAGrad),
    "er-upgrad": (Reservoir, Uniform, UPGrad),
}


AUGMENTED = [name for name, row in METHODS.items() if row.augments]


def build(name: str | Method, **options: object) -> Learner:
    model = seeded(lambda: mlp(4, 3), 0)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    if name in AUGMENTED:
        options = {"augment": jitter, **options}
    return method(name, model, sgd, **options)  # type: ignore[arg-type]


def test_the_table_is_the_papers_and_ours() -> None:
    rows = {name: (row.storage, row.retrieval, row.rule) for name, row in METHODS.items()}
    assert rows | ROWS == rows


@pytest.mark.parametrize("name", METHODS)
def test_every_row_builds_a_learner_of_its_parts(name: str) -> None:
    learner = build(name)
    kinds = {part: getattr(learner, part) for part in METHODS[name].kinds}
    built = {part: None if kind is None else type(kind) for part, kind in kinds.items()}
    assert built == METHODS[name].kinds
    assert (learner.memory is None) == (METHODS[name].storage is None)


@pytest.mark.parametrize("name", METHODS)
def test_every_row_learns_from_more_batches_than_its_memory_holds(
    name: str, rng: torch.Generator
) -> None:
    learner = build(name, capacity=6, replay=3)
    before = [p.detach().clone() for p in learner.model.parameters()]
    for _ in range(5):
        learner.observe(torch.rand(4, 4, generator=rng), torch.randint(3, (4,), generator=rng))
    after = list(learner.model.parameters())
    assert not any(torch.equal(old, new) for old, new in zip(before, after, strict=True))
    assert learner.memory is None or learner.memory.is_full


def test_every_method_has_a_line_about_it() -> None:
    assert list(methods()) == list(METHODS)
    assert all(line and "\n" not in line for line in methods().values())


def test_capacity_and_replay_reach_memory_and_retrieval() -> None:
    learner = build("er-mir", capacity=33, replay=7)
    assert learner.memory is not None
    assert learner.memory.capacity == 33
    assert learner.retrieval is not None
    assert learner.retrieval.replay == 7


def test_the_seed_reaches_the_learner() -> None:
    states = [build("er", seed=seed).generators["storage"].get_state() for seed in (1, 1, 2)]
    assert torch.equal(states[0], states[1])
    assert not torch.equal(states[0], states[2])


@pytest.mark.parametrize(
    ("part", "option", "value"),
    [
        ("storage", "pick", "proportional"),
        ("storage", "margin_weight", 0.7),
        ("storage", "margins", "replay"),
        ("storage", "negative", "shift"),
        ("storage", "age_offset", 2.0),
        ("storage", "within_class", True),
        ("retrieval", "candidates", 20),
        ("rule", "step_size", 3.0),
        ("rule", "norm_floor", 0.5),
        ("rule", "target_floor", 0.25),
        ("rule", "steps", 4),
        ("rule", "groups", 2),
        ("rule", "pull", 0.1),
    ],
)
def test_an_option_goes_to_the_part_that_has_it_and_changes_nothing_else(
    part: str, option: str, value: object
) -> None:
    plain, learner = build("er-pc-mir"), build("er-pc-mir", **{option: value})
    for name in ("storage", "retrieval", "rule"):
        expected = getattr(plain, name)
        if name == part:
            expected = dataclasses.replace(expected, **{option: value})
        assert getattr(learner, name) == expected


def test_options_of_the_learner_reach_it() -> None:
    learner = build("er", iterations=3, passes="separate")
    assert (learner.iterations, learner.passes) == (3, "separate")


def test_a_loss_and_a_transform_reach_the_learner(rng: torch.Generator) -> None:
    def squared_error(outputs: Tensor, labels: Tensor) -> Tensor:
        return (outputs[:, 0] - labels).square()

    model = nn.Linear(4, 1)
    learner = method(
        "er",
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        loss=squared_error,
        transform=lambda inputs: inputs / 255,
    )
    images = torch.randint(256, (3, 4), generator=rng, dtype=torch.uint8)
    report = learner.observe(images, torch.rand(3, generator=rng))
    assert report.seen == 3


def test_the_device_of_the_memory_can_be_chosen() -> None:
    learner = build("er", memory_device="cpu:0")
    assert learner.memory is not None
    assert learner.memory.device == torch.device("cpu:0")
    with pytest.raises(ValueError, match="`device` is 'meta', which holds no values"):
        build("er", memory_device="meta")


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("er_pc", "er-pc"), ("ER-MIR", "er-mir"), ("agem", "a-gem"), ("er-pcmir", "er-pc-mir")],
)
def test_an_unknown_name_is_refused_with_all_names_and_the_nearest(name: str, nearest: str) -> None:
    expected = f"`name` is '{name}'; choose one of van, er, .*. Did you mean '{nearest}'\\?"
    with pytest.raises(ValueError, match=expected):
        build(name)


def test_a_name_like_no_other_is_refused_without_a_guess() -> None:
    with pytest.raises(ValueError, match=r"`name` is 'icarl'; choose one of .*er-ema\.$"):
        build("icarl")


def test_an_unknown_option_is_refused_with_the_nearest() -> None:
    with pytest.raises(TypeError, match=r"'er-p' has no option `stepsize`.*mean `step_size`\?"):
        build("er-p", stepsize=1.0)


def test_all_unknown_options_are_named_at_once() -> None:
    with pytest.raises(TypeError, match="has no option `flavour`, `colour`; its options are"):
        build("er", flavour=1, colour=2)


@pytest.mark.parametrize(
    ("name", "option"), [("er", "step_size"), ("er-p", "pick"), ("er-pc", "candidates")]
)
def test_an_option_of_a_part_the_method_does_not_have_is_refused(name: str, option: str) -> None:
    with pytest.raises(TypeError, match=f"method '{name}' has no option `{option}`"):
        build(name, **{option: 1})


def test_an_option_that_a_part_refuses_is_refused_in_its_words() -> None:
    with pytest.raises(ValueError, match="`pick` is 'lowest'; choose one of 'highest'"):
        build("er-c", pick="lowest")


@pytest.mark.parametrize(("capacity", "replay"), [(5, 6), (1, 10)])
def test_a_replay_larger_than_the_memory_is_refused(capacity: int, replay: int) -> None:
    with pytest.raises(ValueError, match=f"`replay` is {replay}, but the memory has {capacity}"):
        build("er", capacity=capacity, replay=replay)


def test_the_names_are_public() -> None:
    assert {"METHODS", "method", "methods"} <= set(recollect.__all__)


def test_a_row_of_ones_own_is_built_like_a_named_one() -> None:
    row = Method("mine", ClassBalanced, MaximallyInterfered, AveragedProjection)
    learner = build(row, capacity=30, replay=5, candidates=7)
    assert isinstance(learner.storage, ClassBalanced)
    assert learner.retrieval == MaximallyInterfered(replay=5, candidates=7)
    assert isinstance(learner.rule, AveragedProjection)
    with pytest.raises(TypeError, match="method of your own has no option `step_size`"):
        build(row, step_size=3.0)
