"""The engine against one backward pass per example, on the same graph, dropout and all."""

import warnings
from collections.abc import Sequence

import pytest
import torch
from tests.unit.gradients.architectures import ARCHITECTURES, EXAMPLES, WITHOUT_FORMULA, build
from torch import Tensor, nn
from torch.nn import functional as F

from recollect.gradients import GradientEngine, Groups, Objective, gram_of, one_by_one
from recollect.gradients.formulas import table

PASSES = 3  # the first makes a plan, later ones follow it


def engine_of(model: nn.Module) -> GradientEngine:
    return GradientEngine(model, {n: p for n, p in model.named_parameters() if p.requires_grad})


def distances(
    engine: GradientEngine, inputs: Tensor, labels: Tensor, sizes: Sequence[int]
) -> tuple[float, float]:
    """Return how far inner products, and a weighted sum, are from those of the oracle."""
    losses = F.cross_entropy(
        engine.model(inputs).float().to(_kind(engine)), labels, reduction="none"
    )
    groups = Groups(tuple(sizes))
    rows = {n: groups.sum(g) for n, g in one_by_one(losses, engine.parameters).items()}
    scales = losses.new_ones(len(groups))
    measured = engine.measure(Objective(losses, torch.ones_like(losses), groups, scales))
    with torch.no_grad():
        gram, expected = measured.gram(), gram_of(list(rows.values()))
        weights = torch.linspace(-1, 2, len(groups), dtype=losses.dtype)
        combined = measured.combine(weights)
        totals = {name: torch.tensordot(weights, found, 1) for name, found in rows.items()}
    missing = torch.zeros(())
    apart = sum(float((combined.get(n, missing) - t).square().sum()) for n, t in totals.items())
    whole = sum(float(total.square().sum()) for total in totals.values())
    return float((gram - expected).norm() / expected.norm()), (apart / whole) ** 0.5


def _kind(engine: GradientEngine) -> torch.dtype:
    return next(iter(engine.parameters.values())).dtype


@pytest.mark.parametrize("sizes", [(1,) * EXAMPLES, (3, 1, 1, 1)])
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_gradients_by_example_are_those_of_the_oracle(name: str, sizes: tuple[int, ...]) -> None:
    model, inputs, labels = build(ARCHITECTURES[name])
    engine = engine_of(model)
    for _ in range(PASSES):
        with warnings.catch_warnings():
            if name in WITHOUT_FORMULA:
                warnings.filterwarnings("ignore", message=f".*{WITHOUT_FORMULA[name]}.*")
            assert max(distances(engine, inputs, labels, sizes)) < 1e-9
    assert not engine.taken_apart


@pytest.mark.parametrize("name", [name for name in ARCHITECTURES if name not in WITHOUT_FORMULA])
def test_so_they_are_in_single_precision(name: str) -> None:
    model, inputs, labels = build(ARCHITECTURES[name], torch.float32)
    engine = engine_of(model)
    for _ in range(PASSES):
        assert max(distances(engine, inputs, labels, (1,) * EXAMPLES)) < 1e-4


@pytest.mark.parametrize("name", ["encoder", "attention", "gru", "convolutions", "experts"])
def test_so_they_are_for_batches_of_any_size(name: str) -> None:
    model, inputs, labels = build(ARCHITECTURES[name])
    engine = engine_of(model)
    for size in (1, 4, 2, EXAMPLES, 1, 3):
        assert max(distances(engine, inputs[:size], labels[:size], (1,) * size)) < 1e-9


def test_so_they_are_for_sequences_of_any_length() -> None:
    model, inputs, labels = build(ARCHITECTURES["encoder, sequence first"])
    engine = engine_of(model)
    for length in (6, 3, EXAMPLES, 1, 5):
        assert max(distances(engine, inputs[:, :length], labels, (1,) * EXAMPLES)) < 1e-9


def test_one_warning_names_a_node_without_a_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(table._FORMULAS, "WaveBackward", raising=False)  # an example adds it
    model, inputs, labels = build(ARCHITECTURES["custom function"])
    engine = engine_of(model)
    with pytest.warns(UserWarning, match=r"`WaveBackward`.*no formula.*\d+% of this"):
        distances(engine, inputs, labels, (1,) * EXAMPLES)
    distances(engine, inputs, labels, (1,) * EXAMPLES)  # says nothing more


def test_a_warning_names_the_layer_of_a_node_without_a_formula() -> None:
    model, inputs, labels = build(ARCHITECTURES["bilinear"])
    with pytest.warns(UserWarning, match="`TrilinearBackward0` in layer `both`"):
        distances(engine_of(model), inputs, labels, (1,) * EXAMPLES)


def test_measuring_draws_nothing_from_torchs_generator() -> None:
    model, inputs, labels = build(ARCHITECTURES["encoder"])
    engine = engine_of(model)
    for _ in range(PASSES):
        losses = F.cross_entropy(model(inputs), labels, reduction="none")
        before = torch.get_rng_state()
        ones = torch.ones_like(losses)
        engine.measure(Objective(losses, ones, Groups((1,) * EXAMPLES), ones)).gram()
        assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("dtype", [torch.bfloat16])
@pytest.mark.parametrize("name", ["encoder", "attention", "convolutions"])
def test_under_autocast_they_are_the_oracles_up_to_its_rounding(
    name: str, dtype: torch.dtype
) -> None:
    model, inputs, labels = build(ARCHITECTURES[name], torch.float32)

    class Cast(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = model

        def forward(self, x: Tensor) -> Tensor:
            with torch.autocast("cpu", dtype=dtype, cache_enabled=False):
                return self.inner(x)

    engine = engine_of(Cast())
    for _ in range(PASSES):
        assert max(distances(engine, inputs, labels, (1,) * EXAMPLES)) < 0.02
    assert not engine.taken_apart
