import numpy as np
import pytest

from recollect.datasets.sources.idx import read_idx, write_idx
from recollect.errors import DataError


def test_an_idx_file_worked_by_hand_reads_as_its_array() -> None:
    content = bytes([0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6])
    array = read_idx(content, origin="hand")
    assert array.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert write_idx(array) == content


@pytest.mark.parametrize("content", [b"", b"\0\0", b"PK\3\4", bytes([0, 0, 13, 1, 0, 0, 0, 0])])
def test_bytes_without_the_magic_number_are_refused(content: bytes) -> None:
    with pytest.raises(DataError, match=r"`x` begins with .* idx magic"):
        read_idx(content, origin="x")


@pytest.mark.parametrize("cut", [1, 10, 17])
def test_a_file_cut_short_is_refused(cut: int) -> None:
    whole = write_idx(np.zeros((2, 4), dtype=np.uint8))
    with pytest.raises(DataError, match="cut short"):
        read_idx(whole[: len(whole) - min(cut, len(whole) - 4)], origin="x")


@pytest.mark.parametrize("dimensions", [9, 64, 255])
def test_dimensions_whose_product_wraps_round_to_the_length_are_refused(dimensions: int) -> None:
    content = bytes([0, 0, 8, dimensions]) + bytes([0, 1, 0, 0]) * dimensions
    with pytest.raises(DataError, match="cut short"):
        read_idx(content, origin="x")
