import json
from pathlib import Path

import pytest

from recollect.errors import ConfigError
from recollect.experiments.specs.cell import Cell, cells
from recollect.experiments.specs.configs import config_path
from recollect.experiments.specs.spec import load_spec


def cell_of(tmp_path: Path, text: str, *, memory: int = 50) -> Cell:
    path = tmp_path / "spec.toml"
    path.write_text(text)
    (cell,) = cells(load_spec(path), memory=[memory])
    return cell


PLAIN = """
benchmark = "mnist-split"
[optimizer]
lr = 0.5
[methods.er-p]
step_size = 3.0
norm_floor = 2.0
"""

REWRITTEN = """
# the same, as another person would write it
benchmark = "mnist-split"
seeds = 99
protocol = "paper"
[methods.er-p]
norm_floor = 2
found = "by looking hard"
step_size = 3       # an integer is the same number
target_floor = 3.0  # the default
[optimizer]
found = "by luck"
lr = 5e-1
name = "sgd"
[learner]
replay = 10
"""


def test_the_hash_is_of_the_settings_not_of_how_they_were_written(tmp_path: Path) -> None:
    assert cell_of(tmp_path, PLAIN).spec_hash == cell_of(tmp_path, REWRITTEN).spec_hash


def test_the_hash_stays_the_same_from_version_to_version(tmp_path: Path) -> None:
    # Should this fail, records made before are not found again: is the change worth that?
    assert cell_of(tmp_path, PLAIN).spec_hash[:16] == "f67bed7991d93452"


@pytest.mark.parametrize(
    "change",
    [("0.5", "0.6"), ("3.0", "4.0"), ("[optimizer]", "[evaluation]\npoints=3\n[optimizer]")],
)
def test_any_setting_that_decides_a_number_changes_the_hash(
    tmp_path: Path, change: tuple[str, str]
) -> None:
    plain = cell_of(tmp_path, PLAIN)
    assert cell_of(tmp_path, PLAIN.replace(*change)).spec_hash != plain.spec_hash
    assert cell_of(tmp_path, PLAIN, memory=51).spec_hash != plain.spec_hash


def test_a_cell_has_every_default_written_out_and_comes_back_from_its_json(tmp_path: Path) -> None:
    cell = cell_of(tmp_path, REWRITTEN)
    settings = json.loads(cell.canonical_json)
    assert settings["options"] == {
        "step_size": 3.0,
        "norm_floor": 2.0,
        "target_floor": 3.0,
        "steps": 1,
        "groups": None,
        "pull": 0.5,
    }
    assert settings["stream"]["data"] == "mnist-embedded"
    assert settings["found"] == {"methods.er-p": "by looking hard", "optimizer": "by luck"}
    assert Cell.from_json(cell.canonical_json) == cell


def test_a_method_without_memory_is_one_cell_for_all_memory_sizes(small_spec: Path) -> None:
    resolved = cells(load_spec(small_spec), methods=["van", "er"], memory=[20, 30, 20])
    assert [(cell.method, cell.capacity) for cell in resolved] == [
        ("van", 0),
        ("er", 20),
        ("er", 30),
    ]


def test_a_methods_own_settings_win_over_the_shared_ones(small_spec: Path) -> None:
    (cell,) = cells(load_spec(small_spec), methods=["diverging"])
    assert (cell.base, cell.optimizer["lr"]) == ("er", 1e30)


def test_unknown_methods_and_small_memories_are_refused(small_spec: Path) -> None:
    spec = load_spec(small_spec)
    with pytest.raises(ConfigError, match="has no 'er-pc-mirr'; did you mean `er-pc-mir`"):
        cells(spec, methods=["er-pc-mirr"])
    with pytest.raises(ConfigError, match="is 5, but er replays 10 examples"):
        cells(spec, methods=["er"], memory=[5])


def test_the_published_norm_leaves_the_hash_of_old_records_alone() -> None:
    plain, batch, group = (
        cells(load_spec(config_path("cifar10-split"), overrides=overrides), methods=["er"])[0]
        for overrides in ([], ["model.norm=batch"], ["model.norm=group"])
    )
    assert "norm" not in plain.model
    assert plain.spec_hash == batch.spec_hash != group.spec_hash
    assert group.model["norm"] == "group"


def test_all_segments_leave_the_hash_of_old_records_alone() -> None:
    plain, first = (
        cells(load_spec(config_path("cifar10-split"), overrides=overrides), methods=["er"])[0]
        for overrides in ([], ["stream.num_segments=2"])
    )
    assert "num_segments" not in plain.stream
    assert first.stream["num_segments"] == 2
    assert first.spec_hash != plain.spec_hash
