import pytest
import torch
from tests.unit.rules.vectors import random_gradients, target_of

from recollect.rules import AveragedProjection

SEEDS = range(20)


def test_a_gradient_that_agrees_with_the_reference_is_taken_as_it_is() -> None:
    gram = torch.tensor([[1.0, 0.5, -0.2], [0.5, 1.0, 0.0], [-0.2, 0.0, 1.0]])
    assert AveragedProjection()(gram).tolist() == [1.0, 0.0, 0.0]


def test_a_conflicting_gradient_loses_its_part_along_the_reference() -> None:
    # g = (1, 0); g_1 = (-2, 0), g_2 = (0, 2), so g_ref = (-1, 1) and w = g + g_ref / 2.
    gradients = torch.tensor([[1.0, 0.0], [-2.0, 0.0], [0.0, 2.0]], dtype=torch.float64)
    torch.testing.assert_close(
        target_of(AveragedProjection(), gradients), torch.tensor([0.5, 0.5]).double()
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_the_target_never_points_against_the_reference(seed: int) -> None:
    gradients = random_gradients(seed)
    reference = gradients[1:].mean(0)
    assert target_of(AveragedProjection(), gradients) @ reference >= -1e-12


@pytest.mark.parametrize("seed", SEEDS)
def test_no_other_vector_that_agrees_with_the_reference_is_closer_to_the_incoming_gradient(
    seed: int,
) -> None:
    # w is the projection of g onto the half space <v, g_ref> >= 0 exactly if
    # <g - w, v - w> <= 0 for every v in it.
    gradients = random_gradients(seed)
    incoming, reference = gradients[0], gradients[1:].mean(0)
    target = target_of(AveragedProjection(), gradients)
    rng = torch.Generator().manual_seed(seed)
    tried = 5 * torch.randn(500, len(reference), generator=rng, dtype=torch.float64)
    allowed = tried[tried @ reference >= 0]
    assert len(allowed) > 100
    assert ((allowed - target) @ (incoming - target)).max() <= 1e-12


def test_the_seeds_above_cover_both_agreement_and_conflict() -> None:
    agreements = [
        bool(gradients[0] @ gradients[1:].mean(0) >= 0)
        for gradients in (random_gradients(seed) for seed in SEEDS)
    ]
    assert 5 <= sum(agreements) <= 15


@pytest.mark.parametrize("seed", range(50))
def test_replayed_gradients_that_cancel_leave_the_incoming_one_alone(seed: int) -> None:
    # In float32 the mean of two opposite gradients has no length left, only rounding, and a
    # quotient of two roundings must not steer the model.
    rng = torch.Generator().manual_seed(seed)
    incoming, replayed = torch.randn(2, 500, generator=rng)
    gradients = torch.stack((incoming, replayed, -replayed * (1 + 1e-7)))
    target = target_of(AveragedProjection(), gradients)
    torch.testing.assert_close(target, incoming)
