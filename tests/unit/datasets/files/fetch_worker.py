"""Fetch one file from a server into RECOLLECT_DATA, in a process that a test may kill.

python fetch_worker.py URL MD5 NUM_BYTES
"""

import sys
from pathlib import Path

import torch

from recollect.datasets import Examples, LabelledData
from recollect.datasets.files.downloads import Progress, RemoteFile, download, no_progress
from recollect.datasets.files.published_files import Contents, PublishedFiles, Way
from recollect.datasets.sources.listing import About


def one_file_set(remote: RemoteFile, *earlier: Way) -> PublishedFiles:
    def from_page(scratch: Path, progress: Progress) -> Contents:
        download(remote, scratch / "bytes", progress=progress)
        return {"bytes": (scratch / "bytes").read_bytes()}

    def decode(contents: Contents) -> LabelledData:
        inputs = torch.frombuffer(bytearray(contents["bytes"]), dtype=torch.uint8)
        examples = Examples(inputs, torch.zeros(len(inputs), dtype=torch.int64))
        return LabelledData("tiny", examples, examples, ("byte",))

    return PublishedFiles(
        about=About("tiny", "bytes", "none", "http://localhost", remote.num_bytes),
        md5s={"bytes": remote.md5},
        layouts="a file `bytes`",
        find_folder=lambda root: root if (root / "bytes").is_file() else None,
        read_folder=lambda folder: {"bytes": (folder / "bytes").read_bytes()},
        ways=(*earlier, Way("the page", from_page)),
        decode=decode,
    )


if __name__ == "__main__":
    url, md5, num_bytes = sys.argv[1:]
    one_file_set(RemoteFile(url, md5, int(num_bytes))).fetch(None, no_progress)
