"""Which part of a CRS score decides: worked values, and what the table says."""

import pytest
import torch
from studies.crs.scores import look, scores_table
from tests.unit.storage.test_confidence_reservoir import scored_memory

from recollect.storage import ConfidenceReservoir


def test_scores_are_taken_apart() -> None:
    # Ages 10, 5, 2; EX .4, .2, .5; MI .1, 3, -1, at c = 0.1 .01, .3, -.1; S .41, .5, .4.
    mean_age = 17 / 3
    s1 = look(ConfidenceReservoir(pick="highest", margin_weight=0.1), scored_memory())
    assert s1["sd_rates"] == pytest.approx(torch.tensor([0.4, 0.2, 0.5]).std().item())
    assert s1["sd_margins"] == pytest.approx(torch.tensor([0.01, 0.3, -0.1]).std().item())
    assert s1["never_leave"] == 0
    assert s1["age_by_score"] == pytest.approx(5 / mean_age)
    assert s1["age_by_rates"] == pytest.approx(2 / mean_age)
    assert s1["age_by_margins"] == pytest.approx(5 / mean_age)
    s2 = look(ConfidenceReservoir(pick="proportional", margin_weight=0.1), scored_memory())
    assert s2["age_by_score"] == pytest.approx((4.1 + 2.5 + 0.8) / 1.31 / mean_age, rel=1e-6)
    assert s2["age_by_margins"] == pytest.approx((0.1 + 1.5) / 0.31 / mean_age, rel=1e-6)


def test_scores_below_zero_never_leave_under_s2() -> None:
    s2 = look(ConfidenceReservoir(pick="proportional", margin_weight=1.0), scored_memory())
    assert s2["never_leave"] == pytest.approx(1 / 3)  # EX .5 and MI -1
    memory = scored_memory()
    memory.margin_increment[:] = -10
    none = look(ConfidenceReservoir(pick="proportional", margin_weight=1.0), memory)
    assert (none["never_leave"], none["age_by_score"]) == (1, 1)  # the draw is alike


def test_the_table_has_means_over_seeds_and_says_what_is_missing() -> None:
    seen = look(ConfidenceReservoir(pick="highest"), scored_memory())
    rows = [
        {"study": "cifar10-split", "reading": "s1-replay", "seed": seed, **seen, "never_leave": x}
        for seed, x in ((0, 0.1), (1, 0.3))
    ]
    table = scores_table(rows).splitlines()[2:]
    assert sum("not yet run" in line for line in table) == 5
    (line,) = (line for line in table if "not yet run" not in line)
    assert line.startswith("| CIFAR10-S | s1, MI at replay | 2 | 0.153 | 0.207 | 20 % | 0.88 |")
