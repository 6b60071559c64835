"""Make `runs.jsonl.gz`, the records the report tests read: real runs, no invented number.

    python -m tests.unit.reports.make_runs

Two benchmarks on the embedded MNIST, few seeds, coarse curves. Every run is the library's own
learner; only the book-keeping here is small.
"""

import dataclasses
import gzip
import hashlib
import json
import platform
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import torch

import recollect
from recollect.benchmarks import Benchmark
from recollect.experiments.records.record import CurvePoint, MemoryPoint, Record
from recollect.learner import Learner, StepReport
from recollect.metrics import evaluate

RUNS = Path(__file__).with_name("runs.jsonl.gz")
ALL = ("van", "er", "er-p", "er-c", "er-pc", "er-mir", "gss", "er-pc-mir")
CELLS = [
    *(("mnist-split", method, 500, seed) for seed in range(6) for method in ALL),
    *(
        ("mnist-permuted", method, 500, seed)
        for seed in range(3)
        for method in ("er", "er-mir", "er-pc-mir")
    ),
    *(
        ("mnist-permuted", method, 100, seed)
        for seed in range(3)
        for method in ("er-mir", "er-pc-mir")
    ),
]


class Evictions:
    """Who left the memory since the last look."""

    def __init__(self) -> None:
        self.labels: list[int] = []
        self.ages: list[int] = []
        self.scores: list[float] = []

    def add(self, step: StepReport) -> None:
        self.labels += step.written.evicted_labels.tolist()
        self.ages += step.written.evicted_ages.tolist()
        self.scores += step.written.evicted_scores.tolist()

    def point(self, learner: Learner) -> MemoryPoint:
        memory = learner.memory
        assert memory is not None
        counts = memory.counts_by_class()
        gone = dict(sorted(Counter(self.labels).items()))
        scored = learner.storage is not None and bool((memory.score[: len(memory)] != 0).any())
        replays = memory.times_replayed[: len(memory)]
        found = MemoryPoint(
            seen=learner.seen,
            classes=tuple(counts),
            counts=tuple(counts.values()),
            age_quantiles=_quantiles(memory.ages()),
            replay_quantiles=_quantiles(replays),
            evicted_classes=tuple(gone),
            evicted_counts=tuple(gone.values()),
            evicted_mean_age=float(np.mean(self.ages)) if self.ages else None,
            evicted_mean_score=float(np.mean(self.scores)) if self.ages and scored else None,
        )
        self.labels, self.ages, self.scores = [], [], []
        return found


def _quantiles(values: torch.Tensor) -> tuple[float, ...]:
    shares = torch.tensor([0.0, 0.25, 0.5, 0.75, 1.0])
    return tuple(torch.quantile(values.float(), shares).tolist())


def run_cell(benchmark_name: str, method: str, capacity: int, seed: int) -> Record:
    """Run one cell and write down what came out."""
    wall, cpu = time.perf_counter(), time.process_time()
    started = datetime.now(UTC).isoformat(timespec="seconds")
    bench: Benchmark = recollect.benchmark(benchmark_name, seed=seed)
    model = bench.model()
    settings = bench.defaults
    sgd = torch.optim.SGD(model.parameters(), lr=settings.learning_rate)
    learner = recollect.method(
        method, model, sgd, capacity=capacity, seed=seed, transform=bench.transform
    )
    spec = {
        "benchmark": {"name": bench.name, "protocol": bench.protocol},
        "method": {"name": method, "capacity": capacity, "replay": 10, "passes": learner.passes},
        "optimizer": {"name": "sgd", "lr": settings.learning_rate},
        "batch_size": settings.batch_size,
    }
    canonical = json.dumps(spec, sort_keys=True, separators=(",", ":"))
    size = bench.stream.plan.segment_sizes[0]
    evictions, curve, memory, rows, step_times = Evictions(), [], [], [], []
    hits = num_examples = 0
    for inputs, labels in bench.stream:
        start = time.perf_counter()
        step = learner.observe(inputs, labels)
        step_times.append(time.perf_counter() - start)
        hits += int((step.updates[0].incoming_outputs.argmax(1) == labels).sum())
        num_examples += len(labels)
        evictions.add(step)
        if num_examples % (size // 2) == 0:
            met = -(-num_examples // size)
            counts = evaluate(learner.predict, bench.segments[:met], batch_size=2000)
            curve.append(CurvePoint(num_examples, *map(tuple, zip(*counts, strict=True))))
            if learner.memory is not None:
                memory.append(evictions.point(learner))
            if num_examples % size == 0:
                rows.append(tuple(correct for correct, _ in counts))
    p50, p90, p99 = np.quantile(step_times, [0.5, 0.9, 0.99]).tolist()
    return Record(
        spec_hash=hashlib.sha256(canonical.encode()).hexdigest()[:16],
        protocol=bench.protocol,
        benchmark=bench.name,
        method=method,
        seed=seed,
        capacity=0 if learner.memory is None else capacity,
        passes=learner.passes,
        spec=canonical,
        command=f"recollect run {bench.name} --method {method} --memory {capacity} "
        f"--seeds {seed}:{seed + 1}",
        status="done",
        error=None,
        segment_names=tuple(segment.name for segment in bench.segments),
        correct=tuple(rows),
        total=curve[-1].total,
        curve=tuple(curve),
        memory=tuple(memory),
        prequential_correct=hits,
        prequential_total=num_examples,
        num_steps=len(step_times),
        num_examples=num_examples,
        step_seconds=(p50, p90, p99),
        learn_seconds=sum(step_times),
        wall_seconds=time.perf_counter() - wall,
        cpu_seconds=time.process_time() - cpu,
        peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        num_resumes=0,
        threads=torch.get_num_threads(),
        versions={
            "recollect": "0.1.0",
            "torch": torch.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        commit=_commit(),
        machine={"system": platform.system(), "processor": platform.machine()},
        started_at=started,
    )


def _commit() -> str:
    asked = ["git", "rev-parse", "--short=12", "HEAD"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip() + "+"


def _all_runs() -> Iterator[Record]:
    for cell in CELLS:
        record = run_cell(*cell)
        sys.stderr.write(f"{cell} {record.wall_seconds:.1f} s\n")
        yield record


if __name__ == "__main__":
    torch.set_num_threads(1)
    lines = [json.dumps(dataclasses.asdict(record)) for record in _all_runs()]
    with open(RUNS, "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) as packed:
        packed.write("\n".join(lines).encode())
