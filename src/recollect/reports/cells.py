"""Records that differ by their seed only, as one cell; and the numbers read from a record."""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Final

from recollect.experiments.records.record import Record
from recollect.experiments.records.scores import accuracy_matrix, anytime_area, looks
from recollect.metrics import (
    average_accuracy,
    forgetting,
    learning_accuracy,
    minimum_accuracy,
    worst_case_accuracy,
)
from recollect.reports.names import benchmark_order, method_order, method_title
from recollect.reports.statistics import (
    PairedDifference,
    Summary,
    paired_difference,
    summarise,
)

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
        label: Its name among the cells it was grouped with; unique per benchmark.
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

    # The other cell is kept with the difference, so that its id stays its own.
    _pairs: dict[tuple[Callable[[Record], float], int], tuple["CellRuns", PairedDifference]] = (
        field(default_factory=dict, init=False, repr=False, compare=False)
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

    def less(self, other: "CellRuns", number: Callable[[Record], float]) -> PairedDifference:
        """Return by how much a number is above another cell's, paired over their seeds.

        Each pair is tested once: the other way round the signs are the other way round.
        """
        key = (number, id(other))
        if key not in self._pairs:
            difference = paired_difference(self.by_seed(number), other.by_seed(number))
            self._pairs[key] = (other, difference)
            other._pairs[number, id(self)] = (self, difference.turned())
        return self._pairs[key][1]

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


def area_under_curve(record: Record) -> float | None:
    """Area under that curve, which is its mean over the stream; None for a run without one."""
    return anytime_area(record) if record.curve else None


def minimum_of_curve(record: Record) -> float | None:
    """Accuracy on segments that were over, at their worst look; None without such looks."""
    seen = looks(record)
    return minimum_accuracy(seen) if seen and len(seen[-1]) > 1 else None


def worst_case_of_curve(record: Record) -> float | None:
    """Accuracy on the last segment, and on the others at their worst; None without a curve."""
    seen = looks(record)
    return worst_case_accuracy(seen) if seen else None


def share_seen(record: Record) -> float | None:
    """Share of the batches that a budget leaves a method time for; None if the stream waits."""
    try:
        stream = json.loads(record.spec).get("stream", {})
    except json.JSONDecodeError:
        return None
    budget = stream.get("budget")
    return None if budget is None else min(1.0, budget / stream["cost"])


def prequential_accuracy(record: Record) -> float | None:
    """Share of incoming examples that were right before they were learnt."""
    if not record.prequential_total:
        return None
    return record.prequential_correct / record.prequential_total


def examples_per_second(record: Record) -> float | None:
    """Stream examples per second of learning, evaluation aside."""
    return record.num_examples / record.learn_seconds if record.learn_seconds else None


def latest_runs(records: Iterable[Record]) -> list[Record]:
    """Keep one record per run: a good one rather than a failed one, then the one started last.

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
    return [record for record in latest_runs(records) if record.status == "failed"]


def group_cells(records: Iterable[Record]) -> list[CellRuns]:
    """Group good runs into cells, benchmarks and methods in the paper's order.

    Runs of different specs are never averaged together. Cells of one benchmark name their
    capacity, passes and protocol where these differ among them; cells that share even those and
    their method are told apart by the settings that differ.
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


def most_comparable(cells: Sequence[CellRuns]) -> list[CellRuns]:
    """Return the cells of a benchmark that most of them can be compared with fairly.

    That is the largest group of one memory size, passes and protocol; of several as large the one
    with ER, then the one with most runs. Cells without a memory belong to any group of their
    protocol.
    """
    groups: dict[tuple[object, ...], list[CellRuns]] = {}
    for cell in [cell for cell in cells if cell.capacity] or cells:
        groups.setdefault(_conditions(cell), []).append(cell)
    chosen = max(groups.values(), key=_group_rank)[0]
    return [
        cell
        for cell in cells
        if _conditions(cell) == _conditions(chosen)
        or (not cell.capacity and cell.protocol == chosen.protocol)
    ]


def _conditions(cell: CellRuns) -> tuple[object, ...]:
    return cell.capacity, cell.passes, cell.protocol


def _group_rank(cells: Sequence[CellRuns]) -> tuple[int, bool, int]:
    has_er = any(cell.method == "er" for cell in cells)
    return len(cells), has_er, sum(len(cell.records) for cell in cells)


def _rank(record: Record) -> tuple[bool, str]:
    return record.status == "done", record.started_at


def _cell_key(record: Record) -> tuple[str, ...]:
    capacity, schema = str(record.capacity), record.protocol
    return record.benchmark, record.method, schema, capacity, record.passes, record.spec_hash


def _labels(firsts: Mapping[tuple[str, ...], Record]) -> dict[tuple[str, ...], str]:
    """Label each cell with its method and whatever sets it apart from those it stands beside."""
    labels = {}
    for key, record in firsts.items():
        company = [other for other in firsts.values() if other.benchmark == record.benchmark]
        labels[key] = " · ".join([method_title(record.method), *_differences(record, company)])
    return labels


def _differences(record: Record, company: Sequence[Record]) -> list[str]:
    """Name memory, passes and protocol if they differ in the company, then settings of namesakes.

    A method with one size says it as well where others have more: readers compare across methods.
    """
    namesakes = [other for other in company if other.method == record.method]
    rivals = [
        other
        for other in company
        if other.method == record.method or (other.capacity and record.capacity)
    ]
    parts = []
    if len({other.capacity for other in rivals}) > 1:
        parts.append(f"{record.capacity} slots")
    if len({other.passes for other in rivals}) > 1:
        parts.append(record.passes)
    if len({other.protocol for other in company}) > 1:
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
    specs = [deciding_settings(other) for other in alike]
    own = deciding_settings(record)
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
        return flat_json(record.spec)
    except json.JSONDecodeError:
        return {}


def flat_json(text: str) -> dict[str, str]:
    """Return JSON as dotted keys and JSON values.

    Example:
        >>> flat_json('{"optimizer": {"name": "sgd", "lr": 0.1}}')
        {'optimizer.name': '"sgd"', 'optimizer.lr': '0.1'}

    Raises:
        json.JSONDecodeError: It is no JSON.
    """
    flat: dict[str, str] = {}
    _flatten(json.loads(text), "", flat)
    return flat


def deciding_settings(record: Record) -> dict[str, str]:
    """Return the flat spec less what decides no number and is not hashed either.

    That is how values were found, and the folder that a user's file or data was in. The names of
    file and class stay: two classes of one file share its digest.
    """
    return {
        key: re.sub(r'^".*/', '"', value) if _is_place(key) else value
        for key, value in flat_spec(record).items()
        if key.split(".")[0] != "found"
    }


def _is_place(key: str) -> bool:
    return key.startswith(("parts.", "data.")) and key.endswith(".where")


def _flatten(value: object, prefix: str, flat: dict[str, str]) -> None:
    if isinstance(value, dict):
        for key, entry in value.items():
            _flatten(entry, f"{prefix}.{key}" if prefix else str(key), flat)
    else:
        flat[prefix] = json.dumps(value)
