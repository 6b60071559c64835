"""The few things that cannot be measured are refused by name, with the way out."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from recollect.errors import UnsupportedModuleError
from recollect.gradients import GradientEngine, Groups, Objective


class Hidden(nn.Module):
    """A layer that a reentrant checkpoint hides from the graph."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        given = x.clone().requires_grad_()  # else a reentrant checkpoint has no gradient at all
        return self.head(checkpoint(self.body, given, use_reentrant=True))


def measure(model: nn.Module, inputs: Tensor) -> None:
    engine = GradientEngine(model, dict(model.named_parameters()))
    count = len(inputs)
    losses = F.cross_entropy(model(inputs), torch.zeros(count).long(), reduction="none")
    ones = torch.ones(count)
    engine.measure(Objective(losses, ones, Groups((1,) * count), ones))


def test_a_reentrant_checkpoint_is_refused_with_the_parameter_that_it_hides() -> None:
    with pytest.raises(UnsupportedModuleError, match=r"`body\.weight`.*use_reentrant=False"):
        measure(Hidden(), torch.randn(5, 4))


@pytest.mark.parametrize("kind", [nn.Embedding, nn.EmbeddingBag])
@pytest.mark.parametrize("examples", [1, 5])
def test_sparse_gradients_are_refused_with_the_parameter(
    kind: type[nn.Module], examples: int
) -> None:
    table = kind(7, 4, sparse=True)
    model = nn.Sequential(table, nn.Flatten(), nn.LazyLinear(3))
    tokens = torch.randint(7, (examples, 2))
    with torch.no_grad():
        model(tokens)
    with pytest.raises(UnsupportedModuleError, match=r"`0\.weight`.*`sparse=False`"):
        measure(model, tokens)
