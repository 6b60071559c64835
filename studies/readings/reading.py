"""One way to read what the paper leaves open."""

from dataclasses import dataclass, field
from typing import Any, Final

S1: Final = "highest"
S2: Final = "proportional"


@dataclass(frozen=True)
class Reading:
    """One reading.

    Attributes:
        name: What records call it.
        note: Which paper note it belongs to.
        label: What people call it.
        base: Which method it is.
        options: Settings that differ from the method's defaults.
        against: The reading it is compared with.
    """

    name: str
    note: str
    label: str
    base: str
    options: dict[str, Any] = field(default_factory=dict)
    against: str = "er"


def crs(pick: str, **options: Any) -> dict[str, Any]:
    """Return settings of CRS: c = 0.1 and MI at insertion where `options` do not say otherwise."""
    return {"pick": pick, "margin_weight": 0.1, "margins": "insertion", **options}
