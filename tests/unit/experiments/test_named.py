"""Optimizers, schedules, augmentations and numbers that a spec names: checked, built, continued."""

from itertools import count
from pathlib import Path

import pytest
import torch

from recollect.augment import AUGMENTATIONS as CALLED
from recollect.augment import Compose, RandomCrop, RandomFlip
from recollect.choices import AUGMENTATIONS, MODELS, OPTIMIZERS
from recollect.errors import ConfigError
from recollect.experiments.records.compare_records import without_times
from recollect.experiments.running.execute import Stopped, execute
from recollect.experiments.specs.build import build, build_schedule
from recollect.experiments.specs.cell import Cell, cells
from recollect.experiments.specs.named.optimizer import optimizers, schedules
from recollect.experiments.specs.named.options import read_options
from recollect.experiments.specs.named.precision import casting
from recollect.experiments.specs.named.signatures import parameters_of
from recollect.experiments.specs.request import requests
from recollect.experiments.specs.spec import load_spec
from recollect.models import BUILDERS


def cell_of(spec: Path, *overrides: str, method: str = "er") -> Cell:
    (cell,) = cells(load_spec(spec, overrides=overrides), methods=[method])
    return cell


def problems_of(spec: Path, *overrides: str) -> dict[str, str]:
    with pytest.raises(ConfigError) as raised:
        load_spec(spec, overrides=overrides)
    return dict(raised.value.problems)


def test_any_optimizer_of_torch_is_named_with_its_options(small_spec: Path) -> None:
    given = ["optimizer.name=adamw", "optimizer.betas=[0.8, 0.99]", "optimizer.weight_decay=0.1"]
    cell = cell_of(small_spec, *given)
    assert cell.optimizer == {
        "name": "AdamW", "lr": 0.001, "betas": [0.8, 0.99], "weight_decay": 0.1,
    }  # fmt: skip
    optimizer = build(Cell.from_json(cell.canonical_json), 0)[1].optimizer
    assert type(optimizer) is torch.optim.AdamW
    assert optimizer.param_groups[0]["betas"] == (0.8, 0.99)
    assert optimizer.param_groups[0]["lr"] == 0.001  # torch's own: the protocol's is SGD's


def test_a_default_that_is_said_leaves_the_hash_alone(small_spec: Path) -> None:
    plain = cell_of(small_spec, "optimizer.name=AdamW")
    said = cell_of(
        small_spec, "optimizer.name=AdamW", "optimizer.eps=1e-8", "optimizer.lr=1e-3",
        "learner.augment=[]", "learner.dtype=float32",
    )  # fmt: skip
    assert said.spec_hash == plain.spec_hash
    usual = cell_of(small_spec)
    assert cell_of(small_spec, "optimizer.name=SGD", "optimizer.nesterov=false") == usual


def test_the_first_optimizers_take_all_their_options(small_spec: Path) -> None:
    given = ["optimizer.momentum=0.9", "optimizer.nesterov=true"]
    group = build(cell_of(small_spec, *given), 0)[1].optimizer.param_groups[0]
    assert (group["momentum"], group["nesterov"]) == (0.9, True)
    amsgrad = build(cell_of(small_spec, "optimizer.name=adam", "optimizer.amsgrad=true"), 0)[1]
    assert amsgrad.optimizer.param_groups[0]["amsgrad"] is True


