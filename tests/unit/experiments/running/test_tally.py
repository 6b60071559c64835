import json
from collections import Counter

import pytest
import torch

from recollect import method
from recollect.experiments.running.tally import Tally
from recollect.models import mlp, seeded


def fed(num_steps: int, *, catch_up_every: int | None = None) -> Tally:
    """A tally of a small run; `catch_up_every` counts at other moments than usual."""
    model = seeded(lambda: mlp(3, 4), 0)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    learner = method("er-c", model, sgd, capacity=10, replay=4)
    rng = torch.Generator().manual_seed(0)
    tally = Tally()
    for step in range(1, num_steps + 1):
        inputs = torch.randn(5, 3, generator=rng)
        labels = torch.randint(4, (5,), generator=rng)
        tally.count_step(
            learner.observe(inputs, labels), labels, seconds=step / 1e6, learn_seconds=0.5
        )
        if catch_up_every is not None and step % catch_up_every == 0:
            tally = Tally.from_dict(json.loads(json.dumps(tally.as_dict())))
        if step % 30 == 0:
            tally.look_into_memory(learner)
    return tally


def test_counts_do_not_depend_on_when_the_run_was_saved() -> None:
    usual = fed(100).as_dict()
    assert usual == fed(100, catch_up_every=1).as_dict() == fed(100, catch_up_every=7).as_dict()
    assert usual["prequential_total"] == 500


def test_a_look_starts_the_count_of_those_who_left_anew() -> None:
    tally = fed(90)
    assert len(tally.memory) == 3
    assert tally.evicted == Counter()
    first = tally.memory[0]
    assert first.seen == 150
    assert sum(first.counts) == 10
    assert list(first.classes) == sorted(first.classes)
    assert first.age_quantiles == tuple(sorted(first.age_quantiles))
    assert first.evicted_mean_age is not None
    assert first.evicted_mean_score is not None


def test_step_seconds_are_quantiles() -> None:
    assert fed(101).step_seconds() == pytest.approx((51e-6, 91e-6, 100e-6), abs=1.1e-6)
    assert Tally().step_seconds() == (0.0, 0.0, 0.0)
