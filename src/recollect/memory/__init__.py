"""Slots that hold examples as they arrived. Mechanics only, no policy."""

from recollect.memory.columns import Codec
from recollect.memory.declared import MemoryColumn
from recollect.memory.memory import Memory
from recollect.memory.slot import Slot

__all__ = ["Codec", "Memory", "MemoryColumn", "Slot"]
