import hashlib
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from recollect.benchmarks import benchmark_from
from recollect.datasets import cifar100
from recollect.datasets.cifar100 import CIFAR100, NAMES, Cifar100
from recollect.datasets.files.downloads import no_progress
from recollect.errors import DataError, DigestError

EACH = {"train": 3, "test": 1}


def parts() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    drawn = np.random.default_rng(0)
    found = {}
    for name, each in EACH.items():
        labels = (np.arange(100 * each) % 100).astype(np.uint8)
        found[name] = labels, drawn.integers(0, 256, (len(labels), 3072), np.uint8)
    return found


def write_pickles(folder: Path) -> Cifar100:
    """Write small pickles in the makers' form; return the set that expects their md5s."""
    folder.mkdir(parents=True)
    md5s = {}
    for name, (labels, pixels) in parts().items():
        batch = {"fine_labels": labels.tolist(), "coarse_labels": [0] * len(labels), "data": pixels}
        content = pickle.dumps(batch, protocol=2)
        (folder / name).write_bytes(content)
        md5s[name] = hashlib.md5(content).hexdigest()
    return replace(CIFAR100, pickles=replace(CIFAR100.pickles, md5s=md5s))


def write_binary(folder: Path) -> None:
    folder.mkdir(parents=True)
    for name, (labels, pixels) in parts().items():
        coarse = np.zeros((len(labels), 1), np.uint8)
        rows = np.concatenate([coarse, labels.reshape(-1, 1), pixels], axis=1)
        (folder / f"{name}.bin").write_bytes(rows.tobytes())


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RECOLLECT_DATA", str(tmp_path / "cache"))
    monkeypatch.setattr(cifar100, "_EACH", {f"{name}.bin": each for name, each in EACH.items()})


def test_the_hundred_classes_have_names_in_sorted_order() -> None:
    assert len(set(NAMES)) == 100
    assert list(NAMES) == sorted(NAMES)


def test_both_forms_give_the_same_images_and_fine_labels(tmp_path: Path) -> None:
    python = write_pickles(tmp_path / "a" / "cifar-100-python")
    write_binary(tmp_path / "b" / "cifar-100-binary")
    first, second = python.load(tmp_path / "a"), CIFAR100.load(tmp_path / "b")
    labels, pixels = parts()["train"]
    for data in (first, second):
        assert data.train.labels.tolist() == labels.tolist()
        np.testing.assert_array_equal(data.train.inputs.flatten(1).numpy(), pixels)
        assert data.test.inputs.shape == (100, 3, 32, 32)
        assert data.class_names[52] == "oak_tree"


def test_pickles_with_other_bytes_than_the_makers_are_refused(tmp_path: Path) -> None:
    write_pickles(tmp_path / "cifar-100-python")
    with pytest.raises(DigestError, match="16019d7e3df5f24257cddd939b257f8d"):
        CIFAR100.load(tmp_path)


def test_binary_files_that_hold_other_numbers_of_images_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "cifar-100-binary"
    write_binary(folder)
    content = (folder / "test.bin").read_bytes()
    (folder / "test.bin").write_bytes(content[:-1])
    with pytest.raises(DataError, match="307,399 bytes, where 1 images of each of 100 classes"):
        CIFAR100.load(tmp_path)
    (folder / "test.bin").write_bytes(content[:1] + b"\x05" + content[2:])
    with pytest.raises(DataError, match="classes are not equally many"):
        CIFAR100.load(tmp_path)


@pytest.mark.parametrize("form", ["pickles", "binary"])
def test_a_folder_that_is_brought_becomes_our_copy(form: str, tmp_path: Path) -> None:
    brought, own = tmp_path / "brought", CIFAR100
    if form == "pickles":
        own = write_pickles(brought)
    else:
        write_binary(brought)
    assert own.locate() is None
    landed = own.fetch(brought, no_progress)
    assert landed == tmp_path / "cache" / "cifar100" == own.locate()
    assert len(own.load().train) == 300
    assert [name.partition(".")[0] for name, _ in own.verify()] == ["train", "test"]


def test_it_is_a_class_incremental_benchmark_in_two_lines(tmp_path: Path) -> None:
    write_binary(tmp_path / "cifar-100-binary")
    benchmark = benchmark_from(CIFAR100.load(tmp_path), classes_per_segment=10)
    assert [len(segment.test) for segment in benchmark.segments] == [10] * 10
