"""Avalanche's ER, MIR and GSS on its online stream: mini-experiences of ten examples, one pass."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from avalanche.benchmarks import benchmark_from_datasets, split_online_stream
from avalanche.benchmarks.utils import (
    _make_taskaware_tensor_classification_dataset as tensor_dataset,
)
from avalanche.training.plugins import (
    EvaluationPlugin,
    GSS_greedyPlugin,
    MIRPlugin,
    ReplayPlugin,
    gss_greedy,
)
from avalanche.training.plugins.evaluation import default_evaluator
from avalanche.training.storage_policy import ReservoirSamplingBuffer
from avalanche.training.supervised import Naive
from torch import Tensor

from perf.peers.models import BATCH, CAPACITY, EXAMPLES, LEARNING_RATE, REPLAY, model_for


def plugin_for(method: str, shape: str) -> Any:
    if method in ("er", "er-with-metrics"):
        return ReplayPlugin(
            CAPACITY,
            batch_size=BATCH,
            batch_size_mem=REPLAY,
            storage_policy=ReservoirSamplingBuffer(CAPACITY),
        )
    if method == "mir":
        return MIRPlugin(batch_size_mem=REPLAY, mem_size=CAPACITY, subsample=50)
    if method == "gss":  # ten batches of gradients to compare with, as ours
        return GSS_greedyPlugin(CAPACITY, mem_strength=10, input_size=list(EXAMPLES[shape]))
    raise ValueError(f"`method` is {method!r}; choose er, mir or gss.")


# GSS replays 32 examples whatever is asked. Ten, as everybody here, is in its favour.
gss_greedy.ReplayDataLoader = partial(gss_greedy.ReplayDataLoader, batch_size_mem=REPLAY)
# From the second mini-experience on GSS fails ("max() arg is an empty sequence") until its memory
# holds as many examples as a batch with its replay, so the first experience is longer.
FIRST_OF_GSS = 50


def steps(method: str, shape: str, inputs: Tensor, labels: Tensor) -> Iterator[None]:
    """Build a strategy; it learns from ten more examples each time the next item is asked for."""
    model = model_for(shape)
    # Without metrics and logging, its bare training loop; or with those it has by default.
    evaluator = default_evaluator() if method == "er-with-metrics" else EvaluationPlugin()
    strategy = Naive(
        model=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=LEARNING_RATE),
        train_mb_size=BATCH,
        train_epochs=1,
        plugins=[plugin_for(method, shape)],
        evaluator=evaluator,
    )
    first = FIRST_OF_GSS if method == "gss" else 0
    longer = experiences(inputs[:first], labels[:first]) if first else ()
    rest = experiences(inputs[first:], labels[first:])
    return trained(strategy, longer, rest)


def trained(strategy: Naive, longer: Any, rest: Any) -> Iterator[None]:
    """Train on the longer first experience, if there is one, then on mini-experiences."""
    for experience in longer:
        strategy.train(experience, num_workers=0, pin_memory=False)
        for _ in range(len(experience.dataset) // BATCH):
            yield
    for experience in split_online_stream(rest, BATCH, shuffle=False, drop_last=True):
        strategy.train(experience, num_workers=0, pin_memory=False)
        yield


def experiences(inputs: Tensor, labels: Tensor) -> Any:
    """Return a stream of one experience."""
    data = tensor_dataset(inputs, labels, task_labels=0)
    return benchmark_from_datasets(train=[data]).train_stream
