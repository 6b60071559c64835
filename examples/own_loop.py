"""Write the training step yourself from the parts `Learner.observe` is made of; same bits.

Run it: python examples/own_loop.py
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from recollect import Memory, method
from recollect.gradients import GradientEngine, Groups, Objective
from recollect.models import mlp, seeded
from recollect.retrieval import Uniform
from recollect.rules import PrincipalDirection
from recollect.storage import Reservoir

NOTHING_MEASURED: Any = None  # uniform replay and a reservoir never ask


def stream(num_batches: int = 60) -> Iterator[tuple[Tensor, Tensor]]:
    rng = torch.Generator().manual_seed(1)
    centres = torch.randn(4, 12, generator=rng)
    for step in range(num_batches):
        labels = torch.randint(2, (10,), generator=rng) + 2 * (2 * step // num_batches)
        yield centres[labels] + torch.randn(10, 12, generator=rng), labels


@dataclass
class OwnLoop:
    """Experience replay, or ER-P if there is a rule, as a loop of one's own."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    generators: dict[str, torch.Generator]
    rule: PrincipalDirection | None

    def __post_init__(self) -> None:
        self.memory, self.storage, self.retrieval = Memory(30), Reservoir(), Uniform(replay=5)
        self.engine = GradientEngine(self.model, dict(self.model.named_parameters()))

    def observe(self, inputs: Tensor, labels: Tensor) -> None:
        """Retrieve, measure, weigh, step, place."""
        memory, rng = self.memory, self.generators["storage"]
        admitted = self.storage.admit(labels, memory, rng)
        slots = torch.empty(0, dtype=torch.int64)
        if not memory.is_empty:
            slots = self.retrieval.select(memory, NOTHING_MEASURED, self.generators["retrieval"])
        self.optimizer.zero_grad()
        self.find_gradient(inputs, labels, slots)
        self.optimizer.step()
        memory.clock += 1
        memory.mark_replayed(slots)
        placement = self.storage.place(labels[admitted], memory, NOTHING_MEASURED, rng)
        taken = dict(zip(placement.slots.tolist(), admitted.tolist(), strict=True))  # last one wins
        if taken:
            where, who = torch.tensor(list(taken)), torch.tensor(list(taken.values()))
            memory.write(where, inputs[who], labels[who], arrived_at=memory.seen + 1 + who)
        memory.seen += len(labels)

    def find_gradient(self, inputs: Tensor, labels: Tensor, slots: Tensor) -> None:
        """Put g + mean g_i, or what the rule makes of g and the g_i, where the optimizer looks."""
        count, replayed = len(labels), len(slots)
        if replayed:
            old: Any = self.memory.read(slots)
            inputs, labels = torch.cat((inputs, old[0])), torch.cat((labels, old[1]))
        losses = F.cross_entropy(self.model(inputs), labels, reduction="none")
        shares = torch.tensor([1 / count] * count + [1 / max(replayed, 1)] * replayed)
        if self.rule is None or not replayed:
            (losses @ shares).backward()  # type: ignore[no-untyped-call]
            return
        # One gradient for the incoming batch, and one for each replayed example: K times its share.
        groups, scales = Groups((count,) + (1,) * replayed), [1.0] + [float(replayed)] * replayed
        measured = self.engine.measure(Objective(losses, shares, groups, torch.tensor(scales)))
        with torch.no_grad():
            row = measured.row()  # <g, g_i> and |g_i|^2: one-step PGD asks for no more
            target = measured.combine(row.new_tensor(self.rule.row_weights(*row.tolist())))
        for name, parameter in self.model.named_parameters():
            parameter.grad = target[name]


def compare(name: str, rule: PrincipalDirection | None) -> bool:
    models = [seeded(lambda: mlp(12, 4), 0) for _ in range(2)]
    first, second = (torch.optim.SGD(model.parameters(), lr=0.1) for model in models)
    learner = method(name, models[0], first, capacity=30, replay=5, seed=7)
    generators = {key: rng.clone_state() for key, rng in learner.generators.items()}
    own = OwnLoop(models[1], second, generators, rule)
    for inputs, labels in stream():
        learner.observe(inputs, labels)
        own.observe(inputs, labels)
    return all(map(torch.equal, *(model.parameters() for model in models)))


if __name__ == "__main__":
    print("er:  ", "same bits" if compare("er", None) else "different")
    print("er-p:", "same bits" if compare("er-p", PrincipalDirection()) else "different")
