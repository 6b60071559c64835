import pytest
import torch
from tests.unit.rules.vectors import random_gradients, target_of

from recollect.rules import ClippedSum, PrincipalDirection, WeightedSum


def test_the_target_adds_clipped_gradients() -> None:
    gradients = random_gradients(0)
    clipped = [g * min(1.0, 2.0 / float(g.norm())) for g in gradients[1:]]
    expected = gradients[0] + 7.0 * torch.stack(clipped).mean(0)
    assert any(g.norm() > 2 for g in gradients[1:])
    torch.testing.assert_close(target_of(ClippedSum(7.0, clip=2.0), gradients), expected)


def test_no_replayed_gradient_counts_for_more_than_its_clip() -> None:
    gradients = 1000 * random_gradients(2)
    moved = target_of(ClippedSum(3.0, clip=0.5), gradients) - gradients[0]
    assert float(moved.norm()) <= 3.0 * 0.5 + 1e-9


def test_a_clip_beyond_all_lengths_leaves_a_weighted_sum() -> None:
    gram = random_gradients(1) @ random_gradients(1).T
    torch.testing.assert_close(ClippedSum(4.0, clip=1e6)(gram), WeightedSum(4.0)(gram))


def test_it_is_pgd_below_the_floor_but_for_the_sigmoid() -> None:
    gradients = random_gradients(3)
    gram = gradients @ gradients.T
    lengths = gram.diagonal().sqrt()
    floor = 2 * float(lengths[0])  # |g| is below it, so f does not see where w points
    pgd = PrincipalDirection(step_size=6.0, norm_floor=1.5, target_floor=floor)(gram)
    weight = 6.0 * (len(gram) - 1) / (floor * 1.5)
    clipped = ClippedSum(weight, clip=1.5)(gram)
    torch.testing.assert_close(pgd[1:], clipped[1:] * lengths[1:].sigmoid())
    assert pgd[0] == clipped[0] == 1


@pytest.mark.parametrize(("name", "value"), [("replay_weight", 0.0), ("clip", float("inf"))])
def test_settings_that_clip_nothing_or_everything_are_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=rf"`{name}` is .*; pass a finite number above 0"):
        ClippedSum(**{name: value})