@pytest.mark.parametrize(
    ("overrides", "path", "rule"),
    [
        (["optimizer.name=AdamX"], "optimizer.name", "did you mean `Adam"),
        (["optimizer.name=adamw", "optimizer.beta=1"], "optimizer.beta", "did you mean `betas`"),
        (["optimizer.name=adamw", "optimizer.amsgrad=3"], "optimizer.amsgrad", "should be a bool"),
        (["optimizer.name=adamw", "optimizer.eps=-1.0"], "optimizer.eps", "Invalid epsilon"),
        (
            ["optimizer.nesterov=true"],
            "optimizer.nesterov",
            "Nesterov momentum requires a momentum",
        ),
        (["optimizer.name=LBFGS"], "optimizer", "closure"),
        (["optimizer.name=SparseAdam"], "optimizer", "dense"),
        (["scheduler.gamma=0.5"], "scheduler.name", "is missing"),
        (["scheduler.name=StepL"], "scheduler.name", "did you mean `StepLR`"),
        (["scheduler.name=StepLR"], "scheduler.step_size", "is missing; StepLR needs it"),
        (["scheduler.name=StepLR", "scheduler.step_size=x"], "scheduler.step_size", "an integer"),
        (["scheduler.name=LambdaLR", "scheduler.lr_lambda=x"], "scheduler.lr_lambda", "callable"),
        (["learner.augment=RandomFlip"], "learner.augment", "write a list such as"),
        (["learner.augment=['RandomFlop']"], "learner.augment.0", "did you mean `RandomFlip`"),
        (
            ["methods.er.augment=[{name='RandomFlip', share=2}]"],
            "methods.er.augment.0.share",
            "at most 1",
        ),
        (["learner.dtype=float16"], "learner.dtype", "'float32', 'bfloat16' or 'float64'"),
        (["model.name=reduced-resnet"], "model.name", "did you mean `reduced-resnet18`"),
        (["model.name=mlp", "model.hidden=[0]"], "model.hidden", "at least 1 each"),
    ],
)
def test_each_mistake_is_said_at_its_place(
    small_spec: Path, overrides: list[str], path: str, rule: str
) -> None:
    problems = problems_of(small_spec, *overrides)
    assert path in problems
    assert rule in problems[path]
    assert len(problems) == 1


def test_five_mistakes_in_what_is_named_are_five_problems(small_spec: Path) -> None:
    problems = problems_of(
        small_spec,
        "optimizer.name=adamw", "optimizer.ep=1", "scheduler.name=StepLR", "model.name=mpl",
        "learner.augment=['Flip']", "methods.er.replay=0",
    )  # fmt: skip
    assert set(problems) == {
        "optimizer.ep", "scheduler.step_size", "model.name", "learner.augment.0",
        "methods.er.replay",
    }  # fmt: skip


OPTIONS = {
    "ConstantLR": [],
    "CosineAnnealingLR": ["T_max=stream"],
    "CosineAnnealingWarmRestarts": ["T_0=5"],
    "CyclicLR": ["base_lr=0.01", "max_lr=0.1", "step_size_up=5", "cycle_momentum=false"],
    "ExponentialLR": ["gamma=0.9"],
    "LinearLR": ["total_iters=8"],
    "MultiStepLR": ["milestones=[3, 12]"],
    "OneCycleLR": ["max_lr=0.1", "total_steps=stream"],
    "PolynomialLR": ["total_iters=15"],
    "ReduceLROnPlateau": ["patience=1"],
    "StepLR": ["step_size=4"],
}
NOT_SAID_IN_A_SPEC = {"ChainedScheduler", "LambdaLR", "MultiplicativeLR", "SequentialLR", "SWALR"}


def test_every_schedule_of_this_torch_is_known_of() -> None:
    assert schedules().keys() - NOT_SAID_IN_A_SPEC == OPTIONS.keys()


@pytest.mark.parametrize("name", OPTIONS)
def test_a_run_with_a_schedule_goes_on_where_it_was_to_the_bit(
    name: str, small_spec: Path, tmp_path: Path
) -> None:
    given = [f"scheduler.{option}" for option in OPTIONS[name]]
    given += ["optimizer.name=adamw", f"scheduler.name={name}", "optimizer.lr=0.01"]
    (request,) = requests([cell_of(small_spec, *given)], [0])
    asked = count(1)
    with pytest.raises(Stopped):
        execute(request, checkpoints=tmp_path / "place", should_stop=lambda: next(asked) >= 11)
    continued = execute(request, checkpoints=tmp_path / "place")
    assert continued.num_resumes == 1
    undisturbed = execute(request)
    assert undisturbed.error is None
    assert without_times(continued) == without_times(undisturbed)
    assert undisturbed.spec_hash != cell_of(small_spec, *given[-3:-2], given[-1]).spec_hash


def test_the_rate_follows_the_schedule_batch_by_batch(small_spec: Path) -> None:
    given = ["scheduler.name=StepLR", "scheduler.step_size=2", "scheduler.gamma=0.5"]
    cell = cell_of(small_spec, *given, "optimizer.lr=0.4")
    built, learner = build(cell, 0)
    schedule = build_schedule(cell, built, learner)
    assert schedule is not None
    rates = []
    for inputs, labels in list(built.stream)[:5]:
        rates.append(learner.optimizer.param_groups[0]["lr"])
        schedule.after_batch(learner.observe(inputs, labels).loss)
    assert rates == [0.4, 0.4, 0.2, 0.2, 0.1]


