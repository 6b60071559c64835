"""Does the margin increment point at what may go? CRS on MNIST-S with either sign of c.

The paper lets examples go whose margin rose most: they are called easy. With a negative c those
whose margin rose least go first. Victims are chosen within the class that a reservoir would have
hit (note P7), so that nothing but the choice of examples differs, and |c| = 1 outweighs EX. At the
lineage's learning rate and at one near ER's own. A look at twenty seeds of the other readings of
MNIST-S suggested it; its seeds are others.
"""

from typing import Final, NamedTuple

from studies.readings.mnist_split import SPEC as SPEC
from studies.readings.reading import S1, Reading, crs


class Rate(NamedTuple):
    """A learning rate, and what names and labels of its readings end with."""

    value: float
    suffix: str
    label: str


FIRST_SEED: Final = 3100
RATES: Final = (Rate(0.05, "", ""), Rate(0.1, "-fast", ", learning rate 0.1"))
MARGINS: Final = ("insertion", "replay")
_SIGNS: Final = (("up", 1.0), ("down", -1.0))


def _readings(rate: Rate) -> list[Reading]:
    er = f"er{rate.suffix}"
    readings = [Reading(er, "", f"ER{rate.label}", "er", {"lr": rate.value})]

    def add(name: str, label: str, margins: str, weight: float) -> None:
        options = crs(S1, margins=margins, margin_weight=weight, within_class=True, lr=rate.value)
        readings.append(
            Reading(name + rate.suffix, "P7", label + rate.label, "er-c", options, against=er)
        )

    add("ex", "EX alone", "never", 0.0)
    for margins in MARGINS:
        for name, weight in _SIGNS:
            add(f"{margins}-{name}", f"MI at {margins}, c {weight:g}", margins, weight)
    return readings


READINGS: Final = tuple(reading for rate in RATES for reading in _readings(rate))
