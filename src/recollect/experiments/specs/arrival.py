"""How a stream arrives where that is unusual: blurred, repeated, long-tailed, not waiting."""

from typing import Any

from recollect.streams import Stream, blurred_classes, long_tailed, repeated_classes, within_budget


def arriving(stream: Stream, settings: dict[str, Any], seed: int) -> Stream:
    """Return a stream as `[stream]` says that it arrives.

    Args:
        stream: With sharp boundaries, nothing left out.
        settings: A cell's settings of the stream.
        seed: Of the run.
    """
    if "long_tail" in settings:
        stream = long_tailed(stream, rarest=settings["long_tail"], seed=seed)
    if "repeat" in settings:
        stream = repeated_classes(stream, chance=settings["repeat"], seed=seed)
    if "blur" in settings:
        disjoint = settings.get("disjoint", 0.0)
        stream = blurred_classes(stream, disjoint=disjoint, blur=settings["blur"], seed=seed)
    if "budget" in settings:
        stream = within_budget(stream, cost=settings["cost"], budget=settings["budget"])
    return stream
