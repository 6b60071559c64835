"""WHICH SLOTS are replayed."""

from recollect.retrieval.maximally_interfered import MaximallyInterfered
from recollect.retrieval.retrieval import Probe, Retrieval
from recollect.retrieval.uniform import Uniform

__all__ = ["MaximallyInterfered", "Probe", "Retrieval", "Uniform"]