def test_the_stream_is_as_long_as_the_schedule_is_told(small_spec: Path) -> None:
    cell = cell_of(small_spec, "scheduler.name=CosineAnnealingLR", "scheduler.T_max=stream")
    assert cell.scheduler == {"name": "CosineAnnealingLR", "T_max": "stream"}
    built, learner = build(cell, 0)
    schedule = build_schedule(cell, built, learner)
    assert schedule is not None
    for inputs, labels in built.stream:
        schedule.after_batch(learner.observe(inputs, labels).loss)
    assert learner.optimizer.param_groups[0]["lr"] == pytest.approx(0.0, abs=1e-12)


def test_augmentations_reach_the_learner_in_their_order(small_spec: Path) -> None:
    given = "learner.augment=[{name='RandomCrop', padding=2}, 'RandomFlip']"
    cell = cell_of(small_spec, given, "methods.er-pc-mir.augment=[]")
    assert cell.learner["augment"] == [
        {"name": "RandomCrop", "padding": 2}, {"name": "RandomFlip", "share": 0.5},
    ]  # fmt: skip
    augment = build(Cell.from_json(cell.canonical_json), 0)[1]._preparation.augment
    assert isinstance(augment, Compose)
    assert augment.steps == (RandomCrop(padding=2), RandomFlip())
    without = cell_of(small_spec, given, "methods.er-pc-mir.augment=[]", method="er-pc-mir")
    assert "augment" not in without.learner


@pytest.mark.parametrize(("dtype", "weights"), [("float64", "float64"), ("bfloat16", "float32")])
def test_a_run_in_other_numbers_is_another_run_and_goes_on_to_the_bit(
    dtype: str, weights: str, small_spec: Path, tmp_path: Path
) -> None:
    cell = cell_of(small_spec, f"learner.dtype={dtype}")
    _, learner = build(cell, 0)
    assert {str(p.dtype) for p in learner.model.parameters()} == {f"torch.{weights}"}
    (request,) = requests([cell], [0])
    asked = count(1)
    with pytest.raises(Stopped):
        execute(request, checkpoints=tmp_path / "place", should_stop=lambda: next(asked) >= 9)
    continued = execute(request, checkpoints=tmp_path / "place")
    assert continued.num_resumes == 1
    assert without_times(continued) == without_times(execute(request))
    usual = execute(requests([cell_of(small_spec)], [0])[0])
    assert usual.spec_hash != continued.spec_hash


def test_bfloat16_rounds_what_is_computed_from_the_first_step_on(small_spec: Path) -> None:
    losses = []
    for dtype in ("float32", "float64", "bfloat16"):
        built, learner = build(cell_of(small_spec, f"learner.dtype={dtype}"), 0)
        with casting(dtype)():
            losses.append(learner.observe(*next(built.stream)).loss)
    exact, double, rounded = losses
    assert exact == pytest.approx(double, rel=1e-6)
    assert exact != double
    assert rounded == pytest.approx(double, rel=1e-2)
    assert rounded != pytest.approx(double, rel=1e-5)


def test_what_is_told_of_augmentations_and_models_is_what_they_are() -> None:
    assert AUGMENTATIONS.keys() == CALLED.keys()
    for name, called in CALLED.items():
        defaults = {key: p.default for key, p in parameters_of(called).items()}
        assert {key: o.default for key, o in AUGMENTATIONS[name].items()} == defaults
    for name, kind in (("sgd", torch.optim.SGD), ("adam", torch.optim.Adam)):
        known = parameters_of(kind, given=("params", "lr"))
        # What an older torch has is told of here; torch itself tells of what is newer.
        assert set(OPTIMIZERS[name]) >= known.keys()
    assert MODELS.keys() == BUILDERS.keys()
    for name, options in MODELS.items():
        defaults = {key: p.default for key, p in parameters_of(BUILDERS[name]).items()}
        assert {key: option.default for key, option in options.items()}.items() <= defaults.items()


def test_every_optimizer_that_steps_by_itself_is_taken(small_spec: Path) -> None:
    refused = set()
    for name in optimizers():
        try:
            load_spec(small_spec, overrides=[f"optimizer.name={name}"])
        except ConfigError:
            refused.add(name)
    assert refused == {"LBFGS", "Muon", "SparseAdam"}


def test_options_are_given_back_with_their_defaults() -> None:
    assert read_options({"width": 5}, MODELS["reduced-resnet18"]) == (
        {"norm": "batch", "width": 5},
        [],
    )
