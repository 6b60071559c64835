"""What needs other libraries' 1.2 GB: skipped where `make perf-peers` has not installed them."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from perf.peers.process import PYTHON, ROOT

HERE = Path(__file__).parent

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON.exists(), reason="the peers are not installed: make perf-peers"),
]


def found_by(program: str) -> dict[str, Any]:
    ended = subprocess.run(
        # -W: peers call what they deprecated themselves.
        [str(PYTHON), "-W", "ignore", str(HERE / program)],
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


def test_avalanche_trains_our_learner_to_the_bits_of_a_loop() -> None:
    found = found_by("avalanche_run.py")
    assert found["same bits"]
    assert found["same bits online"]
    assert found["steps"] == 18
    assert found["momentum"] == 0.5
    assert found["accuracy"][0] == pytest.approx(found["accuracy"][1], abs=1e-12)
    assert found["accuracy"][1] > 0.5
    assert found["last loss"][0] == found["last loss"][1]


def test_objectives_are_avalanches_but_for_what_their_docstrings_say() -> None:
    found = found_by("losses_run.py")
    ours, theirs = found["er-ace"]
    assert ours == pytest.approx(2 * theirs, rel=1e-12)
    ours, theirs = found["der++"]
    assert ours == pytest.approx(theirs, rel=1e-6)  # they add up in float32
    ours, theirs = found["scr"]
    assert ours == pytest.approx(theirs, rel=1e-6)  # their mask is float32


def test_river_learns_from_frames_as_from_batches() -> None:
    found = found_by("river_run.py")
    assert found["nothing known"] == 0
    assert found["steps"] == 30
    assert found["same bits"]
    assert found["columns"][0] == found["columns"][1]
    assert found["sums to one"]
    assert found["as one by one"]
    assert found["accuracy"] > 0.7
    assert found["in a pipeline"]
