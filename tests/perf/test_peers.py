"""Peers run in an environment of their own; where it is not, they are skipped."""

from math import isfinite
from pathlib import Path

import pytest
from perf.contestants.shapes import BATCH, CAPACITY, SHAPES
from perf.peers import compare, models, process

needs_peers = pytest.mark.skipif(
    not process.PYTHON.exists(), reason="the peers are not installed: make perf-peers"
)


def test_peers_and_we_learn_the_same_thing() -> None:
    for name, example in models.EXAMPLES.items():
        shape = SHAPES[name]
        assert (example, models.CLASSES) == (shape.example, shape.classes)
        assert (shape.replay, shape.learning_rate) == (models.REPLAY, models.LEARNING_RATE)
        sizes = [p.shape for p in models.model_for(name).parameters()]
        assert sizes == [p.shape for p in shape.build().parameters()]
    assert (models.BATCH, models.CAPACITY) == (BATCH, CAPACITY)


def test_peers_that_are_not_installed_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(process, "PYTHON", tmp_path / "python")
    answer = compare.measure("mlp", repetitions=1)
    assert not answer.ratios
    assert "Avalanche ER was not measured: the peers are not installed" in answer.remarks[0]


def test_costs_are_added_up_within_a_repetition() -> None:
    plan = compare.Plan(2, 0, blocks=50, steps_a_block=10)  # a block is 100 examples
    ours, theirs = [1.0] * 50 + [2.0] * 50, [3.0] * 100
    assert compare.at_positions((ours, theirs), plan) == {
        ", 2,000 examples": ([20.0, 40.0], [60.0, 60.0]),
        ", 5,000 examples": ([50.0, 100.0], [150.0, 150.0]),
    }


@pytest.mark.slow
@needs_peers
def test_a_peer_runs_beside_ours() -> None:
    plan = compare.Plan(1, 0, blocks=4, steps_a_block=5)
    answer = compare.measure("mlp", plan=plan, pairs=compare.PAIRS[:1])
    (ratio,) = answer.ratios
    assert (ratio.what, ratio.than) == ("ER", "Avalanche ER, 200 examples")
    assert isfinite(ratio.median)
    assert ratio.median > 0


@pytest.mark.slow
@needs_peers
def test_a_peer_that_fails_says_why() -> None:
    with process.Peer("capymoa", "er", "mlp") as peer:
        peer.begin(10)
        peer.do(1)
        with pytest.raises(process.PeerError, match="StopIteration"):
            peer.do(1)
