import pytest
import torch

from recollect.models import mlp, reduced_resnet18, seeded


def test_the_mlp_has_the_papers_widths() -> None:
    shapes = [tuple(p.shape) for p in mlp().parameters() if p.ndim == 2]
    assert shapes == [(100, 784), (100, 100), (10, 100)]


@pytest.mark.parametrize(("image_size", "classes", "head"), [(32, 10, 160), (84, 100, 640)])
def test_the_reduced_resnet_fits_both_benchmarks(image_size: int, classes: int, head: int) -> None:
    model = reduced_resnet18(classes, image_size=image_size)
    assert model.head.in_features == head
    assert model(torch.zeros(2, 3, image_size, image_size)).shape == (2, classes)


def test_the_reduced_resnet_has_the_size_known_from_the_literature() -> None:
    assert sum(p.numel() for p in reduced_resnet18().parameters()) == 1_094_750


def test_a_seed_fixes_the_weights_and_leaves_global_randomness_alone() -> None:
    before = torch.random.get_rng_state()
    first, second, third = (seeded(mlp, seed) for seed in (1, 1, 2))
    assert torch.equal(before, torch.random.get_rng_state())
    pairs = list(zip(first.parameters(), second.parameters(), strict=True))
    assert all(torch.equal(a, b) for a, b in pairs)
    assert not torch.equal(next(first.parameters()), next(third.parameters()))


def test_too_small_an_image_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 25"):
        reduced_resnet18(image_size=16)
