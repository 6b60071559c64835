import io
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from recollect.datasets.unpacking import check_zip, unpack_tar
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
    with pytest.raises(UnsafeFileError, match="link or a device"):
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
    with zipfile.ZipFile(path) as archive:
        check_zip(archive, archive=path, max_bytes=max_bytes)


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
    with pytest.raises(UnsafeFileError, match="unpacks to"):
        check(make_zip(tmp_path / "a.zip", "x", bytes(1_000_000)))
