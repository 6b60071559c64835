"""A retrieval policy of your own, in one file: replay what the model answers worst at the moment.

Run it: python examples/custom_retrieval.py
Compare it with ER, `recollect run mnist-split -m er -m mine` and
--set methods.mine.retrieval=examples/custom_retrieval.py:HighestLoss
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from typing_extensions import override

from recollect import Learner, Memory
from recollect.models import mlp, seeded
from recollect.retrieval import Probe, Retrieval
from recollect.testing import check_retrieval


@dataclass(frozen=True)
class HighestLoss(Retrieval):
    """Draw candidates at random and replay those with the highest loss."""

    draws: ClassVar[bool] = False

    replay: int
    candidates: int = 30

    @override
    def select(self, memory: Memory, probe: Probe, rng: torch.Generator) -> Tensor:
        drawn = torch.randperm(len(memory), generator=rng)[: max(self.candidates, self.replay)]
        worst = probe.losses_before(drawn).argsort(descending=True, stable=True)
        return drawn[worst[: self.replay].to(drawn.device)]


def main() -> None:
    check_retrieval(lambda: HighestLoss(replay=5))
    model = seeded(lambda: mlp(8, 5), 0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    memory = Memory(50)
    learner = Learner(model, optimizer, memory=memory, retrieval=HighestLoss(replay=10))
    rng = torch.Generator().manual_seed(0)
    centres = 2 * torch.randn(5, 8, generator=rng)
    for step in range(200):
        labels = torch.randint(1 + step // 40, (10,), generator=rng)
        learner.observe(torch.randn(10, 8, generator=rng) + centres[labels], labels)
    times = memory.times_replayed[: len(memory)]
    print("stored examples were replayed", int(times.min()), "to", int(times.max()), "times")


if __name__ == "__main__":
    main()
