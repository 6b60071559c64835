"""WHICH SLOT a newcomer takes."""

from recollect.choices import MarginTiming
from recollect.storage.class_balanced import ClassBalanced
from recollect.storage.confidence_reservoir import ConfidenceReservoir
from recollect.storage.gss_greedy import GSSGreedy
from recollect.storage.reservoir import Reservoir
from recollect.storage.storage import Evidence, Placement, Storage

__all__ = [
    "ClassBalanced",
    "ConfidenceReservoir",
    "Evidence",
    "GSSGreedy",
    "MarginTiming",
    "Placement",
    "Reservoir",
    "Storage",
]
