"""Which engine for per-example gradient geometry? Ours beside torch.func and existing libraries.

Every contestant starts from a forward pass over 20 examples and ends with the Gram matrix of their
gradients and one weighted sum of them: what a rule needs. Ratios to a plain mean-batch backward
pass, medians of alternated repetitions, one thread, CPU time. A contestant that is not installed,
or fails, is named with the reason.

    python -m perf.engines
"""

import argparse
import copy
import time
from collections.abc import Callable
from importlib import import_module
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional as F

from recollect.gradients import GradientEngine, Groups, Objective
from recollect.models import mlp, reduced_resnet18

EXAMPLES = 20
Run = Callable[[], object]


def geometry(rows: Tensor) -> tuple[Tensor, Tensor]:
    return rows @ rows.T, torch.linspace(0.5, 1.5, EXAMPLES) @ rows


def plain(model: nn.Module, inputs: Tensor, labels: Tensor) -> Run:
    parameters = list(model.parameters())
    return lambda: torch.autograd.grad(F.cross_entropy(model(inputs), labels), parameters)


def ours(model: nn.Module, inputs: Tensor, labels: Tensor) -> Run:
    engine = GradientEngine(model, dict(model.named_parameters()))
    groups, ones = Groups((1,) * EXAMPLES), torch.ones(EXAMPLES)

    def run() -> object:
        losses = F.cross_entropy(model(inputs), labels, reduction="none")
        measured = engine.measure(Objective(losses, ones, groups, ones))
        with torch.no_grad():
            return measured.gram(), measured.combine(torch.linspace(0.5, 1.5, EXAMPLES))

    return run


def torch_func(model: nn.Module, inputs: Tensor, labels: Tensor) -> Run:
    def loss(values: dict[str, Tensor], one: Tensor, label: Tensor) -> Tensor:
        logits = functional_call(model, values, (one.unsqueeze(0),))
        return F.cross_entropy(logits, label.unsqueeze(0))

    def run() -> object:
        values = {name: parameter.detach() for name, parameter in model.named_parameters()}
        rows = vmap(grad(loss), in_dims=(None, 0, 0))(values, inputs, labels)
        return geometry(torch.cat([row.flatten(1) for row in rows.values()], dim=1))

    return run


def loop(model: nn.Module, inputs: Tensor, labels: Tensor) -> Run:
    parameters = list(model.parameters())

    def run() -> object:
        losses = F.cross_entropy(model(inputs), labels, reduction="none")
        found = [torch.autograd.grad(one, parameters, retain_graph=True) for one in losses]
        rows = [torch.cat([gradient.flatten() for gradient in one]) for one in found]
        return geometry(torch.stack(rows))

    return run


def torchjd(model: nn.Module, inputs: Tensor, labels: Tensor) -> Run:
    engine: Any = import_module("torchjd.autogram").Engine(model, batch_dim=0)

    def run() -> object:
        losses = F.cross_entropy(model(inputs), labels, reduction="none")
        gram = engine.compute_gramian(losses)
        losses.backward(torch.linspace(0.5, 1.5, EXAMPLES))
        model.zero_grad()
        return gram

    return run


def opacus(model: nn.Module, inputs: Tensor, labels: Tensor) -> Run:
    wrapped: Any = import_module("opacus").GradSampleModule(model, loss_reduction="sum")

    def run() -> object:
        F.cross_entropy(wrapped(inputs), labels, reduction="sum").backward()
        rows = torch.cat([p.grad_sample.flatten(1) for p in wrapped.parameters()], dim=1)
        wrapped.zero_grad()
        return geometry(rows)

    return run


def backpack(model: nn.Module, inputs: Tensor, labels: Tensor) -> Run:
    library: Any = import_module("backpack")
    batch_grad: Any = import_module("backpack.extensions").BatchGrad
    extended = library.extend(model, use_converter=not isinstance(model, nn.Sequential))
    loss = library.extend(nn.CrossEntropyLoss(reduction="sum"))

    def run() -> object:
        with library.backpack(batch_grad()):
            loss(extended(inputs), labels).backward()
        rows = torch.cat([p.grad_batch.flatten(1) for p in extended.parameters()], dim=1)
        extended.zero_grad()
        return geometry(rows)

    return run


CONTESTANTS: dict[str, Callable[[nn.Module, Tensor, Tensor], Run]] = {
    "plain mean gradient": plain,
    "recollect": ours,
    "torch.func vmap(grad)": torch_func,
    "loop of backward passes": loop,
    "torchjd autogram": torchjd,
    "opacus": opacus,
    "backpack": backpack,
}


def compare(title: str, model: nn.Module, inputs: Tensor, repetitions: int, each: int) -> None:
    labels = torch.randint(10, (EXAMPLES,))
    runs: dict[str, Run] = {}
    for name, build in CONTESTANTS.items():
        try:
            run = build(copy.deepcopy(model), inputs, labels)
            run()
            runs[name] = run
        except Exception as error:  # a contestant that cannot do it is a result
            reason = " ".join(str(error).split())[:80]
            print(f"{title:>20}  {name:<24} -       {type(error).__name__}: {reason}")
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repetitions):
        for name, run in runs.items():
            start = time.process_time()
            for _ in range(each):
                run()
            times[name].append((time.process_time() - start) / each)
    base = median(times["plain mean gradient"])
    for name, found in times.items():
        low, high = min(found) / base, max(found) / base
        print(f"{title:>20}  {name:<24} {median(found) / base:5.2f} x  ({low:.2f} to {high:.2f})")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--repetitions", type=int, default=15)
    repetitions = options.parse_args().repetitions
    torch.set_num_threads(1)
    torch.manual_seed(0)
    images = torch.randn(EXAMPLES, 3, 32, 32)
    compare("MLP", mlp(), torch.rand(EXAMPLES, 784), repetitions, 20)
    compare("ResNet18, GroupNorm", reduced_resnet18(norm="group"), images, repetitions, 1)
    compare("ResNet18, BatchNorm", reduced_resnet18(), images, repetitions, 1)


if __name__ == "__main__":
    main()
