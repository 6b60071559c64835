import io
import os
import struct
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from recollect.datasets.files.unpacking import opened_zip, unpack_tar
from recollect.errors import UnsafeFileError

Member = tuple[str, bytes | str]
"""A name and a content, or a name and the target of a link."""


def make_tar(path: Path, *members: Member) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members:
            header = tarfile.TarInfo(name)
            if isinstance(content, str):
                header.type, header.linkname = tarfile.SYMTYPE, content
                archive.addfile(header)
            else:
                header.size = len(content)
                archive.addfile(header, io.BytesIO(content))
    return path


def unpack(archive: Path, into: Path, *wanted: str, max_bytes: int = 1000) -> None:
    into.mkdir()
    unpack_tar(archive, into, wanted=wanted, max_bytes=max_bytes)


def test_the_wanted_files_are_written_flat_and_the_others_are_not(tmp_path: Path) -> None:
    archive = make_tar(
        tmp_path / "a.tgz", ("package/x", b"1"), ("package/deep/y", b"2"), ("z", b"3")
    )
    unpack(archive, tmp_path / "out", "x", "y")
    written = {file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()}
    assert written == {"x": b"1", "y": b"2"}


@pytest.mark.parametrize(
    "hostile",
    [
        ("../escaped", b"!"),
        ("package/../../escaped", b"!"),
        ("/tmp/escaped", b"!"),
        ("..\\escaped", b"!"),
        ("c:\\escaped", b"!"),
        ("x", "/etc/passwd"),
        ("link", "../.."),
    ],
)
def test_a_hostile_member_condemns_the_archive_before_anything_is_written(
    tmp_path: Path, hostile: Member
) -> None:
    archive = make_tar(tmp_path / "a.tgz", ("package/x", b"1"), hostile)
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(UnsafeFileError, match="nothing was unpacked"):
        unpack(archive, tmp_path / "out", "x")
    assert list((tmp_path / "out").iterdir()) == []
    assert sorted(os.listdir(tmp_path)) == sorted([*before, "out"])


def test_a_device_is_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        header = tarfile.TarInfo("x")
        header.type = tarfile.FIFOTYPE
        archive.addfile(header)
    with pytest.raises(UnsafeFileError, match="link, a device or sparse"):
        unpack(tmp_path / "a.tar", tmp_path / "out", "x")


def test_a_bomb_is_refused_before_it_is_written(tmp_path: Path) -> None:
    archive = make_tar(tmp_path / "bomb.tgz", ("x", bytes(10_000_000)))
    assert archive.stat().st_size < 20_000
    with pytest.raises(UnsafeFileError, match=r"unpacks to 10,000,000 bytes"):
        unpack(archive, tmp_path / "out", "x", max_bytes=1_000_000)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_link_already_in_the_folder_is_not_written_through(tmp_path: Path) -> None:
    archive = make_tar(tmp_path / "a.tgz", ("x", b"new"))
    (tmp_path / "precious").write_text("old")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "x").symlink_to(tmp_path / "precious")
    with pytest.raises(FileExistsError):
        unpack_tar(archive, tmp_path / "out", wanted=["x"], max_bytes=1000)
    assert (tmp_path / "precious").read_text() == "old"


@pytest.mark.parametrize("kept", [0, 20, 400])
def test_an_archive_cut_inside_its_files_is_refused(tmp_path: Path, kept: int) -> None:
    archive = make_tar(tmp_path / "a.tgz", ("x", os.urandom(500)))
    archive.write_bytes(archive.read_bytes()[:kept])
    with pytest.raises(UnsafeFileError, match="cannot be read as a tar"):
        unpack(archive, tmp_path / "out", "x")


def test_an_archive_without_a_wanted_file_is_named(tmp_path: Path) -> None:
    archive = make_tar(tmp_path / "a.tgz", ("y", b"1"))
    with pytest.raises(UnsafeFileError, match=r"a\.tgz` lacks `x`"):
        unpack(archive, tmp_path / "out", "x")


def make_zip(path: Path, name: str, content: bytes, *, mode: int = 0o100644) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        member = zipfile.ZipInfo(name)
        member.external_attr = mode << 16
        member.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(member, content)
    return path


def check(path: Path, *, max_bytes: int = 1000) -> None:
    with opened_zip(path, max_bytes=max_bytes, max_member_bytes=max_bytes // 2):
        pass


def test_a_plain_zip_passes(tmp_path: Path) -> None:
    check(make_zip(tmp_path / "a.zip", "train/a/1.jpg", b"1"))


@pytest.mark.parametrize("name", ["../escaped", "/etc/escaped", "train/../../escaped"])
def test_a_zip_that_escapes_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnsafeFileError, match="leads outside"):
        check(make_zip(tmp_path / "a.zip", name, b"!"))


