"""MINI-S with one pass or two: every method of the paper under both, and VAN beside them.

A whole run takes hours, and one seed tells nothing under BatchNorm. There are two ways to make it
shorter. The first that we tried, all 20 segments at a fifth of their length (`SHORT_SPEC`), ends
with next to nothing kept of 19 of them, so there is nothing to compare. The second takes the first
five segments at their length, but for 250 examples each to judge by.
"""

from collections.abc import Mapping
from typing import Any, Final

from recollect.experiments.specs.configs import config_path
from recollect.experiments.specs.spec import load_spec
from studies.readings.reading import Reading
from studies.tables import PAPER_METHODS

SHORT_SPEC: Final[Mapping[str, Any]] = {
    "benchmark": "mini-imagenet-split",
    "memory": [2000],
    "stream": {"batch_size": 10, "examples_per_segment": 500, "validation_per_segment": 100},
    "model": {"name": "reduced-resnet18"},
    "optimizer": {"name": "sgd", "lr": 0.05},
    "learner": {"replay": 20, "iterations": 1, "passes": "joint"},
    "evaluation": {"on": "validation", "points": 20},
}
# Slots for a fifth of what streams past, as in the paper.
FIVE_SPEC: Final[Mapping[str, Any]] = {
    **SHORT_SPEC,
    "memory": [2250],
    "stream": {"batch_size": 10, "num_segments": 5, "validation_per_segment": 250},
}

_SEPARATE: Final[dict[str, Any]] = {"passes": "separate"}
# The methods of the paper that replay, with the settings of its tables.
_TABLES: Final = load_spec(config_path("mini-imagenet-split")).methods
_OPTIONS: Final[Mapping[str, dict[str, Any]]] = {
    name: dict(_TABLES[name].options) for name in PAPER_METHODS if name != "van"
}

_PAIRED: Final = tuple(
    reading
    for base, options in _OPTIONS.items()
    for reading in (
        Reading(base, "P12", base.upper(), base, options),
        Reading(
            f"{base}-separate",
            "P12",
            f"{base.upper()}, separate passes",
            base,
            {**options, **_SEPARATE},
            "er-separate",
        ),
    )
)
# VAN replays nothing, so there is nothing to pass apart.
READINGS: Final = (*_PAIRED, Reading("van", "", "VAN", "van"))
SHORT_READINGS: Final = _PAIRED[:2]
# A joint pass beside separate ones, for each method.
PAIRS: Final = tuple((base.upper(), base, f"{base}-separate") for base in _OPTIONS)
