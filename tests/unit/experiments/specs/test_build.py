from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from recollect.datasets import Examples, LabelledData
from recollect.experiments.specs import build as building
from recollect.experiments.specs.build import build
from recollect.experiments.specs.cell import cells
from recollect.experiments.specs.request import Request
from recollect.experiments.specs.spec import load_spec


def test_the_model_a_spec_names_is_the_benchmarks_own_to_the_bit(small_spec: Path) -> None:
    (usual,) = cells(load_spec(small_spec), methods=["er"])
    (named,) = cells(load_spec(small_spec, overrides=["model.name=mlp"]), methods=["er"])
    own, same = (build(cell, seed=3)[1].model.state_dict() for cell in (usual, named))
    assert all(torch.equal(own[key], same[key]) for key in own)


def test_hidden_widths_are_the_specs(small_spec: Path) -> None:
    overrides = ["model.name=mlp", "model.hidden=[7]"]
    (cell,) = cells(load_spec(small_spec, overrides=overrides), methods=["er"])
    shapes = [tuple(p.shape) for p in build(cell, seed=0)[1].model.parameters()]
    assert shapes == [(7, 784), (7,), (10, 7), (10,)]


@pytest.mark.parametrize(
    ("overrides", "kind", "setting"),
    [
        (["optimizer.momentum=0.5", "optimizer.weight_decay=0.1"], torch.optim.SGD, "momentum"),
        (["optimizer.name=adam", "optimizer.lr=0.01"], torch.optim.Adam, "lr"),
    ],
)
def test_the_optimizer_is_the_specs(
    small_spec: Path, overrides: list[str], kind: type, setting: str
) -> None:
    (cell,) = cells(load_spec(small_spec, overrides=overrides), methods=["er"])
    optimizer = build(cell, seed=0)[1].optimizer
    assert type(optimizer) is kind
    assert optimizer.param_groups[0][setting] == cell.optimizer[setting]


def test_every_method_meets_the_same_stream_and_the_same_weights(
    request_for: Callable[..., Request],
) -> None:
    first, second = (build(request_for(method).cell, 5) for method in ("er", "gss"))
    assert first[0].stream.fingerprint == second[0].stream.fingerprint
    weights = [next(learner.model.parameters()) for _, learner in (first, second)]
    assert torch.equal(weights[0], weights[1])


def test_group_norm_takes_the_place_of_batch_norm(small_spec: Path) -> None:
    images = torch.zeros(40, 3, 32, 32, dtype=torch.uint8)
    part = Examples(images, torch.arange(40) % 10)
    data = LabelledData("noise", part, part, tuple("0123456789"))
    overrides = ["model.name=reduced-resnet18", "model.norm=group"]
    (cell,) = cells(load_spec(small_spec, overrides=overrides), methods=["er"])
    stream = SimpleNamespace(examples=data.train)
    built = SimpleNamespace(num_classes=10, stream=stream, transform=lambda images: images)
    kinds = {type(module) for module in building._model(cell, built, 0).modules()}  # type: ignore[arg-type]
    assert torch.nn.GroupNorm in kinds
    assert torch.nn.BatchNorm2d not in kinds


def test_only_the_first_segments_are_built_if_so_asked(small_spec: Path) -> None:
    (whole,), (first,) = (
        cells(load_spec(small_spec, overrides=overrides), methods=["er"])
        for overrides in ([], ["stream.num_segments=2"])
    )
    names = [segment.name for segment in build(whole, 0)[0].segments]
    assert [segment.name for segment in build(first, 0)[0].segments] == names[:2] != names
