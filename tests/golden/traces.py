"""Run a scenario, and note what it did as a trace that JSON can hold."""

import hashlib
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from tests.golden.scenarios import Scenario
from torch import Tensor, nn

from recollect import Learner, StepReport, method
from recollect.models import seeded

_COLUMNS = ("arrived_at", "times_replayed", "margin_increment", "score")

Trace = dict[str, Any]
_LONGEST = 64  # numbers that are written out


def trace(scenario: Scenario, dtype: torch.dtype, *, steps: int | None = None) -> Trace:
    """Run a scenario.

    In float32 the trace has a digest of the weights and of the memory's columns, to be compared to
    the bit; in float64 each as two numbers, to be compared to a tolerance.

    Args:
        scenario: What to run.
        dtype: Of the model and its inputs, which are drawn in it: processors round what they draw
            as well, and in float64 that is far below the tolerance.
        steps: Stop after so many.
    """
    with _exactly():
        learner = _learner(scenario, dtype)
        half = (steps or scenario.steps) // 2
        noted = []
        batches = islice(scenario.stream(scenario.steps, dtype), steps)
        for step, (inputs, labels) in enumerate(batches):
            if scenario.resumed and step == half:
                learner = _resumed(learner, _learner(scenario, dtype))
            if scenario.widened and step == half:
                _widen(learner)
            with torch.autocast("cpu") if scenario.autocast else nullcontext():
                report = learner.observe(inputs, labels)
            noted.append(_step(report))
    tensors = learner.model.state_dict()
    memory = _columns(learner)
    if dtype == torch.float32:
        return {"steps": noted, "weights": _digest(tensors), "memory": _digest(memory)}
    return {
        "steps": noted,
        "weights": {name: _sketch(tensor) for name, tensor in tensors.items()},
        "memory": {name: _sketch(tensor) for name, tensor in memory.items()},
    }


@contextmanager
def _exactly() -> Iterator[None]:
    """One thread and deterministic kernels, under pytest or not."""
    deterministic, threads = torch.are_deterministic_algorithms_enabled(), torch.get_num_threads()
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    try:
        with warnings.catch_warnings():
            # Of torch.func, about operators that it runs one example after the other.
            warnings.filterwarnings("ignore", message="There is a performance drop")
            yield
    finally:
        torch.use_deterministic_algorithms(deterministic)
        torch.set_num_threads(threads)


def _learner(scenario: Scenario, dtype: torch.dtype) -> Learner:
    model = _model(scenario, dtype)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(not name.startswith(scenario.frozen))
    options = {"capacity": scenario.capacity, "replay": 5, "seed": 2, **scenario.options}
    if scenario.transform is not None:
        options["transform"] = scenario.transform(dtype)
    return method(scenario.method, model, scenario.optimizer(model), **options)


def _model(scenario: Scenario, dtype: torch.dtype) -> nn.Module:
    usual = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        return seeded(scenario.model, 1)
    finally:
        torch.set_default_dtype(usual)


def _resumed(learner: Learner, fresh: Learner) -> Learner:
    with tempfile.TemporaryDirectory() as folder:
        learner.save(Path(folder) / "learner")
        fresh.load(Path(folder) / "learner")
    return fresh


def _widen(learner: Learner) -> None:
    """Replace the last layer by one with an output more, and tell the optimizer."""
    assert isinstance(learner.model, nn.Sequential)
    old = learner.model[-1]
    assert isinstance(old, nn.Linear)
    wider = nn.Linear(old.in_features, old.out_features + 1, dtype=old.weight.dtype)
    with torch.no_grad():
        for new, kept in ((wider.weight, old.weight), (wider.bias, old.bias)):
            new.zero_()
            new[: len(kept)] = kept
    learner.model[-1] = wider
    learner.optimizer.add_param_group({"params": list(wider.parameters())})


def _step(report: StepReport) -> list[Any]:
    """Return numbers (losses, the length of w where it is known), slots replayed, slots written."""
    numbers = [report.loss]
    for update in report.updates:
        numbers += [float(update.losses.sum())]
        numbers += [] if update.target_norm is None else [update.target_norm]
    replayed = [update.replayed_slots.tolist() for update in report.updates]
    return [list(map(_hex, numbers)), replayed, _shortened(report.written_slots.tolist())]


def _hex(number: float) -> str:
    """Write every bit; a float32 has fewer than a float64."""
    digits, mark, exponent = number.hex().partition("p")
    return digits.rstrip("0") + mark + exponent if mark else digits


def _shortened(slots: list[int]) -> list[int] | str:
    if len(slots) <= _LONGEST:
        return slots
    return hashlib.sha256(str(slots).encode()).hexdigest()


def _columns(learner: Learner) -> dict[str, Tensor]:
    memory = learner.memory
    if memory is None:
        return {}
    filled = {name: getattr(memory, name)[: len(memory)] for name in _COLUMNS}
    return {"labels": memory.labels, **filled}


def _digest(tensors: dict[str, Tensor]) -> str:
    digest = hashlib.sha256()
    for name, tensor in tensors.items():
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\0".encode())
        digest.update(tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()


def _sketch(tensor: Tensor) -> list[str]:
    """Length and one fixed projection: what moves an entry, or exchanges two, moves these."""
    values = tensor.double().flatten()
    along = torch.arange(1, len(values) + 1, dtype=torch.float64).cos()
    return [_hex(float(values.norm())), _hex(float(values @ along))]
