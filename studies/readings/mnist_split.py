"""Readings of the paper on MNIST-S, at the learning rate of its lineage."""

from collections.abc import Mapping
from typing import Any, Final

from studies.readings.reading import S1, S2, Reading, crs

SPEC: Final[Mapping[str, Any]] = {
    "benchmark": "mnist-split",
    "memory": [500],
    "stream": {"batch_size": 10, "validation_per_segment": 1000},
    "model": {"name": "mlp", "hidden": [100, 100]},
    "optimizer": {"name": "sgd", "lr": 0.05},
    "learner": {"replay": 10, "iterations": 1, "passes": "joint"},
    "evaluation": {"on": "validation", "points": 10},
}


_ALONE: Final[dict[str, Any]] = {"margins": "never", "margin_weight": 0.0}
_PGD: Final[dict[str, Any]] = {"step_size": 10.0, "norm_floor": 1.0, "target_floor": 3.0}

READINGS: Final = (
    Reading("er", "", "ER", "er"),
    Reading("p-floor-3", "P2", "ER-P, floor on |w| 3", "er-p", _PGD),
    Reading("p-floor-1", "P2", "ER-P, floor on |w| 1", "er-p", {**_PGD, "target_floor": 1.0}),
    Reading("p-floor-01", "P2", "ER-P, floor on |w| 0.1", "er-p", {**_PGD, "target_floor": 0.1}),
    Reading(
        "p-no-floor",
        "P2",
        "ER-P, no floor to speak of (1e-6)",
        "er-p",
        {**_PGD, "target_floor": 1e-6},
    ),
    Reading("p-10-steps", "P2", "ER-P, 10 proximal steps", "er-p", {**_PGD, "steps": 10}),
    Reading("p-2-groups", "P2", "ER-P, 2 groups of 5", "er-p", {**_PGD, "groups": 2}),
    Reading("s1-ex", "P6", "ER-C, s1, EX alone", "er-c", crs(S1, **_ALONE)),
    Reading(
        "s1-ex-age-100",
        "P6",
        "ER-C, s1, EX alone, age + 100",
        "er-c",
        crs(S1, **_ALONE, age_offset=100.0),
    ),
    Reading("s2-ex", "P6", "ER-C, s2, EX alone", "er-c", crs(S2, **_ALONE)),
    Reading("s1-insertion", "P5", "ER-C, s1, MI at insertion, c 0.1", "er-c", crs(S1)),
    Reading("s1-replay", "P5", "ER-C, s1, MI at replay, c 0.1", "er-c", crs(S1, margins="replay")),
    Reading("s1-both", "P5", "ER-C, s1, MI at both, c 0.1", "er-c", crs(S1, margins="both")),
    Reading("s1-all", "P5", "ER-C, s1, MI of all, c 0.1", "er-c", crs(S1, margins="all")),
    Reading(
        "s1-insertion-c-1",
        "P5",
        "ER-C, s1, MI at insertion, c 1",
        "er-c",
        crs(S1, margin_weight=1.0),
    ),
    # Heavier than replay rates: on CIFAR10-S, where MI spreads further, c = 0.1 is that already.
    Reading(
        "s1-replay-c-1",
        "P5",
        "ER-C, s1, MI at replay, c 1",
        "er-c",
        crs(S1, margins="replay", margin_weight=1.0),
    ),
    Reading(
        "s1-replay-c-10",
        "P5",
        "ER-C, s1, MI at replay, c 10",
        "er-c",
        crs(S1, margins="replay", margin_weight=10.0),
    ),
    Reading("s2-clamp", "P4", "ER-C, s2 clamped, MI at insertion, c 0.1", "er-c", crs(S2)),
    Reading(
        "s2-shift",
        "P4",
        "ER-C, s2 shifted, MI at insertion, c 0.1",
        "er-c",
        crs(S2, negative="shift"),
    ),
    Reading(
        "s1-equal",
        "P7",
        "ER-C, s1 within class, MI at insertion",
        "er-c",
        crs(S1, within_class=True),
    ),
    Reading(
        "s2-equal",
        "P7",
        "ER-C, s2 within class, MI at insertion",
        "er-c",
        crs(S2, within_class=True),
    ),
    # At the learning rate that suits ER: is there still something to gain?
    Reading("er-fast", "P11", "ER, learning rate 0.1", "er", {"lr": 0.1}),
    Reading("p-fast", "P11", "ER-P, learning rate 0.1", "er-p", {**_PGD, "lr": 0.1}, "er-fast"),
    Reading(
        "s1-fast",
        "P11",
        "ER-C, s1, MI at insertion, learning rate 0.1",
        "er-c",
        crs(S1, lr=0.1),
        "er-fast",
    ),
    Reading(
        "s2-fast",
        "P11",
        "ER-C, s2 shifted, MI at insertion, learning rate 0.1",
        "er-c",
        crs(S2, negative="shift", lr=0.1),
        "er-fast",
    ),
    Reading(
        "s1-equal-fast",
        "P11",
        "ER-C, s1 within class, learning rate 0.1",
        "er-c",
        crs(S1, within_class=True, lr=0.1),
        "er-fast",
    ),
    Reading(
        "separate", "P12", "ER, separate passes (no BatchNorm here)", "er", {"passes": "separate"}
    ),
)
