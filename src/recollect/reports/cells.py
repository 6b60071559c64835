"""Records that differ by their seed only, as one cell; and the numbers read from a record."""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Final

from recollect.experiments.record import Record
from recollect.experiments.scores import accuracy_matrix
from recollect.metrics import average_accuracy, forgetting, learning_accuracy
from recollect.reports.names import benchmark_order, method_order, method_title
from recollect.reports.statistics import Summary, summarise

_MOST_SETTINGS: Final = 2  # differing settings that a label can carry


@dataclass(frozen=True)
class CellRuns:
    """All good runs of one spec: same benchmark, method and settings, different seeds.

    Attributes:
        benchmark: Name of the benchmark.
        protocol: Name of its protocol.
        method: Name of the method.
        capacity: Slots of the memory.
        passes: How examples passed the network.
        spec_hash: Of the spec they share.
        label: What people call it among the cells it was grouped with; unique per benchmark.
        records: By seed, ascending; never empty.

    Numbers are worked out once: a table of k methods asks for each of them k times.
    """

    benchmark: str
    protocol: str
    method: str
    capacity: int
    passes: str
    spec_hash: str
    label: str
    records: tuple[Record, ...]
    _known: dict[Callable[[Record], float], dict[int, float]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def name(self) -> str:
        """A name that is safe in an identifier and unique within a store."""
        return f"{self.benchmark}-{self.protocol}-{self.method}-{self.capacity}-{self.spec_hash}"

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds, ascending."""
        return tuple(record.seed for record in self.records)

    def by_seed(self, number: Callable[[Record], float]) -> dict[int, float]:
        """Return a number of each run, by seed."""
        if number not in self._known:
            self._known[number] = {record.seed: number(record) for record in self.records}
        return self._known[number]

    def summary(self, number: Callable[[Record], float]) -> Summary:
        """Return mean and interval of a number over the seeds."""
        return summarise(list(self.by_seed(number).values()))


def final_accuracy(record: Record) -> float:
    """Average accuracy over all segments after the last one, from 0 to 1."""
    return average_accuracy(accuracy_matrix(record))


def final_forgetting(record: Record) -> float:
    """Forgetting by the cited definition (note P9), from -1 to 1."""
    return forgetting(accuracy_matrix(record))


def accuracy_just_learnt(record: Record) -> float:
    """Average over segments of the accuracy right after each was learnt, from 0 to 1."""
    return learning_accuracy(accuracy_matrix(record))


def accuracy_over_time(record: Record) -> dict[int, float]:
    """Average accuracy over the segments met so far, by stream examples seen."""
    return {
        point.seen: fmean(c / t for c, t in zip(point.correct, point.total, strict=True))
        for point in record.curve
    }


def anytime_accuracy(record: Record) -> float | None:
    """Mean over time of that curve; None for a run without one."""
    curve = accuracy_over_time(record)
    return fmean(curve.values()) if curve else None


def prequential_accuracy(record: Record) -> float | None:
    """Share of incoming examples that were right before they were learnt."""
    if not record.prequential_total:
        return None
    return record.prequential_correct / record.prequential_total


def examples_per_second(record: Record) -> float | None:
    """Stream examples a second of learning, evaluation aside."""
    return record.num_examples / record.learn_seconds if record.learn_seconds else None


def latest_runs(records: Iterable[Record]) -> list[Record]:
    """Keep one record a run: a good one rather than a failed one, then the one started last.

    An append-only store may hold a failed try and the good one that followed.
    """
    kept: dict[tuple[object, ...], Record] = {}
    for record in records:
        identity = (*_cell_key(record), record.seed)
        rival = kept.get(identity)
        if rival is None or _rank(record) >= _rank(rival):
            kept[identity] = record
    return list(kept.values())


def failed_runs(records: Iterable[Record]) -> list[Record]:
    """Return the runs that failed and were not done since."""
    return [record for record in latest_runs(records) if record.status != "done"]


def group_cells(records: Iterable[Record]) -> list[CellRuns]:
    """Group good runs into cells, benchmarks and methods in the paper's order.

    Runs of different specs are never averaged together. Cells of one benchmark that share their
    method are told apart by capacity, passes, protocol, then by the settings that differ.
    """
    groups: defaultdict[tuple[str, ...], list[Record]] = defaultdict(list)
    for record in latest_runs(records):
        if record.status == "done":
            groups[_cell_key(record)].append(record)
    labels = _labels({key: group[0] for key, group in groups.items()})
    cells = [
        CellRuns(
            benchmark=group[0].benchmark,
            protocol=group[0].protocol,
            method=group[0].method,
            capacity=group[0].capacity,
            passes=group[0].passes,
            spec_hash=group[0].spec_hash,
            label=labels[key],
            records=tuple(sorted(group, key=lambda record: record.seed)),
        )
        for key, group in groups.items()
    ]
    return sorted(
        cells,
        key=lambda c: (
            benchmark_order(c.benchmark),
            method_order(c.method),
            c.protocol,
            -c.capacity,
            c.passes,
            c.label,
        ),
    )


def by_benchmark(cells: Iterable[CellRuns]) -> dict[str, list[CellRuns]]:
    """Return the cells of each benchmark, in order."""
    found: dict[str, list[CellRuns]] = {}
    for cell in cells:
        found.setdefault(cell.benchmark, []).append(cell)
    return found


def _rank(record: Record) -> tuple[bool, str]:
    return record.status == "done", record.started_at


def _cell_key(record: Record) -> tuple[str, ...]:
    capacity, schema = str(record.capacity), record.protocol
    return record.benchmark, record.method, schema, capacity, record.passes, record.spec_hash


def _labels(firsts: Mapping[tuple[str, ...], Record]) -> dict[tuple[str, ...], str]:
    """Label each cell with its method and whatever sets it apart from its namesakes."""
    labels = {}
    for key, record in firsts.items():
        namesakes = [
            other
            for other in firsts.values()
            if (other.benchmark, other.method) == (record.benchmark, record.method)
        ]
        parts = [method_title(record.method), *_differences(record, namesakes)]
        labels[key] = " · ".join(parts)
    return labels


def _differences(record: Record, namesakes: Sequence[Record]) -> list[str]:
    if len(namesakes) == 1:
        return []
    parts = []
    if len({other.capacity for other in namesakes}) > 1:
        parts.append(f"{record.capacity} slots")
    if len({other.passes for other in namesakes}) > 1:
        parts.append(record.passes)
    if len({other.protocol for other in namesakes}) > 1:
        parts.append(record.protocol)
    alike = [
        other
        for other in namesakes
        if (other.capacity, other.passes, other.protocol)
        == (record.capacity, record.passes, record.protocol)
    ]
    if len(alike) > 1:
        parts += _differing_settings(record, alike)
    return parts


def _differing_settings(record: Record, alike: Sequence[Record]) -> list[str]:
    specs = [flat_spec(other) for other in alike]
    own = flat_spec(record)
    keys = [key for key in own if len({spec.get(key) for spec in specs}) > 1]
    if not 1 <= len(keys) <= _MOST_SETTINGS:
        return [f"spec {record.spec_hash[:8]}"]
    return [f"{key.rsplit('.', 1)[-1]}={_shown(own[key])}" for key in keys]


def _shown(value: str) -> str:
    """Shorten a digest; it is there to tell two apart."""
    return value.strip('"')[:8] if re.fullmatch(r'"[0-9a-f]{64}"', value) else value


def flat_spec(record: Record) -> dict[str, str]:
    """Return the spec as dotted keys and JSON values; nothing if it is not JSON."""
    try:
        spec = json.loads(record.spec)
    except json.JSONDecodeError:
        return {}
    flat: dict[str, str] = {}
    _flatten(spec, "", flat)
    return flat


def _flatten(value: object, prefix: str, flat: dict[str, str]) -> None:
    if isinstance(value, dict):
        for key, entry in value.items():
            _flatten(entry, f"{prefix}.{key}" if prefix else str(key), flat)
    else:
        flat[prefix] = json.dumps(value)
