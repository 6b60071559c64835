"""Checks to run on a storage, retrieval or rule of your own; each raises what it found broken."""

from recollect.testing.retrieval import check_retrieval
from recollect.testing.rule import check_rule
from recollect.testing.storage import check_storage

__all__ = ["check_retrieval", "check_rule", "check_storage"]
