from functools import lru_cache
from itertools import islice
from pathlib import Path

import pytest
import torch

from recollect.datasets import Examples, LabelledData, load
from recollect.errors import ConfigError
from recollect.experiments.specs import build as building
from recollect.experiments.specs.build import build
from recollect.experiments.specs.cell import cells
from recollect.experiments.specs.configs import config_names, config_path, config_root
from recollect.experiments.specs.spec import load_spec
from recollect.methods import METHODS

PAPER_METHODS = {"van", "er", "er-p", "er-c", "er-pc", "er-mir", "er-pc-mir", "gss"}
CASES = [
    (path, name)
    for path in sorted(config_root().rglob("*.toml"))
    for name in load_spec(path).methods
]


def test_every_benchmark_has_a_spec_with_all_methods_of_the_paper() -> None:
    assert config_names() == (
        "cifar10-split",
        "languages-split",
        "mini-imagenet-split",
        "mnist-permuted",
        "mnist-split",
    )
    for name in config_names():
        assert load_spec(config_path(name)).methods.keys() >= PAPER_METHODS


@pytest.mark.parametrize("path", sorted(config_root().rglob("*.toml")), ids=lambda p: p.stem)
def test_every_value_that_is_not_a_default_says_how_it_was_found(path: Path) -> None:
    spec = load_spec(path)
    if path.parent.name == "optimizers":
        return  # docs/optimizers.md tells how each value was found
    assert spec.optimizer.found
    assert all(m.found for m in spec.methods.values() if m.options and m.base in METHODS)


@pytest.mark.parametrize(("path", "name"), CASES, ids=lambda part: getattr(part, "stem", part))
def test_every_method_of_every_spec_builds_and_runs_two_steps(
    path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Real settings; the images are noise, few and small, so that a ResNet takes two steps at once.
    monkeypatch.setattr(building, "_loaded", noise)
    sizes = ["stream.examples_per_segment=8", "stream.validation_per_segment=0"]
    if "mnist" not in path.stem:
        sizes += ["stream.batch_size=4", "learner.replay=4"]
    (cell,) = cells(load_spec(path, overrides=sizes), methods=[name])
    benchmark, learner = build(cell, seed=0)
    for inputs, labels in islice(benchmark.stream, 2):
        report = learner.observe(inputs, labels)
    assert report.step == 2
    assert learner.passes == cell.learner["passes"]
    assert cell.capacity == (0 if learner.memory is None else learner.memory.capacity)


@lru_cache
def noise(name: str) -> LabelledData:
    if name in ("mnist-embedded", "languages"):
        return load(name)
    num_classes = 10 if name == "cifar10" else 100
    rng = torch.Generator().manual_seed(0)
    shape = (num_classes * 6, 3, 32, 32)
    images = torch.randint(256, shape, generator=rng, dtype=torch.uint8)
    part = Examples(images, torch.arange(len(images)) % num_classes)
    names = tuple(str(label) for label in range(num_classes))
    return LabelledData(name, part, part, names)


def test_an_unknown_benchmark_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="is 'cifar-split'; did you mean `cifar10-split`"):
        config_path("cifar-split")
