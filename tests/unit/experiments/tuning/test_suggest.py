"""Which settings come next is a function of the trial's number and of the trials behind it."""

import random

from tests.unit.experiments.tuning.conftest import MakePlan

from recollect.experiments.tuning.pruning import bars
from recollect.experiments.tuning.suggest import STARTUP, Past, suggest, visible


def history(plan_of: MakePlan, count: int, *, best: float) -> list[Past]:
    """Trials whose accuracy falls with the distance of their rate from the best one."""
    search = plan_of().methods["er"]
    found: list[Past] = []
    for number in range(count):
        settings, origin = suggest(
            search, number, seen=found[: max(0, number - 1)], all_before=found, trials=40
        )
        value = 1 - abs(settings["lr"] - best)
        found.append(Past(number, settings, origin, "complete", value))
    return found


def test_known_settings_come_first_then_an_even_draw_then_suggestions(plan_of: MakePlan) -> None:
    trials = history(plan_of, 14, best=0.1)
    origins = [trial.origin for trial in trials]
    assert origins == ["known", *["drawn"] * (STARTUP - 1), *["suggested"] * 4]
    assert trials[0].settings == {"lr": 0.05}
    assert len({trial.settings["lr"] for trial in trials}) == 14


def test_no_settings_are_tried_twice_though_one_place_looks_best(plan_of: MakePlan) -> None:
    for best in (0.05, 0.15):
        trials = history(plan_of, 40, best=best)
        assert len({trial.settings["lr"] for trial in trials}) == 40


def test_suggestions_look_where_trials_were_good(plan_of: MakePlan) -> None:
    for best in (0.02, 0.2):
        late = [trial.settings["lr"] for trial in history(plan_of, 30, best=best)[STARTUP:]]
        near = sum(0.5 < rate / best < 2 for rate in late)
        assert near > len(late) / 2  # even draws: a fifth of the log scale and two


def test_the_same_history_suggests_the_same_whatever_was_asked_before(plan_of: MakePlan) -> None:
    trials, search = history(plan_of, 16, best=0.1), plan_of().methods["er"]
    numbers = list(range(16))
    random.Random(0).shuffle(numbers)
    for number in numbers:
        seen, before = trials[: max(0, number - 1)], trials[:number]
        settings, _ = suggest(search, number, seen=seen, all_before=before, trials=40)
        assert settings == trials[number].settings


def test_a_failed_trial_and_a_pruned_one_teach_that_their_settings_are_bad(
    plan_of: MakePlan,
) -> None:
    search = plan_of().methods["er"]
    good = [(rate, "complete") for rate in (0.011, 0.012, 0.013)] * 3
    bad = [(0.2, "failed"), (0.22, "failed"), (0.25, "pruned"), (0.28, "failed")] * 3
    trials = [
        Past(n, {"lr": rate}, "drawn", state, 0.5 if state == "complete" else None)  # type: ignore[arg-type]
        for n, (rate, state) in enumerate(good + bad)
    ]
    rates = [
        suggest(search, n, seen=trials, all_before=trials, trials=99)[0]["lr"]
        for n in range(30, 50)
    ]
    assert sorted(rates)[len(rates) // 2] < 0.05


def test_a_trial_waits_for_those_that_suggest_it_and_for_no_others() -> None:
    def trial(number: int, state: str) -> Past:
        return Past(number, {}, "drawn", state)  # type: ignore[arg-type]

    trials = [trial(0, "complete"), trial(1, "failed"), trial(2, "running")]
    assert visible(trials, 3, ahead=2) == trials[:2]
    assert visible(trials, 3, ahead=1) is None
    assert visible(trials, 0, ahead=1) == []


def past(number: int, curve: list[tuple[int, float]], state: str = "complete") -> Past:
    return Past(number, {}, "drawn", state, 0.5, {1000: tuple(curve)})  # type: ignore[arg-type]


def test_a_bar_is_the_median_at_the_same_place_of_the_same_stream() -> None:
    seen = [
        past(0, [(100, 0.75), (200, 0.25), (300, 0.4), (400, 0.3)]),
        past(1, [(100, 1.0), (200, 0.5), (300, 0.2), (400, 0.3)]),
        past(2, [(100, 0.5), (200, 0.5), (300, 0.2), (400, 0.3)]),
        past(3, [(100, 0.5), (200, 0.25)], "pruned"),
    ]
    # Means of both points: 0.5, 0.75, 0.5, 0.375. 300 was reached by three only; 100 is in the
    # first half; nothing is saved at 400.
    assert bars(seen, range(1000, 1002)) == {1000: ((200, 0.5),)}


def test_there_is_no_bar_before_enough_trials_came_that_far() -> None:
    assert bars([], range(1000, 1001)) == {}
    assert bars([past(n, [(100, 0.5), (200, 0.5)]) for n in range(3)], [1000]) == {}
    failed = [past(n, [(100, 0.5)], "failed") for n in range(9)]
    assert bars(failed, [1000]) == {}  # none of them tells how long the stream is
