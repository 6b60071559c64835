"""An exponential average of the weights."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, final

import torch
from torch import Tensor
from typing_extensions import override

from recollect.predictors.predictor import Predictor, View
from recollect.ranges import Choice

_STEPS: Final = "steps"


@final
@dataclass(eq=False)
class AveragedWeights(Predictor):
    r"""Answer with an exponential moving average of the weights (EMA).

        average_t = d_t * average_(t-1) + (1 - d_t) * weights_t
        d_t = min(decay, (t - 1) / (t + 8))

    after step t, from 1. The smaller d_t of the first steps keeps the first weights, which nothing
    was learnt with, from staying in the average. Statistics of BatchNorm are averaged alike; whole
    numbers are taken as they are. Training goes on with the weights themselves.

    Args:
        decay: Share of the average that stays, from 0 to below 1.

    References:
        Soutif-Cormerais et al., Improving online continual learning performance and stability with
        temporal ensembles, CoLLAs 2023. They average the weights after every update; here, where a
        batch may have several updates, after every batch.
    """

    follows_weights: ClassVar[bool] = True

    decay: Annotated[float, Choice(0.9, 0.97, 0.99, 0.997)] = 0.99

    def __post_init__(self) -> None:
        value = self.decay
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
            raise ValueError(f"`decay` is {value!r}; pass a number from 0 to below 1.")
        self._average: dict[str, Tensor] = {}
        self._steps = 0

    @override
    def __call__(self, inputs: object, view: View) -> Any:
        if not self._average:
            return view.outputs(inputs)
        with view.with_weights(self._average):
            return view.outputs(inputs)

    @override
    @torch.no_grad()
    def prepared(self, weights: Mapping[str, Tensor]) -> Callable[[], None]:
        steps = self._steps + 1
        kept = min(self.decay, (steps - 1) / (steps + 8))
        average = {name: self._moved(name, now, kept) for name, now in weights.items()}

        def write() -> None:
            self._average, self._steps = average, steps

        return write

    def _moved(self, name: str, now: Tensor, kept: float) -> Tensor:
        before = self._average.get(name)
        if before is None or not now.is_floating_point() or before.shape[1:] != now.shape[1:]:
            return now.detach().clone()
        moved = now.detach().clone()
        rows = min(len(before), len(now)) if now.ndim else None  # a head may have grown
        moved[:rows].lerp_(before[:rows], kept) if rows is not None else moved.lerp_(before, kept)
        return moved

    @override
    def state(self) -> dict[str, Tensor]:
        if not self._steps:
            return {}
        average = {f"average.{name}": tensor for name, tensor in self._average.items()}
        return {**average, _STEPS: torch.tensor(self._steps)}

    @override
    def restore(self, state: Mapping[str, Tensor]) -> None:
        self._steps = int(state[_STEPS]) if _STEPS in state else 0
        self._average = {
            name.removeprefix("average."): tensor.clone()
            for name, tensor in state.items()
            if name != _STEPS
        }
