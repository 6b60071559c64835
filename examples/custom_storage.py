"""A storage policy of your own, in one file: keep what came last, class by class.

Run it: python examples/custom_storage.py
Compare it with ER, `recollect run mnist-split -m er -m mine` and
--set methods.mine.storage=examples/custom_storage.py:NewestOfEachClass
"""

import torch
from torch import Tensor
from typing_extensions import override

from recollect import Learner, Memory
from recollect.models import mlp, seeded
from recollect.storage import Evidence, Placement, Storage
from recollect.testing import check_storage


class NewestOfEachClass(Storage):
    """Fill up; then take the slot of the oldest example of the class that holds most slots."""

    needs_classes = True

    @override
    def place(
        self, labels: Tensor, memory: Memory, evidence: Evidence, rng: torch.Generator
    ) -> Placement:
        held = memory.labels[: len(memory)].tolist()
        arrived_at = memory.arrived_at[: len(memory)].tolist()
        slots = []
        for number, label in enumerate(labels.tolist()):
            if len(held) < memory.capacity:
                slot = len(held)
                held.append(label)
                arrived_at.append(memory.seen + number)
            else:
                most = max(held, key=held.count)
                slot = min((at, s) for s, at in enumerate(arrived_at) if held[s] == most)[1]
                held[slot], arrived_at[slot] = label, memory.seen + number
            slots.append(slot)
        return Placement(torch.tensor(slots))


def main() -> None:
    check_storage(NewestOfEachClass)
    model = seeded(lambda: mlp(8, 5), 0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    memory = Memory(20)
    learner = Learner(model, optimizer, memory=memory, storage=NewestOfEachClass())
    rng = torch.Generator().manual_seed(0)
    for step in range(200):
        labels = torch.randint(1 + step // 40, (10,), generator=rng)
        learner.observe(torch.randn(10, 8, generator=rng) + labels[:, None], labels)
    print("slots by class:", memory.counts_by_class())
    print("stored in the last", int(memory.ages().max()), "steps")


if __name__ == "__main__":
    main()
