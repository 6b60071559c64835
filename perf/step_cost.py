"""What does a step cost, beside loops written by hand?

Alternates all contestants in one process, one thread, CPU time, and prints medians as ratios. The
hand-written loops are the honest floor: the same reservoir of stored tensors, no checks, no report,
nothing that could be resumed.

    python -m perf.step_cost              # the MLP of MNIST-S
    python -m perf.step_cost --resnet     # the reduced ResNet18 of CIFAR10-S
"""

import argparse
import time
from collections.abc import Callable
from statistics import median, quantiles

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import recollect
from recollect.models import mlp, reduced_resnet18, seeded

Step = Callable[[Tensor, Tensor], object]
CAPACITY, BATCH = 500, 10


class Bare:
    """Experience replay in as few lines as it takes."""

    def __init__(self, build: Callable[[], nn.Module], *, joint: bool) -> None:
        self.model, self.joint = seeded(build, 0), joint
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05)
        self.inputs: Tensor | None = None
        self.labels = torch.zeros(CAPACITY, dtype=torch.long)
        self.seen = self.filled = 0

    def __call__(self, x: Tensor, y: Tensor) -> None:
        """Take one step."""
        self.optimizer.zero_grad()
        if self.inputs is None or not self.filled:
            F.cross_entropy(self.model(x), y).backward()
        else:
            slots = torch.randint(self.filled, (BATCH,))
            old_x, old_y = self.inputs[slots], self.labels[slots]
            if self.joint:
                logits = self.model(torch.cat((x, old_x)))
                loss = F.cross_entropy(logits[:BATCH], y) + F.cross_entropy(logits[BATCH:], old_y)
                loss.backward()
            else:
                F.cross_entropy(self.model(x), y).backward()
                F.cross_entropy(self.model(old_x), old_y).backward()
        self.optimizer.step()
        self.store(x, y)

    def store(self, x: Tensor, y: Tensor) -> None:
        """Reservoir sampling."""
        if self.inputs is None:
            self.inputs = torch.zeros(CAPACITY, *x.shape[1:])
        for i in range(len(y)):
            self.seen += 1
            if self.filled < CAPACITY:
                slot, self.filled = self.filled, self.filled + 1
            else:
                slot = int(torch.randint(self.seen, ()))
            if slot < CAPACITY:
                self.inputs[slot], self.labels[slot] = x[i], y[i]


class LoopedPGD(Bare):
    """PGD with one backward pass an example, and its formula on explicit gradients."""

    def __call__(self, x: Tensor, y: Tensor) -> None:
        """Take one step."""
        parameters = list(self.model.parameters())
        own = torch.autograd.grad(F.cross_entropy(self.model(x), y), parameters)
        g = torch.cat([gradient.flatten() for gradient in own])
        w = g
        if self.inputs is not None and self.filled:
            slots = torch.randint(self.filled, (BATCH,))
            losses = F.cross_entropy(
                self.model(self.inputs[slots]), self.labels[slots], reduction="none"
            )
            rows = [torch.autograd.grad(loss, parameters, retain_graph=True) for loss in losses]
            old = torch.stack([torch.cat([e.flatten() for e in row]) for row in rows])
            lengths = old.norm(dim=1)
            pulls = lengths.sigmoid() / lengths.clamp_min(1.0)
            length = g.norm()
            along = pulls @ old
            w = g + 10.0 * along / length.clamp_min(3.0)
            if length > 3.0:
                w = w - 10.0 * (along @ g) / length**3 * g
        with torch.no_grad():
            start = 0
            for parameter in parameters:
                stop = start + parameter.numel()
                parameter -= 0.05 * w[start:stop].view_as(parameter)
                start = stop
        self.store(x, y)


def ours(name: str, build: Callable[[], nn.Module], **options: object) -> Step:
    model = seeded(build, 0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    learner = recollect.method(name, model, optimizer, capacity=CAPACITY, seed=0, **options)
    return learner.observe


def contestants(build: Callable[[], nn.Module]) -> dict[str, tuple[Step, str]]:
    """Name -> (step, what it is compared with)."""
    return {
        "bare, one joint pass": (Bare(build, joint=True), ""),
        "bare, two passes": (Bare(build, joint=False), ""),
        "bare PGD, looped": (LoopedPGD(build, joint=False), ""),
        "ER": (ours("er", build), "bare, one joint pass"),
        "ER, separate": (ours("er", build, passes="separate"), "bare, two passes"),
        "ER-P": (ours("er-p", build), "ER"),
        "ER-P ": (ours("er-p", build), "bare PGD, looped"),
        "ER-C": (ours("er-c", build), "ER"),
        "ER-MIR": (ours("er-mir", build), "ER"),
        "ER-PC-MIR": (ours("er-pc-mir", build), "ER"),
        "GSS": (ours("gss", build), "ER"),
        "A-GEM": (ours("a-gem", build), "ER"),
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--resnet", action="store_true")
    options.add_argument("--repetitions", type=int, default=0)
    chosen = options.parse_args()
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    shape, build = ((3, 32, 32), reduced_resnet18) if chosen.resnet else ((784,), mlp)
    each = 1 if chosen.resnet else 40
    repetitions = chosen.repetitions or (9 if chosen.resnet else 40)
    warm = 60 if chosen.resnet else 120  # past the filling of the memory
    total = warm + each * repetitions
    inputs = torch.rand(min(total, 600), BATCH, *shape, generator=generator)
    labels = torch.randint(10, (len(inputs), BATCH), generator=generator)
    runs = contestants(build)
    times: dict[str, list[float]] = {name: [] for name in runs}
    for step, _ in runs.values():
        for i in range(warm):
            step(inputs[i % len(inputs)], labels[i % len(inputs)])
    for repetition in range(repetitions):
        for name, (step, _) in runs.items():
            start = time.process_time()
            for i in range(each):
                index = (warm + repetition * each + i) % len(inputs)
                step(inputs[index], labels[index])
            times[name].append((time.process_time() - start) / each * 1e6)
    for name, (_, base) in runs.items():
        ratio = ""
        if base:
            pairs = [a / b for a, b in zip(times[name], times[base], strict=True)]
            low, _, high = quantiles(pairs, n=4)
            ratio = f"{median(pairs):5.2f} x {base} (quartiles {low:.2f} to {high:.2f})"
        print(f"{name:<22}{median(times[name]):10.0f} us   {ratio}")


if __name__ == "__main__":
    main()
