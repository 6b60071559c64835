"""What a predictor is, and what it may look at."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Protocol, runtime_checkable

from torch import Tensor

from recollect.memory import Memory


@runtime_checkable
class View(Protocol):
    """The model in evaluation mode and the memory, to look at; nothing leaves a trace."""

    @property
    def memory(self) -> Memory | None:
        """The stored examples, None without a memory."""

    @property
    def moment(self) -> object:
        """Equal as long as the model has not moved."""

    def outputs(self, inputs: object) -> Any:
        """Return what the model answers to inputs in stored form."""

    def features(self, inputs: object, layer: str | None) -> Tensor:
        """Return what a layer of the model is given, (examples, features).

        Args:
            inputs: In stored form.
            layer: Path of the layer; None is the model's last linear layer, or its projection.
        """

    def with_weights(self, values: Mapping[str, Tensor]) -> AbstractContextManager[None]:
        """Let the model have other weights and statistics in a block."""


class Predictor(ABC):
    """Answer `Learner.predict`. Training, retrieval and storage do not see it."""

    #: Whether it must be told what the weights are after each step; see `prepared`.
    follows_weights: ClassVar[bool] = False
    #: Whether it answers from stored examples.
    needs_memory: ClassVar[bool] = False
    #: Whether a checkpoint names it.
    is_recorded: ClassVar[bool] = True

    @abstractmethod
    def __call__(self, inputs: object, view: View) -> Any:
        """Return what `predict` returns: scores whose largest is the answer, a row per example."""

    def prepared(self, weights: Mapping[str, Tensor]) -> Callable[[], None]:  # noqa: ARG002
        """Find out all that a step changes here; the action returned writes it.

        The action must not fail, and may be run again.

        Args:
            weights: All parameters and buffers of the model after the step, by name.
        """
        return lambda: None

    def state(self) -> dict[str, Tensor]:
        """Return what must be saved to go on."""
        return {}

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from what `state` returned, on the model's device; anew if it is empty."""
        if state:
            raise ValueError(f"{type(self).__name__} keeps no state, but got {sorted(state)}.")
