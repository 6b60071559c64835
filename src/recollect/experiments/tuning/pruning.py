"""When a run is not worth its rest.

Two runs are compared only where that is fair: with the same seed, so on the same stream, and at the
same position of it. A run is pruned if its recent any-time accuracy there is below the median of
the earlier trials that came so far. Recent is the mean over the latter half of what was seen:
single points put good settings below the median by chance (docs/tuning.md). Not before half of the
stream: early accuracies are over few classes, and reward settings that learn fast and forget.
"""

from collections import defaultdict
from collections.abc import Sequence
from statistics import median
from typing import Final

from recollect.experiments.records.scores import recent_accuracy
from recollect.experiments.tuning.suggest import Curve, Past

AFTER: Final = 0.5  # of the stream
PEERS: Final = 4  # trials that a median is taken of, at least


def bars(seen: Sequence[Past], seeds: Sequence[int]) -> dict[int, Curve]:
    """Return the accuracies below which a trial's runs are pruned, by seed and position.

    Args:
        seen: The trials that it is compared with, all over.
        seeds: Of its runs.
    """
    found = {}
    for seed in seeds:
        curves = [past.curves[seed] for past in seen if seed in past.curves]
        whole = [past.curves.get(seed) for past in seen if past.state == "complete"]
        length = max((curve[-1][0] for curve in whole if curve), default=0)
        at: defaultdict[int, list[float]] = defaultdict(list)
        for curve in curves:
            for index, (position, _) in enumerate(curve):
                at[position].append(recent_accuracy(curve[: index + 1]))
        found[seed] = tuple(
            (position, median(values))
            for position, values in sorted(at.items())
            if 0 < AFTER * length <= position < length and len(values) >= PEERS
        )
    return {seed: curve for seed, curve in found.items() if curve}
