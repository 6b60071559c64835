"""Checkpoints that an older version wrote load in every later one."""

import json
from pathlib import Path

import pytest
from tests.checkpoints.learners import LEARNERS, MORE_STEPS, STEPS, observe

FOLDER = Path(__file__).parents[3] / "checkpoints"
VERSIONS = [path.name for path in FOLDER.iterdir() if (path / "images-gss.ckpt").exists()]


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_checkpoint_of_an_older_version_goes_on_as_it_went_on(version: str, name: str) -> None:
    learner = LEARNERS[name]()
    learner.load(FOLDER / version / f"{name}.ckpt")
    found = observe(learner, name, range(STEPS, STEPS + MORE_STEPS))
    kept = json.loads((FOLDER / version / f"{name}.json").read_text())
    assert found["losses"] == pytest.approx(kept["losses"], rel=1e-4)
    for what in ("replayed", "written", "held"):
        assert found[what] == kept[what], what


def test_there_is_a_checkpoint_of_the_first_version() -> None:
    assert "0.1.0" in VERSIONS
