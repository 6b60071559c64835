"""Small data of a user's: a folder of photos, a table, arrays, a model and a function."""

from pathlib import Path

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from PIL import Image

CLASSES = ("cat", "dog", "fox", "owl")

NET = """
from torch import nn


class Net(nn.Module):
    def __init__(self, num_classes: int, in_channels: int, width: int = 4):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(in_channels, width, 3, stride=2), nn.ReLU())
        self.head = nn.Linear(4 * width, num_classes)

    def forward(self, images):
        maps = nn.functional.adaptive_avg_pool2d(self.body(images), 2)
        return self.head(maps.flatten(1))


def number(num_classes: int):
    return num_classes
"""

FUNCTION = """
import torch

from recollect.benchmarks import benchmark_from, with_test_part
from recollect.datasets import Examples


def make(seed: int, spread: float = 0.1, num_classes: int = 4):
    drawn = torch.Generator().manual_seed(7)
    labels = torch.arange(120) % num_classes
    inputs = torch.eye(8)[labels] + spread * torch.randn(120, 8, generator=drawn)
    data = with_test_part(Examples(inputs, labels))
    return benchmark_from(data, classes_per_segment=2, seed=seed)


def nothing(seed: int):
    return None
"""


def write_photos(folder: Path, *, each: int = 10, side: int = 12) -> Path:
    """Write a folder of photos, each class of a colour of its own, named in no order."""
    drawn = np.random.default_rng(0)
    for number, name in enumerate(CLASSES):
        (folder / name).mkdir(parents=True)
        for photo in range(each):
            colour = np.full((side, side, 3), 40.0)
            colour[..., number % 3] += 60 + 50 * (number // 3)
            pixels = (colour + drawn.normal(0, 20, colour.shape)).clip(0, 255).astype(np.uint8)
            file = f"IMG_{(number + photo * 7) % 100:03d}_{number}.png"
            Image.fromarray(pixels).save(folder / name / file)
    return folder


def write_table(path: Path, *, rows: int = 120) -> Path:
    """Write a Parquet file of three measurements, a kind, a city and a day."""
    drawn = np.random.default_rng(0)
    kinds = drawn.integers(0, 3, rows)
    means = np.eye(3)[kinds] * [300.0, 3.0, 0.03]
    measured = means + drawn.normal(0, 1, (rows, 3)) * [100.0, 1.0, 0.01]
    columns = {
        **{name: measured[:, k] for k, name in enumerate(("width", "height", "weight"))},
        "kind": np.array(["ash", "elm", "oak"])[kinds],
        "city": np.array(["Bern", "Oslo", "Rome"])[np.arange(rows) % 3],
        "day": pa.array(np.arange(rows)[::-1] * 86_400_000_000, pa.timestamp("us")),
    }
    pq.write_table(pa.table(columns), path)
    return path


def write_arrays(path: Path, *, rows: int = 80) -> Path:
    """Write an .npz file of inputs `x`, labels `y` and moments `when`."""
    drawn = np.random.default_rng(0)
    labels = np.arange(rows) % 4
    inputs = np.eye(4)[labels] + drawn.normal(0, 0.1, (rows, 4))
    np.savez(path, x=inputs, y=labels, when=np.arange(rows)[::-1])
    return path
