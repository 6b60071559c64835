from pathlib import Path

import pytest
import torch
from PIL import Image

from recollect.datasets import image_folder
from recollect.errors import DataError


def draw(path: Path, color: tuple[int, int, int], size: tuple[int, int] = (5, 4)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, color).save(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    draw(tmp_path / "cat" / "2.png", (2, 0, 0))
    draw(tmp_path / "cat" / "1.PNG", (1, 0, 0))
    draw(tmp_path / "ant" / "1.png", (3, 0, 0))
    (tmp_path / "cat" / "notes.txt").write_text("no image")
    (tmp_path / "cat" / "._1.png").write_text("left by another system")
    (tmp_path / ".hidden").mkdir()
    return tmp_path


def test_classes_and_files_come_in_sorted_order(folder: Path) -> None:
    examples = image_folder(folder)
    assert examples.inputs.shape == (3, 3, 4, 5)
    assert examples.inputs.dtype == torch.uint8
    assert examples.labels.tolist() == [0, 1, 1]
    assert examples.inputs[:, 0, 0, 0].tolist() == [3, 1, 2]


def test_grey_images_have_no_channel_dimension(folder: Path) -> None:
    assert image_folder(str(folder), mode="L").inputs.shape == (3, 4, 5)


def test_sizes_that_differ_need_a_size(folder: Path) -> None:
    draw(folder / "ant" / "2.png", (0, 0, 0), size=(7, 7))
    with pytest.raises(ValueError, match=r"sizes \[\(4, 5\), \(7, 7\)\]; pass `size="):
        image_folder(folder)
    assert image_folder(folder, size=(6, 8)).inputs.shape == (4, 3, 6, 8)


def test_a_damaged_image_is_named(folder: Path) -> None:
    (folder / "ant" / "bad.jpg").write_bytes(b"no jpeg")
    with pytest.raises(DataError, match=r"bad.jpg` cannot be decoded"):
        image_folder(folder)


def test_a_folder_without_images_says_how_to_lay_them_out(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no images in subfolders; lay them out"):
        image_folder(tmp_path)
    with pytest.raises(ValueError, match="which is no folder"):
        image_folder(tmp_path / "absent")


def test_an_unknown_mode_is_refused(folder: Path) -> None:
    with pytest.raises(ValueError, match="`mode` is `CMYK`; choose `RGB` or `L`"):
        image_folder(folder, mode="CMYK")
