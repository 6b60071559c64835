"""Files over HTTP: resumed where they stopped, checked before use, landed by one rename."""

import http.client
import os
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from recollect.atomic_files import flush_to_disk
from recollect.datasets.files.digests import check_file
from recollect.datasets.files.disk import (
    disk_space_explained,
    locked,
    require_space,
)
from recollect.errors import DigestError, DownloadError

_CHUNK = 1 << 16
_TIMEOUT_SECONDS = 30.0
_ATTEMPTS = 4
_NETWORK_ERRORS = (
    urllib.error.URLError,
    http.client.HTTPException,
    ssl.SSLError,
    ConnectionError,
    TimeoutError,
)

Progress = Callable[[str, int, int | None], None]
"""Called with what is being fetched, the bytes here, and the bytes in all (or None)."""


def no_progress(_what: str, _done: int, _total: int | None) -> None:
    """Show nothing."""


@dataclass(frozen=True)
class RemoteFile:
    """A file on a data set's own page.

    Attributes:
        url: Its address.
        md5: The digest its makers, or those who checked it since, published.
        num_bytes: Its exact size, which a download may not exceed.
    """

    url: str
    md5: str
    num_bytes: int

    @property
    def name(self) -> str:
        """The last part of the address."""
        return self.url.rsplit("/", 1)[-1]


def download(remote: RemoteFile, target: Path, *, progress: Progress = no_progress) -> None:
    """Fetch a file; continue an interrupted one; let it appear only when its digest is right.

    Bytes gather in `<target>.part`, which survives a kill. A second process waits for the first.

    Args:
        remote: What to fetch.
        target: Where it appears. If it is there already with the right digest, nothing is fetched.
        progress: Called with how far the download is.

    Raises:
        DownloadError: The network or the server failed, four times.
        DigestError: What arrived is not the published file. It was deleted.
        DiskSpaceError: There is no room.
    """
    if not remote.url.startswith(("http://", "https://")):
        raise ValueError(f"`url` is `{remote.url}`; give an http or https address.")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    with locked(target.with_name(target.name + ".lock")):
        if target.exists():
            try:
                check_file(target, expected=remote.md5)
            except DigestError:
                target.unlink()
            else:
                return
        was_resumed = part.exists() and part.stat().st_size > 0
        try:
            _gather_and_check(remote, part, progress)
        except DigestError:
            part.unlink(missing_ok=True)
            # The bytes from last time may be the bad ones: one fresh start tells.
            if not was_resumed:
                raise
            _gather_and_check(remote, part, progress)
        flush_to_disk(part)
        part.rename(target)


def _gather_and_check(remote: RemoteFile, part: Path, progress: Progress) -> None:
    have = part.stat().st_size if part.exists() else 0
    require_space(part.parent, max(remote.num_bytes - have, 0))
    for attempt in range(_ATTEMPTS):
        try:
            with disk_space_explained(part.parent):
                _gather(remote, part, progress)
            break
        except _NETWORK_ERRORS as error:
            if isinstance(error, urllib.error.HTTPError) and error.code == 416:
                # "Range not satisfiable": what we hold is not a beginning of what is there.
                part.unlink(missing_ok=True)
                continue
            is_final = isinstance(error, urllib.error.HTTPError) and 400 <= error.code < 500
            if is_final or attempt == _ATTEMPTS - 1:
                raise _unreachable(remote, part, error) from error
            time.sleep(0.2 * 2**attempt)
    try:
        check_file(part, expected=remote.md5)
    except DigestError:
        part.unlink(missing_ok=True)
        raise


def _gather(remote: RemoteFile, part: Path, progress: Progress) -> None:
    have = part.stat().st_size if part.exists() else 0
    if have > remote.num_bytes:
        part.unlink()
        have = 0
    if have == remote.num_bytes:
        return
    headers = {"User-Agent": "recollect", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    request = urllib.request.Request(remote.url, headers=headers)
    with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as response:
        if response.status != 206:
            # The server sends the whole file, whatever we asked for.
            have = 0
        with part.open("ab" if have else "wb") as stream:
            while have < remote.num_bytes and (piece := response.read(_CHUNK)):
                stream.write(piece)
                # To the system at once, so that a kill loses nothing that was shown as done.
                stream.flush()
                have += len(piece)
                progress(remote.name, have, remote.num_bytes)
    if have < remote.num_bytes:
        raise http.client.IncompleteRead(b"", remote.num_bytes - have)
    # One piece too many is cut, so the digest judges exactly the published length.
    if have > remote.num_bytes:
        os.truncate(part, remote.num_bytes)


def _unreachable(remote: RemoteFile, part: Path, error: Exception) -> DownloadError:
    have = part.stat().st_size if part.exists() else 0
    reason = getattr(error, "reason", None) or error
    return DownloadError(
        f"`{remote.url}` could not be fetched ({reason}); {have:,} of {remote.num_bytes:,} bytes "
        "are here. Run the command again to continue, or fetch the file on another machine and "
        "name its folder with `--root`."
    )
