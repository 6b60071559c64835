"""mini-ImageNet in every form, small and crafted here, then the real archive."""

import csv
import io
import os
import pickle
import resource
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from tests.unit.datasets.files import decode_worker

from recollect.datasets import LabelledData
from recollect.datasets.files.downloads import no_progress
from recollect.datasets.mini_imagenet import MINI_IMAGENET, MiniImageNet
from recollect.errors import DataError, DigestError, DiskSpaceError, UnsafeFileError

CLASSES = ("n01", "n02", "n03")
TRAIN, TEST = 4, 2
SMALL = MiniImageNet(num_classes=3, train_per_class=TRAIN, test_per_class=TEST)


def pixels_of(class_index: int, image_index: int) -> np.ndarray:
    """A flat colour that says which image it is; PNG keeps it exact."""
    pixels = np.empty((84, 84, 3), dtype=np.uint8)
    pixels[:] = (class_index, image_index, 7)
    return pixels


def encoded(pixels: np.ndarray) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG", compress_level=1)
    return stream.getvalue()


def split_of(image_index: int) -> str:
    return "train" if image_index < TRAIN else "test"


def each_image() -> list[tuple[int, str, int]]:
    return [(c, name, i) for c, name in enumerate(CLASSES) for i in range(TRAIN + TEST)]


def make_zip(path: Path, prefix: str = "") -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for label, name, index in each_image():
            member = f"{prefix}{split_of(index)}/{name}/{index:04d}.png"
            archive.writestr(member, encoded(pixels_of(label, index)))
    return path


def make_folders(path: Path) -> Path:
    for label, name, index in each_image():
        file = path / split_of(index) / name / f"{index:04d}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(encoded(pixels_of(label, index)))
    return path


def make_few_shot_folders(path: Path) -> Path:
    """Classes are split, not images: what few-shot learning uses."""
    for label, name, index in each_image():
        file = path / ("train", "val", "test")[label] / name / f"{index:04d}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(encoded(pixels_of(label, index)))
    return path


def make_csvs(path: Path) -> Path:
    (path / "images").mkdir(parents=True)
    for label, name in enumerate(CLASSES):
        with (path / f"{('train', 'val', 'test')[label]}.csv").open("w", newline="") as stream:
            table = csv.writer(stream)
            table.writerow(["filename", "label"])
            for index in range(TRAIN + TEST):
                table.writerow([f"{name}{index:04d}.png", name])
                image = path / "images" / f"{name}{index:04d}.png"
                image.write_bytes(encoded(pixels_of(label, index)))
    return path


def make_class_dict_pickles(path: Path) -> Path:
    path.mkdir(parents=True)
    for label, name in enumerate(CLASSES):
        images = np.stack([pixels_of(label, index) for index in range(TRAIN + TEST)])
        content = {"image_data": images, "class_dict": {name: list(range(TRAIN + TEST))}}
        split = ("train", "val", "test")[label]
        (path / f"mini-imagenet-cache-{split}.pkl").write_bytes(pickle.dumps(content, 2))
    return path


def make_label_pickles(path: Path) -> Path:
    path.mkdir(parents=True)
    for label, name in enumerate(CLASSES):
        images = np.stack([pixels_of(label, index) for index in range(TRAIN + TEST)])
        content = {"data": images, "labels": [name] * (TRAIN + TEST)}
        split = ("train", "val", "test")[label]
        (path / f"mini-imagenet-cache-{split}.pkl").write_bytes(pickle.dumps(content))
    return path


def assert_is_the_small_set(loaded: LabelledData) -> None:
    assert loaded.class_names == CLASSES
    assert loaded.train.inputs.shape == (3 * TRAIN, 3, 84, 84)
    assert loaded.test.inputs.shape == (3 * TEST, 3, 84, 84)
    assert loaded.train.inputs.dtype == torch.uint8
    assert loaded.train.labels.tolist() == [label for label in range(3) for _ in range(TRAIN)]
    # Red says the class and green the image: which went where is read off the pixels.
    assert torch.equal(loaded.train.inputs[:, 0, 0, 0].long(), loaded.train.labels)
    assert loaded.train.inputs[:, 1, 83, 83].tolist() == list(range(TRAIN)) * 3
    assert loaded.test.inputs[:, 1, 0, 83].tolist() == list(range(TRAIN, TRAIN + TEST)) * 3


