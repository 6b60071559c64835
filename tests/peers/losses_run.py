"""Run by `test_peers.py` with the peers' python: our objectives beside those of Avalanche."""

import json
from itertools import repeat

import torch
from perf.peers.worker import declare_torchvision_operators
from torch import Tensor, nn
from torch.nn import functional as F

_kept = declare_torchvision_operators()

from avalanche.training.losses import (  # type: ignore[import-not-found,unused-ignore]  # noqa: E402
    SCRLoss,
)
from avalanche.training.regularization import (  # type: ignore[import-not-found,unused-ignore]  # noqa: E402
    ACECriterion,
)
from avalanche.training.supervised.der import (  # type: ignore[import-not-found,unused-ignore]  # noqa: E402
    DER,
)

from recollect.objectives import (  # noqa: E402
    Answers,
    AsymmetricCrossEntropy,
    DarkExperience,
    SupervisedContrast,
)

NEW, OLD, CLASSES = 10, 8, 6
ALPHA, BETA, TEMPERATURE = 0.3, 0.7, 0.2


class AsGiven(nn.Module):
    """Answers what it is asked, so that inputs are logits."""

    def __init__(self) -> None:
        super().__init__()
        self.nothing = nn.Parameter(torch.zeros(CLASSES, dtype=torch.float64))

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs + self.nothing


def means(losses: Tensor) -> float:
    return float(losses[:NEW].mean() + losses[NEW:].mean())


def theirs_of_der(logits: Tensor, labels: Tensor, stored: Tensor) -> float:
    """Let their strategy make one step on a batch and a replayed batch."""
    model = AsGiven()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    strategy = DER(
        model=model, optimizer=optimizer, batch_size_mem=OLD, alpha=ALPHA, beta=BETA, evaluator=None
    )
    none = torch.zeros(NEW + OLD, dtype=torch.int64)
    strategy.dataloader = [[logits[:NEW], labels[:NEW], none[:NEW]]]
    strategy.replay_loader = repeat((logits[NEW:], labels[NEW:], none[NEW:], stored))
    strategy._stop_training = False
    strategy.training_epoch()
    return float(strategy.loss)


def main() -> None:
    rng = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(NEW + OLD, CLASSES, generator=rng, dtype=torch.float64)
    stored = 3 * torch.randn(OLD, CLASSES, generator=rng, dtype=torch.float64)
    new = torch.randint(2, 4, (NEW,), generator=rng)  # some classes are neither new nor replayed
    labels = torch.cat((new, torch.randint(CLASSES, (OLD,), generator=rng)))
    flags = [False] * NEW + [True] * OLD
    columns = {"logits": stored, "num_logits": torch.full((OLD,), CLASSES)}
    answers = Answers(logits, labels, flags, columns)
    other = torch.randn(NEW + OLD, CLASSES, generator=rng, dtype=torch.float64)
    both = Answers(torch.cat((logits, other)), labels, flags, views=2)
    views = torch.stack([F.normalize(view, dim=1) for view in (logits, other)], dim=1)
    ace = ACECriterion()(logits[:NEW], labels[:NEW], logits[NEW:], labels[NEW:])
    contrast = SCRLoss(temperature=TEMPERATURE, base_temperature=TEMPERATURE)(views, labels)
    print(
        json.dumps(
            {
                "er-ace": [means(AsymmetricCrossEntropy()(answers)), float(ace)],
                "der++": [
                    means(DarkExperience(ALPHA, BETA)(answers)),
                    theirs_of_der(logits, labels, stored),
                ],
                "scr": [
                    float(SupervisedContrast(TEMPERATURE)(both).mean()),
                    float(contrast),
                ],
            }
        )
    )


if __name__ == "__main__":
    main()
