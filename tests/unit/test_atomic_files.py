import os
import socket
import threading
from pathlib import Path

import pytest

from recollect.atomic_files import replaced_whole, require_file, write_text


def test_a_file_passes_and_a_link_to_one_too(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"12")
    (tmp_path / "link").symlink_to("f")
    require_file(tmp_path / "f", max_bytes=2)
    require_file(tmp_path / "link")


def test_what_would_block_or_never_end_is_refused_by_its_kind(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="it is a named pipe, not a file"):
        require_file(tmp_path / "pipe")
    with pytest.raises(OSError, match="it is a device, not a file"):
        require_file(Path("/dev/zero"))
    with pytest.raises(OSError, match="it is a folder, not a file"):
        require_file(tmp_path)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        with pytest.raises(OSError, match="it is a socket, not a file"):
            require_file(tmp_path / "s")


def test_a_file_that_is_larger_than_its_kind_is_refused_with_both_sizes(tmp_path: Path) -> None:
    with (tmp_path / "f").open("wb") as stream:
        stream.truncate(3_000_000)
    with pytest.raises(OSError, match=r"it has 3,000,000 bytes; at most 2,000,000 are read"):
        require_file(tmp_path / "f", max_bytes=2_000_000)


def test_a_link_stays_a_link_and_its_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "f").write_text("old")
    (tmp_path / "link").symlink_to("far/f")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "far" / "f").read_text() == "new"
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["f", "far", "link"]


def test_a_link_to_nothing_makes_the_file_it_names(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("f")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "f").read_text() == "new"


def test_links_in_a_circle_are_an_error_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"):
        write_text(tmp_path / "a", "new")


def test_a_device_is_written_to_and_stays_one(terminal: Path) -> None:
    write_text(terminal, "new")
    with pytest.raises(OSError, match="it is a device"), replaced_whole(terminal):
        pytest.fail("nothing should be written")
    assert terminal.is_char_device()


def test_a_pipe_gives_its_reader_the_text(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    read: list[str] = []
    # Opened here, so that there is a reader when the writer comes.
    reader = os.fdopen(os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK))
    os.set_blocking(reader.fileno(), True)
    taking = threading.Thread(target=lambda: read.append(reader.read()))
    text = "long " * 100_000
    os.set_blocking(reader.fileno(), True)
    writer = os.open(tmp_path / "pipe", os.O_WRONLY)  # keeps the reader until all is written
    taking.start()
    write_text(tmp_path / "pipe", text)
    os.close(writer)
    taking.join()
    reader.close()
    assert read == [text]
    assert (tmp_path / "pipe").is_fifo()


def test_a_pipe_without_a_reader_is_an_error_and_not_a_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="No such device"):
        write_text(tmp_path / "pipe", "new")


def test_a_name_as_long_as_a_name_can_be_is_written(tmp_path: Path) -> None:
    path = tmp_path / ("ä" * 127)
    write_text(path, "new")
    assert path.read_text() == "new"


def test_a_block_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    with pytest.raises(IsADirectoryError), replaced_whole(tmp_path / "f") as partial:
        partial.write_bytes(tmp_path.read_bytes())
    assert [p.name for p in tmp_path.iterdir()] == ["f"]
    assert (tmp_path / "f").read_text() == "old"
