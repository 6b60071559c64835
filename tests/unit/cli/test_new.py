"""`recollect new` writes a spec that loads, and that runs where the data is small."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from PIL import Image
from tests.unit.datasets.files.test_decoding import png
from tests.unit.experiments.own_data import write_arrays, write_photos, write_table
from typer.testing import CliRunner

from recollect.cli import app
from recollect.errors import ConfigError, RecollectError
from recollect.experiments.records.store import Store
from recollect.experiments.specs.build import build
from recollect.experiments.specs.cell import cells
from recollect.experiments.specs.spec import Spec, load_spec


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def spec_of(data: str) -> Spec:
    ended = CliRunner().invoke(app, ["new", "my.toml", "--data", data, "--force"])
    assert ended.exit_code == 0, ended.exception
    assert "wrote my.toml" in ended.output
    return load_spec("my.toml")


def settings_of(data: str) -> dict[str, object]:
    own = spec_of(data).data
    assert own is not None
    return {key: own.settings[key] for key in own.settings if key not in ("sha256", "where")}


def test_a_folder_of_photos_becomes_a_spec_that_runs(here: Path) -> None:
    write_photos(here / "photos")
    spec = spec_of("photos/")
    assert "# 40 images, 12 x 12\n# 4 classes: cat, dog, fox, owl\n" in Path("my.toml").read_text()
    assert spec.memory == (20,)
    ran = CliRunner().invoke(app, ["run", "my.toml", "--seeds", "1", "--workers", "1", "--quiet"])
    assert ran.exit_code == 0, ran.output
    assert {r.method for r in Store("runs").records()} == {"van", "er", "er-clip"}


def test_parts_of_a_folder_and_sizes_that_differ_are_noticed(here: Path) -> None:
    write_photos(here / "photos" / "train", side=40)
    write_photos(here / "photos" / "test", side=30, each=3)
    write_photos(here / "more", side=50)
    for file in (here / "more" / "cat").iterdir():
        file.rename(here / "photos" / "train" / "cat" / f"more-{file.name}")
    found = settings_of("photos")
    assert found["size"] == [40, 40]
    assert found["test"] == {"where": "photos/test", "sha256": found["test"]["sha256"]}  # type: ignore[index]
    assert spec_of("photos").benchmark == "photos-train"


def test_sizes_that_take_turns_are_noticed(here: Path) -> None:
    write_photos(here / "photos", each=50)
    for file in sorted((here / "photos").rglob("*.png"))[1::2]:
        with Image.open(file) as picture:
            larger = picture.resize((16, 16))
        larger.save(file)
    assert settings_of("photos")["size"] == [32, 32]
    assert " and others\n" in Path("my.toml").read_text()


def test_a_table_is_read_for_classes_and_numbers(here: Path) -> None:
    write_table(here / "trees.parquet")
    found = settings_of("trees.parquet")
    assert found == {
        "kind": "table", "label": "kind", "inputs": ["width", "height", "weight"],
        "cut": {"by": "class", "classes_per_segment": 1}, "test": {"share": 0.2},
        "scaling": "standard",
    }  # fmt: skip
    assert "# not used: city, day; to cut by one" in Path("my.toml").read_text()


def test_a_table_of_pictures_is_read_for_them(here: Path) -> None:
    write_photos(here / "photos", each=3)
    files = sorted((here / "photos").rglob("*.png"))
    cells_ = [{"bytes": file.read_bytes(), "path": file.name} for file in files]
    named = [file.parent.name for file in files]
    pq.write_table(pa.table({"img": cells_, "label": named}), here / "pictures.parquet")
    found = settings_of("pictures.parquet")
    assert (found["image"], found["size"]) == ("img", [32, 32])
    (cell,) = cells(load_spec("my.toml"), methods=["er"])
    inputs = build(cell, 0)[0].stream.examples.inputs
    assert inputs.shape == (8, 3, 32, 32)


def test_arrays_are_read_for_a_pair_of_inputs_and_labels(here: Path) -> None:
    write_arrays(here / "arrays.npz")
    assert settings_of("arrays.npz")["inputs"] == "x"
    content = np.load(here / "arrays.npz")
    np.save(here / "x.npy", content["x"])
    np.save(here / "labels.npy", content["y"])
    assert settings_of("x.npy")["label"] == {"where": "labels.npy"}
    np.savez(here / "odd.npz", a=content["x"], b=content["y"])
    ended = CliRunner().invoke(app, ["new", "odd.toml", "--data", "odd.npz"])
    assert isinstance(ended.exception, RecollectError)
    assert "has the arrays a, b; name two of them" in str(ended.exception)


def test_a_set_of_the_catalogue_needs_no_path() -> None:
    assert spec_of("mnist-embedded").benchmark == "mnist-embedded"


def test_a_spec_that_is_there_is_kept_and_odd_names_are_refused(here: Path) -> None:
    (here / "my.toml").write_text("mine")
    for name, told in (("my.toml", "which is there"), ("my.txt", "end its name in .toml")):
        ended = CliRunner().invoke(app, ["new", name, "--data", "mnist-embedded"])
        assert isinstance(ended.exception, ConfigError)
        assert told in str(ended.exception)
    assert (here / "my.toml").read_text() == "mine"


@pytest.mark.parametrize(
    ("data", "told"),
    [("absent", "is no folder"), ("empty", "has no images"), ("x.npz", "cannot be read")],
)
def test_data_that_is_not_there_is_said(here: Path, data: str, told: str) -> None:
    (here / "empty").mkdir()
    ended = CliRunner().invoke(app, ["new", "my.toml", "--data", data])
    assert isinstance(ended.exception, RecollectError)
    assert told in str(ended.exception)
    assert not (here / "my.toml").exists()


@pytest.mark.timeout(60)  # a pipe that nobody writes to is waited for without end
@pytest.mark.parametrize("name", ["photos", "rows.csv", "rows.parquet", "both.npz", "inputs.npy"])
def test_a_named_pipe_is_told_and_not_waited_for(here: Path, name: str) -> None:
    if name == "photos":
        write_photos(here / "photos")
        photo = next((here / "photos").rglob("*.png"))
        photo.unlink()
        os.mkfifo(photo)
    else:
        os.mkfifo(name)
    ended = CliRunner().invoke(app, ["new", "my.toml", "--data", name])
    assert isinstance(ended.exception, RecollectError)
    assert "it is a named pipe, not a file" in str(ended.exception)
    assert not (here / "my.toml").exists()


def test_a_photo_that_states_billions_of_pixels_is_refused_as_everywhere(here: Path) -> None:
    write_photos(here / "photos")
    photo = next((here / "photos").rglob("*.png"))
    photo.write_bytes(png(30_000, 30_000))
    ended = CliRunner().invoke(app, ["new", "my.toml", "--data", "photos"])
    assert isinstance(ended.exception, RecollectError)
    assert "at most 64,000,000 pixels are decoded. Remove it or make it smaller" in str(
        ended.exception
    )
