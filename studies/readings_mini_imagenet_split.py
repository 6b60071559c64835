"""Readings of the paper on MINI-S: one pass or two, and what PGD and CRS add under each.

A whole run takes hours, and one seed tells nothing under BatchNorm. So streams are a fifth as long:
500 examples a segment instead of 2500, and 2000 slots instead of 10000. All segments are there, and
the memory holds the same share of what has streamed past.
"""

from collections.abc import Mapping
from typing import Any, Final

from studies.reading import S1, Reading, crs

SPEC: Final[Mapping[str, Any]] = {
    "benchmark": "mini-imagenet-split",
    "memory": [2000],
    "stream": {"batch_size": 10, "examples_per_segment": 500, "validation_per_segment": 100},
    "model": {"name": "reduced-resnet18"},
    "optimizer": {"name": "sgd", "lr": 0.05},
    "learner": {"replay": 20, "iterations": 1, "passes": "joint"},
    "evaluation": {"on": "validation", "points": 20},
}

_SEPARATE: Final[dict[str, Any]] = {"passes": "separate"}
# The tables' PGD, and the reading of CRS that gains on CIFAR10-S.
_PGD: Final[dict[str, Any]] = {"step_size": 20.0, "norm_floor": 10.0, "target_floor": 5.0}
_CRS: Final = crs(S1, margins="replay")

READINGS: Final = (
    Reading("er", "", "ER", "er"),
    Reading("er-separate", "P12", "ER, separate passes", "er", _SEPARATE),
    Reading("p", "P8", "ER-P", "er-p", _PGD),
    Reading(
        "p-separate", "P8", "ER-P, separate passes", "er-p", {**_PGD, **_SEPARATE}, "er-separate"
    ),
    Reading("s1-replay", "P5", "ER-C, s1, MI at replay", "er-c", _CRS),
    Reading(
        "s1-replay-separate",
        "P5",
        "ER-C, s1, MI at replay, separate passes",
        "er-c",
        {**_CRS, **_SEPARATE},
        "er-separate",
    ),
)
