"""An objective of your own, in one file: a replayed example may not become less sure than it was.

Run it: python examples/custom_objective.py
Compare it with ER: recollect run mnist-split -m er -m mine
--set methods.mine.objective=examples/custom_objective.py:NoLessSure
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F
from typing_extensions import override

from recollect import Learner, Memory
from recollect.memory import MemoryColumn
from recollect.models import mlp, seeded
from recollect.objectives import Answers, Objective, Part
from recollect.testing import check_objective


@dataclass(frozen=True)
class NoLessSure(Objective):
    """Ask a replayed example for its label, and for the loss that it had when it was stored.

        incoming:  loss(x, y) = -log p_y
        replayed:  loss(x, y) = -log p_y + weight * max(0, -log p_y - kept)

    Args:
        weight: Of what the loss has risen since.
    """

    draws: ClassVar[bool] = False
    columns: ClassVar[tuple[MemoryColumn, ...]] = (
        MemoryColumn("kept", default=torch.finfo(torch.float32).max),  # nothing is above it
    )

    weight: float = 1.0

    @override
    def __call__(self, answers: Answers) -> Tensor:
        of_incoming, of_replayed = _losses(answers.incoming), _losses(answers.replayed)
        if len(answers.replayed):
            risen = of_replayed - answers.replayed.columns["kept"].to(of_replayed)
            of_replayed = of_replayed + self.weight * risen.clamp(min=0)
        return answers.in_order(of_incoming, of_replayed)

    @override
    def rows_to_keep(self, incoming: Part) -> Mapping[str, Tensor]:
        return {"kept": _losses(incoming).detach()}


def _losses(part: Part) -> Tensor:
    return F.cross_entropy(part.outputs, part.labels.long(), reduction="none")


def main() -> None:
    check_objective(NoLessSure())
    model = seeded(lambda: mlp(8, 5), 0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    memory = Memory(50)
    learner = Learner(model, optimizer, memory=memory, objective=NoLessSure(weight=2.0))
    rng = torch.Generator().manual_seed(0)
    centres = 2 * torch.randn(5, 8, generator=rng)
    for step in range(200):
        labels = torch.randint(1 + step // 40, (10,), generator=rng)
        learner.observe(torch.randn(10, 8, generator=rng) + centres[labels], labels)
    kept = torch.stack([memory.slot(slot).columns["kept"] for slot in range(len(memory))])
    print(f"loss of stored examples when they came: {float(kept.mean()):.2f} on average")


if __name__ == "__main__":
    main()
