import json

import pytest
from perf.asking.answer import Answer, Ratio, Table, lines_of, ratio, ratio_of
from perf.asking.targets import all_targets, target_of


def test_ratios_are_taken_repetition_by_repetition() -> None:
    # A machine that slows down by ten hits both; the ratio of medians would be 2.5 / 4.
    times = {"ER": [1.0, 10.0, 1.0, 10.0], "bare ER, one pass": [2.0, 20.0, 1.0, 20.0]}
    found = ratio("ER", "bare ER, one pass", "MLP", times)
    assert (found.median, found.repetitions) == (0.5, 4)
    assert (found.low, found.high) == (0.5, 0.625)


def test_a_ratio_knows_its_target() -> None:
    below = ratio_of("ER", "bare ER, one pass", "MLP", [1.0, 1.04, 1.2])
    assert (below.target, below.is_met) == (1.05, True)
    assert ratio_of("ER", "bare ER, one pass", "ResNet 32", [0.9]).is_met is False
    assert ratio_of("ER", "bare ER, one pass", "transformer", [0.9]).is_met is None


def test_a_speed_has_to_reach_its_target() -> None:
    shape = "sweep of MNIST-S"
    assert target_of("speed of two workers", "one", shape) == (1.8, True)
    assert ratio_of("speed of two workers", "one", shape, [1.9]).is_met is True
    assert ratio_of("speed of two workers", "one", shape, [1.7]).is_met is False


def test_one_repetition_has_no_spread() -> None:
    found = ratio_of("a", "b", "c", [3.0])
    assert (found.low, found.median, found.high) == (3.0, 3.0, 3.0)


def test_every_target_is_found_again() -> None:
    targets = all_targets()
    assert len({tuple(row[:3]) for row in targets}) == len(targets)
    for what, than, shape, target in targets:
        assert target_of(what, than, shape)[0] == target


def test_an_answer_survives_json() -> None:
    answer = Answer(
        title="A title",
        command="python -m perf.x",
        settings={"batch": 10},
        unit="s",
        times={"a": [1.0, 2.0]},
        ratios=[Ratio("a", "b", "c", 1.0, 0.9, 1.1, 2, 1.05)],
        tables=[Table("t", ["x"], [["1"], [2.0]])],
        remarks=["a remark"],
        points=[{"slots": 5}],
    )
    assert Answer.from_json(json.loads(json.dumps(answer.to_json()))) == answer


def test_a_terminal_hears_the_verdict() -> None:
    missed = Ratio("ER", "bare ER, one pass", "MLP", 1.2, 1.1, 1.3, 5, 1.05)
    answer = Answer("t", "c", {"batch": 10}, ratios=[missed], remarks=["left out"])
    said = "\n".join(lines_of(answer))
    assert "target <= 1.05: missed" in said
    assert "note: left out" in said


def test_contestants_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        ratio("a", "b", "c", {"a": [1.0], "b": [1.0, 2.0]})
