"""Decode a small mini-ImageNet into RECOLLECT_DATA, in a process that a test may kill.

python decode_worker.py ZIP NUM_CLASSES TRAIN_A_CLASS TEST_A_CLASS
"""

import sys
from pathlib import Path

from recollect.datasets.files.downloads import no_progress
from recollect.datasets.mini_imagenet import MiniImageNet

if __name__ == "__main__":
    archive, num_classes, train_per_class, test_per_class = sys.argv[1:]
    small = MiniImageNet(
        num_classes=int(num_classes),
        train_per_class=int(train_per_class),
        test_per_class=int(test_per_class),
    )
    small.fetch(Path(archive), no_progress)
