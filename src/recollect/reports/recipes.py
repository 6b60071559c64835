"""Which runs may stand in the paper's tables: those made as the spec of their benchmark says."""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

from recollect.experiments.records.record import Record
from recollect.experiments.specs.cell import cells
from recollect.experiments.specs.configs import config_path
from recollect.experiments.specs.spec import load_spec
from recollect.reports.cells import flat_json, flat_spec

# With another of these a run answers another question than the table asks. Learning rates and the
# like are what one may choose, and the memory and the passes are what tables are about.
_FIXED: Final = (
    "model.name",
    "model.hidden",
    "model.norm",
    "stream.batch_size",
    "stream.data",
    "stream.num_segments",
    "evaluation.on",
    "optimizer.name",
    "optimizer.momentum",
    "learner.augment",
    "learner.dtype",
    "scheduler.name",
)
# With another of these it is the same question asked with more or less effort: shown, and said.
_SAID: Final[Mapping[str, str]] = {
    "stream.examples_per_segment": "examples per segment",
    "learner.iterations": "updates per batch",
    "learner.replay": "replayed examples per update",
}


@cache
def recipe(benchmark: str) -> dict[str, str]:
    """Return the settings of ER in the benchmark's own spec, as dotted keys and JSON values.

    Raises:
        ConfigError: No spec of that name comes with the package.
    """
    (er,) = cells(load_spec(config_path(benchmark)), methods=["er"])
    # What is usual in these is not written out.
    usual = {
        "model.norm": '"batch"',
        "stream.num_segments": '"all"',
        "learner.augment": "[]",
        "learner.dtype": '"float32"',
        "scheduler.name": "null",
    }
    return {**usual, **flat_json(er.canonical_json)}


def made_otherwise(record: Record) -> dict[str, str]:
    """Return what keeps a run out of the paper's tables, by key; nothing if it may stand there.

    A setting that the spec does not write out is the recipe's.
    """
    usual, own = recipe(record.benchmark), flat_spec(record)
    if own.get("model.name") == '"usual"':
        own["model.name"] = usual["model.name"]
    if own.get("model.hidden") == "null":  # the widths that the recipe writes out
        own["model.hidden"] = usual["model.hidden"]
    return {key: own[key] for key in _FIXED if own.get(key, usual[key]) != usual[key]}


def left_out(records: Iterable[Record]) -> list[str]:
    """Say how many runs are left out and why, a line for each reason."""
    reasons = Counter(
        (record.benchmark, tuple(otherwise.items()))
        for record in records
        if (otherwise := made_otherwise(record))
    )
    return [
        f"{benchmark}: {num} {'run is' if num == 1 else 'runs are'} left out; "
        f"{'its' if num == 1 else 'their'} "
        + " and ".join(f"{key} is {v}, the recipe's {recipe(benchmark)[key]}" for key, v in why)
        + "."
        for (benchmark, why), num in sorted(reasons.items())
    ]


def said_of(record: Record) -> list[str]:
    """Say what a run that is shown has more or less of than the recipe."""
    usual, own = recipe(record.benchmark), flat_spec(record)
    return [
        f"{record.benchmark}: run with {own[key]} {words}."
        for key, words in _SAID.items()
        # Without a memory nothing is replayed, which goes without saying.
        if own.get(key, usual[key]) not in (usual[key], "null", "0")
    ]
