"""A projection in the place of a classifier, for objectives that compare examples."""

from typing import final

from torch import Tensor, nn

from recollect.models.growing_head import last_linear, put_at


@final
class Projection(nn.Module):
    """Two linear layers with a ReLU between them.

    Args:
        features: Width of what it is given.
        width: Width of what it returns.
    """

    def __init__(self, features: int, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(features, features), nn.ReLU(), nn.Linear(features, width)
        )

    def forward(self, features: Tensor) -> Tensor:
        """Return the projections of `features`."""
        projections: Tensor = self.layers(features)
        return projections


def with_projection(model: nn.Module, *, width: int = 128, at: str | None = None) -> nn.Module:
    """Put a `Projection` in the place of a model's last linear layer, the classifier.

    Build the optimizer afterwards: the projection has parameters of its own.

    Args:
        model: It is changed, and returned.
        width: Of the projections.
        at: Path of the layer; None takes the last linear layer that `named_modules` lists.

    Example:
        >>> from recollect.models import mlp
        >>> with_projection(mlp(4, 2, hidden=(8,)), width=16)[-1].layers[-1].out_features
        16
    """
    path, layer = last_linear(model, at)
    return put_at(model, path, Projection(layer.in_features, width).train(layer.training))