FORMS = {
    "zip": lambda path: make_zip(path.with_suffix(".zip")),
    "zip with a top folder": lambda path: make_zip(path.with_suffix(".zip"), "mini/"),
    "folders": make_folders,
    "few-shot folders": make_few_shot_folders,
    "Ravi's tables": make_csvs,
    "class_dict pickles": make_class_dict_pickles,
    "labels pickles": make_label_pickles,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_examples(own_root: Path, tmp_path: Path, form: str) -> None:
    source = FORMS[form](tmp_path / "source")
    assert_is_the_small_set(SMALL.load(source))
    assert_is_the_small_set(SMALL.load())


def test_a_form_inside_the_named_folder_is_found(own_root: Path, tmp_path: Path) -> None:
    make_folders(tmp_path / "up" / "mini-imagenet")
    assert_is_the_small_set(SMALL.load(tmp_path / "up"))


def test_a_source_placed_in_our_folder_is_found_without_being_named(own_root: Path) -> None:
    (own_root / "mini-imagenet").mkdir(parents=True)
    make_zip(own_root / "mini-imagenet" / "mini-imagenet.zip")
    assert_is_the_small_set(SMALL.load())


def test_numbered_labels_mean_classes_of_their_own_file(own_root: Path, tmp_path: Path) -> None:
    for label, split in enumerate(("train", "val", "test")):
        images = np.stack([pixels_of(label, index) for index in range(TRAIN + TEST)])
        content = {"data": images, "labels": [0] * (TRAIN + TEST)}
        (tmp_path / f"mini-imagenet-cache-{split}.pkl").write_bytes(pickle.dumps(content))
    loaded = SMALL.load(tmp_path)
    assert loaded.class_names == ("test-000", "train-000", "val-000")


def test_larger_photographs_are_resized(own_root: Path, tmp_path: Path) -> None:
    make_csvs(tmp_path / "source")
    for image in (tmp_path / "source" / "images").iterdir():
        Image.open(image).resize((500, 375)).save(image)
    assert_is_the_small_set(SMALL.load(tmp_path / "source"))


def test_a_second_start_decodes_nothing(own_root: Path, tmp_path: Path) -> None:
    source = make_zip(tmp_path / "source.zip")
    place = SMALL.fetch(source, no_progress)
    written = (place / "train-inputs.npy").stat().st_mtime_ns
    assert SMALL.fetch(source, no_progress) == place
    assert (place / "train-inputs.npy").stat().st_mtime_ns == written


def test_a_changed_source_is_decoded_anew(own_root: Path, tmp_path: Path) -> None:
    source = make_zip(tmp_path / "source.zip")
    first = SMALL.fetch(source, no_progress)
    make_zip(source, "now/")
    assert SMALL.fetch(source, no_progress) != first


def test_writing_into_loaded_images_leaves_the_file_as_it_was(
    own_root: Path, tmp_path: Path
) -> None:
    source = make_zip(tmp_path / "source.zip")
    SMALL.load(source).train.inputs.zero_()
    assert_is_the_small_set(SMALL.load(source))
    SMALL.verify()


def test_one_changed_byte_in_the_zip_is_refused_and_nothing_appears(
    own_root: Path, tmp_path: Path
) -> None:
    source = make_zip(tmp_path / "source.zip")
    content = bytearray(source.read_bytes())
    content[content.index(b"IDAT") + 8] ^= 1
    source.write_bytes(content)
    with pytest.raises(DataError, match=r"damaged zip archive .*CRC"):
        SMALL.load(source)
    assert SMALL.locate() is None


def test_one_changed_byte_in_the_decoded_images_fails_verification(
    own_root: Path, tmp_path: Path
) -> None:
    place = SMALL.fetch(make_zip(tmp_path / "source.zip"), no_progress)
    assert len(SMALL.verify()) == 4
    with (place / "train-inputs.npy").open("r+b") as stream:
        stream.seek(-5, os.SEEK_END)
        stream.write(b"\xff")
    with pytest.raises(DigestError, match="train-inputs"):
        SMALL.verify()


def test_decoded_images_cut_short_are_refused(own_root: Path, tmp_path: Path) -> None:
    place = SMALL.fetch(make_zip(tmp_path / "source.zip"), no_progress)
    os.truncate(place / "test-inputs.npy", 1000)
    with pytest.raises(DataError, match=r"test-inputs\.npy` is damaged"):
        SMALL.load()


def test_a_damaged_image_is_named(own_root: Path, tmp_path: Path) -> None:
    source = make_folders(tmp_path / "source")
    image = source / "train" / "n02" / "0001.png"
    image.write_bytes(image.read_bytes()[:50])
    with pytest.raises(DataError, match=r"n02/0001.png` cannot be decoded"):
        SMALL.load(source)


def test_an_incomplete_set_says_what_it_has(own_root: Path, tmp_path: Path) -> None:
    source = make_folders(tmp_path / "source")
    (source / "train" / "n02" / "0001.png").unlink()
    with pytest.raises(DataError, match=r"3 classes with .*\[\(3, 2\), \(4, 2\)\].*has 3 with"):
        SMALL.load(source)
    with pytest.raises(DataError, match="mini-ImageNet has 100 with"):
        MINI_IMAGENET.load(source)


def test_a_zip_that_leads_outside_is_refused(own_root: Path, tmp_path: Path) -> None:
    source = make_zip(tmp_path / "source.zip")
    with zipfile.ZipFile(source, "a") as archive:
        archive.writestr("../../train/n01/9.png", b"!")
    with pytest.raises(UnsafeFileError, match="leads outside"):
        SMALL.load(source)


def test_an_image_bomb_is_refused_before_it_is_decoded(own_root: Path, tmp_path: Path) -> None:
    source = make_folders(tmp_path / "source")
    bomb = Image.new("1", (9_000, 9_000))
    bomb.save(source / "train" / "n01" / "0000.png")
    with pytest.raises(UnsafeFileError, match="9000 x 9000 pixels"):
        SMALL.load(source)


class _Hostile:
    def __init__(self, command: str) -> None:
        self._command = command

    def __reduce__(self) -> tuple[object, ...]:
        return os.system, (self._command,)


def test_a_hostile_pickle_is_refused_and_nothing_runs(own_root: Path, tmp_path: Path) -> None:
    source = make_class_dict_pickles(tmp_path / "source")
    content = {"image_data": _Hostile(f"touch {tmp_path / 'ran'}"), "class_dict": {}}
    (source / "mini-imagenet-cache-val.pkl").write_bytes(pickle.dumps(content))
    with pytest.raises(UnsafeFileError, match="nothing was run"):
        SMALL.load(source)
    assert not (tmp_path / "ran").exists()
    assert SMALL.locate() is None


@pytest.mark.parametrize(
    "content",
    [
        [1, 2],
        {"pictures": 1},
        {"data": np.zeros((2, 84, 84, 3)), "labels": [0, 1]},
        {"image_data": np.zeros((2, 84, 84, 3), np.uint8), "class_dict": {"n01": [0, 5]}},
    ],
)
def test_a_pickle_of_another_shape_says_what_it_holds(
    own_root: Path, tmp_path: Path, content: object
) -> None:
    (tmp_path / "mini-imagenet-cache-train.pkl").write_bytes(pickle.dumps(content))
    with pytest.raises(DataError, match=r"holds .*; expected a dict with `image_data`"):
        SMALL.load(tmp_path)


def test_a_table_cannot_lead_outside_its_folder(own_root: Path, tmp_path: Path) -> None:
    source = make_csvs(tmp_path / "source")
    (tmp_path / "secret.png").write_bytes(encoded(pixels_of(0, 0)))
    table = source / "train.csv"
    table.write_text(table.read_text().replace("n010000.png", "../../secret.png"))
    with pytest.raises(DataError, match=r"images/secret.png` cannot be decoded"):
        SMALL.load(source)


def test_what_is_not_here_explains_the_terms(own_root: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"terms do not let us fetch it.*--root PATH"):
        SMALL.load()
    with pytest.raises(DataError, match="is not in"):
        SMALL.load(tmp_path / "absent")


def test_a_disk_too_small_is_told_before_decoding(own_root: Path, tmp_path: Path) -> None:
    huge = MiniImageNet(num_classes=10**12)
    with pytest.raises(DiskSpaceError, match="RECOLLECT_DATA"):
        huge.load(make_zip(tmp_path / "source.zip"))


@pytest.mark.slow
def test_kill_9_while_decoding_then_again_gives_the_right_images(
    own_root: Path, tmp_path: Path
) -> None:
    source = tmp_path / "source.zip"
    noise = np.random.default_rng(0).integers(0, 256, (500, 500, 3), dtype=np.uint8)
    with zipfile.ZipFile(source, "w") as archive:
        for index in range(60):
            split = "train" if index < 50 else "test"
            archive.writestr(f"{split}/n01/{index:04d}.png", encoded(np.roll(noise, index)))
    command = [sys.executable, decode_worker.__file__, str(source), "1", "50", "10"]
    environment = {**os.environ, "RECOLLECT_DATA": str(own_root)}
    data_set = MiniImageNet(num_classes=1, train_per_class=50, test_per_class=10)

    worker = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not list(own_root.glob("mini-imagenet/.*.staging/train-inputs.npy")):
        assert time.monotonic() < deadline
        assert worker.poll() is None
        time.sleep(0.002)
    time.sleep(0.1)
    worker.send_signal(signal.SIGKILL)
    worker.communicate()
    assert worker.returncode == -signal.SIGKILL
    assert list(own_root.glob("mini-imagenet/.*.staging/train-inputs.npy"))
    assert data_set.locate() is None

    subprocess.run(command, env=environment, check=True, capture_output=True)
    data_set.verify()
    loaded = data_set.load()
    last = Image.fromarray(np.roll(noise, 59)).resize((84, 84), Image.Resampling.LANCZOS)
    np.testing.assert_array_equal(loaded.test.inputs[-1].permute(1, 2, 0).numpy(), np.asarray(last))
    assert not list(own_root.glob("mini-imagenet/.*.staging"))


@pytest.mark.slow
def test_the_real_archive_has_100_classes_of_500_and_100_and_starts_in_under_a_second(
    mini_imagenet_zip: Path,
) -> None:
    MINI_IMAGENET.fetch(mini_imagenet_zip, no_progress)  # in the user's own folder: 1.3 GB, once
    resident_before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.perf_counter()
    loaded = MINI_IMAGENET.load(mini_imagenet_zip)
    assert time.perf_counter() - begun < 1.0
    assert loaded.train.inputs.shape == (50_000, 3, 84, 84)
    assert loaded.test.inputs.shape == (10_000, 3, 84, 84)
    assert loaded.train.labels.bincount().tolist() == [500] * 100
    assert loaded.test.labels.bincount().tolist() == [100] * 100
    assert len(loaded.class_names) == 100
    # Mapped, not read: opening it takes next to no memory.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - resident_before < 50_000


@pytest.mark.slow
def test_images_of_the_real_archive_decode_to_what_the_map_holds(mini_imagenet_zip: Path) -> None:
    loaded = MINI_IMAGENET.load(mini_imagenet_zip)
    with zipfile.ZipFile(mini_imagenet_zip) as archive:
        names = sorted(name for name in archive.namelist() if name.startswith("test/"))
        names = [name for name in names if name.endswith(".jpg")]
        for index in (0, 1234, 9_999):
            assert names[index].split("/")[1] == loaded.class_names[index // 100]
            with Image.open(io.BytesIO(archive.read(names[index]))) as image:
                expected = np.asarray(image.convert("RGB"))
            stored = loaded.test.inputs[index].permute(1, 2, 0).numpy()
            np.testing.assert_array_equal(stored, expected)


@pytest.mark.slow
def test_one_changed_byte_in_the_real_archive_is_refused(
    mini_imagenet_zip: Path, own_root: Path, tmp_path: Path
) -> None:
    content = bytearray(mini_imagenet_zip.read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "copy.zip").write_bytes(content)
    with pytest.raises(DigestError, match="sha256"):
        MINI_IMAGENET.load(tmp_path / "copy.zip")
