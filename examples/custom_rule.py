"""An update rule of your own, in one file: gradient surgery between the new and the replayed.

Run it: python examples/custom_rule.py
Compare it with ER over paired seeds:
recollect run mnist-split -m er -m mine --set methods.mine.rule=examples/custom_rule.py:Surgery
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from typing_extensions import override

from recollect import METHODS, Method, method
from recollect.models import mlp, seeded
from recollect.rules import Rule
from recollect.testing import check_rule


@dataclass(frozen=True)
class Surgery(Rule):
    """Where g and the mean replayed gradient r conflict, take each one's part along the other out.

        w = g - share * min(<g, r>, 0) / <r, r> * r  +  r - share * min(<g, r>, 0) / <g, g> * g

    Args:
        share: How much of it is taken out. 0 is experience replay, 1 is PCGrad (Yu et al., 2020).
    """

    share: float = 1.0

    @override
    def __call__(self, gram: Tensor) -> Tensor:
        num_replayed = len(gram) - 1
        conflict = self.share * gram[0, 1:].mean().clamp(max=0)
        tiny = torch.finfo(gram.dtype).tiny  # a gradient of length zero conflicts with nothing
        weights = gram.new_empty(len(gram))
        weights[0] = 1 - conflict / gram[0, 0].clamp(min=tiny)
        weights[1:] = (1 - conflict / gram[1:, 1:].mean().clamp(min=tiny)) / num_replayed
        return weights


def main() -> None:
    check_rule(Surgery())
    model = seeded(lambda: mlp(8, 4), 0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    er = METHODS["er"]
    row = Method("ER with gradient surgery", er.storage, er.retrieval, Surgery)
    learner = method(row, model, optimizer, capacity=20, replay=5, seed=0, share=0.5)
    rng = torch.Generator().manual_seed(0)
    for step in range(100):
        labels = torch.randint(1 + step // 25, (10,), generator=rng)
        report = learner.observe(torch.randn(10, 8, generator=rng) + labels[:, None], labels)
    print("weights of the last step:", report.updates[-1].weights)


if __name__ == "__main__":
    main()
