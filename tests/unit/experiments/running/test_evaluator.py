from collections.abc import Callable

from recollect.experiments.running.evaluator import Looker
from recollect.experiments.specs.build import build
from recollect.experiments.specs.request import Request


def test_the_few_examples_are_the_same_for_every_method_and_seed(
    request_for: Callable[..., Request],
) -> None:
    # On the test set: validation examples are drawn anew with each seed.
    points = []
    for method, seed in (("er", 0), ("van", 1)):
        cell = request_for(method).cell
        cell.evaluation["on"] = "test"
        benchmark, learner = build(cell, seed)
        looker = Looker(benchmark, cell)
        _, knows_nothing = build(cell, 0)
        del learner
        points.append(looker.point(knows_nothing, 20))
    assert points[0] == points[1]
    assert points[0].total == (10,) * 5


def test_segments_are_met_with_their_first_batch_and_over_with_their_last(
    request_for: Callable[..., Request],
) -> None:
    request = request_for()
    benchmark, _ = build(request.cell, 0)
    looker = Looker(benchmark, request.cell)  # 5 segments of 4 batches
    assert [looker.segment_at(given) for given in (1, 4, 5, 20)] == [0, 0, 1, 4]
    assert [looker.num_over(given) for given in (0, 3, 4, 5, 20)] == [0, 0, 1, 1, 5]
    assert looker.totals() == (20,) * 5
