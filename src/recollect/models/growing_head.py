"""A last layer that widens when a class arrives that it does not know."""

from collections.abc import Callable
from typing import final

import torch
from torch import Tensor, nn


@final
class GrowingHead(nn.Linear):
    """A linear layer with one output per class known so far.

    `Learner.observe` widens it when a label is beyond its outputs. New rows start at zero: the
    layer answers as before for the classes it knew, and nothing is drawn. The parameters stay the
    same objects, so the optimizer keeps them, and what it remembers of old rows.

    Example:
        >>> head = GrowingHead(4, 2)
        >>> head.grow(5)
        >>> head(torch.zeros(3, 4)).shape, head.out_features
        (torch.Size([3, 5]), 5)
    """

    def grow(self, num_classes: int, optimizer: torch.optim.Optimizer | None = None) -> None:
        """Widen the layer to `num_classes` outputs, and what the optimizer keeps per weight.

        Args:
            num_classes: Outputs from now on; not fewer than there are.
            optimizer: Its momentum and the like get zeros for the new rows.
        """
        widen, _ = self.prepared_growth(num_classes, optimizer)
        widen()

    @torch.no_grad()
    def prepared_growth(
        self, num_classes: int, optimizer: torch.optim.Optimizer | None = None
    ) -> tuple[Callable[[], None], Callable[[], None]]:
        """Find out all that `grow` changes.

        Returns:
            What widens the layer, and what puts it back; either may be run again.
        """
        before = self.out_features
        if num_classes < before:
            raise ValueError(
                f"`num_classes` is {num_classes}, but the layer has {before} outputs; a head only "
                "grows."
            )
        own = [parameter for parameter in (self.weight, self.bias) if parameter is not None]
        narrow = [parameter.data for parameter in own]
        wide = [_widened(values, num_classes) for values in narrow]
        old_state: dict[Tensor, dict[str, object]] = {}
        new_state: dict[Tensor, dict[str, object]] = {}
        for parameter, old in zip(own, narrow, strict=True):
            if optimizer is not None and parameter in optimizer.state:
                old_state[parameter] = dict(optimizer.state[parameter])
                new_state[parameter] = {
                    name: _widened(value, num_classes)
                    if isinstance(value, Tensor) and value.shape == old.shape
                    else value
                    for name, value in old_state[parameter].items()
                }

        def widen() -> None:
            self._take(wide, num_classes)
            if optimizer is not None:
                optimizer.state.update(new_state)

        def put_back() -> None:
            self._take(narrow, before)
            if optimizer is not None:
                optimizer.state.update(old_state)

        return widen, put_back

    def _take(self, values: list[Tensor], num_classes: int) -> None:
        own = [parameter for parameter in (self.weight, self.bias) if parameter is not None]
        for parameter, value in zip(own, values, strict=True):
            parameter.grad = None
            # Autograd remembers a parameter's shape as long as some graph lives, and looks again
            # only if the dtype changes.
            parameter.data = value.new_empty(0, dtype=_other_than(value.dtype))
            parameter.data = value
        self.out_features = num_classes


def with_growing_head(model: nn.Module, *, at: str | None = None) -> nn.Module:
    """Put a `GrowingHead` in the place of a model's last linear layer.

    The head takes the layer's own parameters over, so an optimizer that holds them goes on.

    Args:
        model: It is changed, and returned. A model that is a linear layer itself is replaced.
        at: Path of the layer, such as `"classifier"`; None takes the last linear layer that
            `named_modules` lists.
    """
    path, layer = last_linear(model, at)
    return put_at(model, path, _taking_over(layer))


def last_linear(model: nn.Module, at: str | None) -> tuple[str, nn.Linear]:
    """Return path and module of the linear layer at `at`, or of the last one."""
    layers = {path: layer for path, layer in model.named_modules() if isinstance(layer, nn.Linear)}
    if not layers:
        raise ValueError("`model` has no linear layer; build its end with `GrowingHead`.")
    path = list(layers)[-1] if at is None else at
    if path not in layers:
        raise ValueError(
            f"`at` is {at!r}, which is no linear layer of the model; choose one of "
            f"{', '.join(map(repr, layers))}."
        )
    return path, layers[path]


def put_at(model: nn.Module, path: str, layer: nn.Module) -> nn.Module:
    """Put a layer in the place of the one at `path`, and return the model."""
    if not path:
        return layer
    owner, _, name = path.rpartition(".")
    setattr(model.get_submodule(owner), name, layer)
    return model


def _taking_over(layer: nn.Linear) -> GrowingHead:
    with torch.device("meta"):
        head = GrowingHead(layer.in_features, layer.out_features, bias=layer.bias is not None)
    head.weight, head.bias = layer.weight, layer.bias
    return head.train(layer.training)


def _other_than(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float32 else torch.float32


def _widened(values: Tensor, rows: int) -> Tensor:
    return torch.cat((values, values.new_zeros(rows - len(values), *values.shape[1:])))
