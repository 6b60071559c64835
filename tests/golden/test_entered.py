"""Which modules of the library no golden trace enters, and why not."""

from collections.abc import Mapping
from typing import Final

import pytest
from tests.golden.entered import entered_modules, modules

_FILES: Final = "reads files, whose bytes tests/unit/datasets compares"
_FRONT: Final = "turns what people have into tensors: tests/unit/learner compare it with tensors"
_WORDS: Final = "words, and no numbers: tests/unit"

# A module, or a package with all it holds. A module that a trace enters must not stand here: take
# it out of the table, or name the package's other modules one by one.
NOT_ENTERED: Final[Mapping[str, str]] = {
    "recollect.cli": "the command: tests/unit/cli",
    "recollect.paper": "the paper's numbers beside records: tests/unit/reports and tests/docs",
    "recollect.reports": "shows records and changes none: tests/unit/reports",
    "recollect.experiments": "runs in processes of its own; committed records are its traces",
    "recollect.benchmarks": "picks data, model and settings: tests/unit/test_benchmarks.py",
    "recollect.integrations": "fits other libraries: tests/unit/integrations, tests/peers",
    "recollect.trackers": "writes down what reports say: tests/unit/trackers",
    "recollect.testing": "checks parts of the user's own: tests/conformance",
    "recollect.datasets.sources.arrays": _FILES,
    "recollect.datasets.catalogue": _FILES,
    "recollect.datasets.cifar10": _FILES,
    "recollect.datasets.cifar100": _FILES,
    "recollect.datasets.languages": _FILES,
    "recollect.datasets.sources.class_images": _FILES,
    "recollect.datasets.sources.classes": _FILES,
    "recollect.datasets.contact_sheet": _FILES,
    "recollect.datasets.dataset": _FILES,
    "recollect.datasets.files.decoding": _FILES,
    "recollect.datasets.files.digests": _FILES,
    "recollect.datasets.files.downloads": _FILES,
    "recollect.datasets.embedded_mnist": _FILES,
    "recollect.datasets.sources.folders": _FILES,
    "recollect.datasets.files.huggingface_cache": _FILES,
    "recollect.datasets.sources.idx": _FILES,
    "recollect.datasets.files.disk": _FILES,
    "recollect.datasets.mini_imagenet": _FILES,
    "recollect.datasets.mnist": _FILES,
    "recollect.datasets.sources.parquet": _FILES,
    "recollect.datasets.files.published_files": _FILES,
    "recollect.datasets.sources.reading": _FILES,
    "recollect.datasets.files.registries": _FILES,
    "recollect.datasets.files.restricted_pickle": _FILES,
    "recollect.datasets.files.roots": _FILES,
    "recollect.datasets.sources.layouts": _FILES,
    "recollect.datasets.sources.tables": _FILES,
    "recollect.datasets.files.unpacking": _FILES,
    "recollect.metrics.average_accuracy": "pure functions of counts: tests/unit/metrics",
    "recollect.metrics.evaluate": "asks a model and changes nothing: tests/unit/metrics",
    "recollect.metrics.forgetting": "pure functions of counts: tests/unit/metrics",
    "recollect.metrics.matrix": "counts: tests/unit/metrics",
    "recollect.metrics.over_the_stream": "pure functions of counts: tests/unit/metrics",
    "recollect.metrics.prequential": "counts: tests/unit/metrics",
    "recollect.metrics.transfer": "pure functions of counts: tests/unit/metrics",
    "recollect.errors": "classes of errors; no trace makes one",
    "recollect.gradients.one_by_one": "the oracle that the engine is tested against",
    "recollect.gradients.formulas.replay": "for nodes without a formula: tests/unit/gradients",
    "recollect.augment.per_example": "calls a user's own function: tests/unit/augment",
    "recollect.learner.label_map": _FRONT,
    "recollect.memory.columns.codec": _FRONT,
    "recollect.memory.columns.objects": _FRONT,
    "recollect.ragged": _FRONT,
    "recollect.memory.columns.column": "the base class of columns, all abstract",
    "recollect.memory.resizing": "draws a sample: tests/unit/learner/test_changed_learners.py",
    "recollect.learner.saved.rebuilding": "builds parts from names; each goes on to the same bits",
    "recollect.network.ways.contract": "what passes are asked; all abstract",
    "recollect.ranges": "where searches look: tests/unit/test_ranges.py",
    "recollect.choices": "what may be named: tests/unit/test_choices.py",
    "recollect.lazy": "imports names when they are asked for: tests/architecture",
    "recollect.suggestions": _WORDS,
    "recollect.learner.describing": _WORDS,
    "recollect.network.explain": _WORDS,
}


def covered(row: str) -> set[str]:
    return {module for module in modules() if module == row or module.startswith(f"{row}.")}


@pytest.mark.slow
@pytest.mark.timeout(1200)  # it traces every call: 40 s alone, minutes on a busy machine
def test_the_table_lists_exactly_the_modules_that_no_trace_enters() -> None:
    entered = entered_modules()
    excused = set[str]().union(*map(covered, NOT_ENTERED))
    assert sorted(modules() - entered - excused) == []  # each of these needs a scenario or a reason
    assert sorted(entered & excused) == []  # and these no longer need one


@pytest.mark.parametrize("row", NOT_ENTERED)
def test_what_is_excused_exists_and_once(row: str) -> None:
    assert covered(row)
    assert [other for other in NOT_ENTERED if covered(row) & covered(other)] == [row]