def test_a_zip_with_a_link_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsafeFileError, match="is a link"):
        check(make_zip(tmp_path / "a.zip", "x", b"/etc/passwd", mode=0o120777))


def test_a_zip_bomb_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(3):
            archive.writestr(f"{number}.png", bytes(400))
    with pytest.raises(UnsafeFileError, match="unpacks to 1,200 bytes"):
        check(tmp_path / "a.zip")


def test_a_single_member_that_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsafeFileError, match="`x` that has 501 bytes, of at most 500"):
        check(make_zip(tmp_path / "a.zip", "x", bytes(501)))


@pytest.mark.parametrize("in_zip64", [False, True])
def test_a_zip_with_an_endless_list_of_members_is_refused_before_it_is_read(
    tmp_path: Path, in_zip64: bool
) -> None:
    entries = 400_000
    listed = (b"PK\1\2" + bytes(42)) * entries
    size = 0xFFFFFFFF if in_zip64 else len(listed)
    end = b""
    if in_zip64:
        numbers = (44, 45, 45, 0, 0, entries, entries, len(listed), 0)
        end = b"PK\6\6" + struct.pack("<Q2H2L4Q", *numbers)
        end += b"PK\6\7" + struct.pack("<LQL", 0, len(listed), 1)
    end += b"PK\5\6" + struct.pack("<4H2LH", 0, 0, 0xFFFF, 0xFFFF, size, 0, 0)
    (tmp_path / "a.zip").write_bytes(listed + end)
    with pytest.raises(UnsafeFileError, match="a list of members of 18,400,000 bytes"):
        check(tmp_path / "a.zip")


def tar_header(kind: bytes, size: int) -> bytes:
    header = tarfile.TarInfo("x")
    header.type, header.size = kind, size
    return header.tobuf(tarfile.USTAR_FORMAT)


def test_a_long_extended_header_is_refused_unread(tmp_path: Path) -> None:
    # The standard library's search in this one takes time with the square of its length.
    slow = tar_header(tarfile.XHDTYPE, 1 << 17) + b"0" * (1 << 17)
    (tmp_path / "a.tar").write_bytes(slow + bytes(1024))
    with pytest.raises(UnsafeFileError, match="long or many extended headers"):
        unpack(tmp_path / "a.tar", tmp_path / "out", "x")


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_chain_of_extended_headers_is_refused_and_not_followed(
    tmp_path: Path, kind: bytes
) -> None:
    one = tar_header(kind, 512) + b"12 path=abc\n".ljust(512, b"\0")
    (tmp_path / "a.tar").write_bytes(one * 2000 + bytes(1024))
    with pytest.raises(UnsafeFileError, match="long or many extended headers"):
        unpack(tmp_path / "a.tar", tmp_path / "out", "x")


def test_a_few_extended_headers_are_read_as_ever(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w", format=tarfile.PAX_FORMAT) as archive:
        header = tarfile.TarInfo("long/" * 50 + "x")
        header.size, header.mtime = 1, 0.5
        archive.addfile(header, io.BytesIO(b"1"))
    unpack(tmp_path / "a.tar", tmp_path / "out", "x")
    assert (tmp_path / "out" / "x").read_bytes() == b"1"


def test_a_sparse_member_is_refused(tmp_path: Path) -> None:
    header = tarfile.TarInfo("x")
    header.type = tarfile.GNUTYPE_SPARSE
    block = bytearray(header.tobuf(tarfile.GNU_FORMAT))
    block[483:495] = b"00000001750\0"  # its size once it is filled up
    block[148:156] = b"        "
    block[148:156] = f"{sum(block):06o}\0 ".encode()
    (tmp_path / "a.tar").write_bytes(bytes(block) + bytes(1024))
    with pytest.raises(UnsafeFileError, match="sparse"):
        unpack(tmp_path / "a.tar", tmp_path / "out", "x")


@pytest.mark.parametrize("mode", ["w:xz", "w:bz2"])
def test_a_compression_that_no_source_of_ours_uses_is_not_opened(tmp_path: Path, mode: Any) -> None:
    with tarfile.open(tmp_path / "a.tar.xz", mode) as archive:
        archive.addfile(tarfile.TarInfo("x"))
    with pytest.raises(UnsafeFileError, match="cannot be read as a tar"):
        unpack(tmp_path / "a.tar.xz", tmp_path / "out", "x")
