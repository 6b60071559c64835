from pathlib import Path

import pytest

from recollect.datasets.files.digests import check_bytes, check_file, digest_of
from recollect.errors import DataError, DigestError

MD5_OF_ABC = "900150983cd24fb0d6963f7d28e17f72"


def test_the_digest_of_a_file_is_the_published_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    assert digest_of(tmp_path / "file") == MD5_OF_ABC
    check_file(tmp_path / "file", expected=MD5_OF_ABC)


def test_one_changed_byte_is_refused_with_both_digests_and_the_next_step(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abd")
    with pytest.raises(DigestError, match=rf"file` has md5 .*{MD5_OF_ABC}.*data fetch") as caught:
        check_file(tmp_path / "file", expected=MD5_OF_ABC)
    assert isinstance(caught.value, DataError)


def test_changed_bytes_in_memory_are_refused() -> None:
    check_bytes(b"abc", expected=MD5_OF_ABC, origin="here")
    with pytest.raises(DigestError, match="`here` has md5"):
        check_bytes(b"abd", expected=MD5_OF_ABC, origin="here")
