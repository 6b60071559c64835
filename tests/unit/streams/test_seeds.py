from typing import Any

import pytest
import torch

from recollect.streams import derived_generator


def _draws(seed: int, *purpose: str | int) -> list[int]:
    drawn: list[int] = torch.randperm(1000, generator=derived_generator(seed, *purpose)).tolist()
    return drawn


def test_the_same_seed_and_purpose_draw_the_same_numbers() -> None:
    assert _draws(3, "order", 1) == _draws(3, "order", 1)


@pytest.mark.parametrize(
    "other", [(4, "order", 1), (3, "subset", 1), (3, "order", 2), (3, "order", "1")]
)
def test_any_other_seed_or_purpose_draws_other_numbers(other: tuple[int, str, int | str]) -> None:
    assert _draws(3, "order", 1) != _draws(*other)


def test_the_numbers_are_the_same_in_every_process_and_release() -> None:
    # Golden: a change here changes every stream of every published run.
    generator = derived_generator(0, "order", "classes 0, 1")
    assert generator.initial_seed() == 7748215148412676335


def test_global_randomness_is_left_alone() -> None:
    before = torch.random.get_rng_state()
    _draws(0, "order")
    assert torch.equal(before, torch.random.get_rng_state())


def test_a_seed_that_is_not_a_whole_number_is_refused() -> None:
    seed: Any = 0.5
    with pytest.raises(TypeError, match="float"):
        derived_generator(seed, "order")


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(ValueError, match="`seed` is -1"):
        derived_generator(-1, "order")
