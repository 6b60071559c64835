"""A river classifier that replays: `learn_one`, `learn_many`, `predict_one` and the others."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from river import base
from river.base.typing import ClfTarget
from typing_extensions import override

from recollect.integrations.vectors import BuildModel, BuildOptimizer, vector_learner
from recollect.learner import Learner

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped,import-not-found,unused-ignore]

Features = dict[Hashable, Any]

__all__ = ["ReplayClassifier"]


class ReplayClassifier(base.MiniBatchClassifier):
    """A `recollect.Learner` on dicts of features.

    The features of the first example are the model's, for good: one that is missing later counts as
    0, one that is new is left out. Scale them first, as for any network. Classes may come at any
    time.

    Parameters
    ----------
    method
        One of `recollect.methods()`.
    model
        `model(num_features, num_classes)` builds the network, which has to end in a `GrowingHead`;
        None for an MLP of 100 and 100 units.
    optimizer
        `optimizer(parameters)` builds the optimizer; None for Adam at 0.003.
    capacity
        Slots of the memory.
    replay
        Examples replayed with each step.
    options
        Other options of `recollect.method`, such as `{"step_size": 3.0}`.
    seed
        All randomness follows from it.

    Examples:
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> model = preprocessing.StandardScaler() | ReplayClassifier()
    >>> accuracy = evaluate.progressive_val_score(
    ...     datasets.ImageSegments().take(500), model, metrics.Accuracy()
    ... )
    >>> accuracy.get() > 0.7
    True
    """

    def __init__(
        self,
        method: str = "er",
        *,
        model: BuildModel | None = None,
        optimizer: BuildOptimizer | None = None,
        capacity: int = 500,
        replay: int = 10,
        options: Mapping[str, Any] | None = None,
        seed: int = 0,
    ) -> None:
        self.method = method
        self.model = model
        self.optimizer = optimizer
        self.capacity = capacity
        self.replay = replay
        self.options = options
        self.seed = seed
        self.learner: Learner | None = None
        self._features: list[Hashable] = []

    @property
    @override
    def _multiclass(self) -> bool:
        return True

    @override
    def _unit_test_skips(self) -> set[str]:
        return {
            # One step along the mean gradient of a batch is not a step for each of its rows.
            "check_learn_many_matches_learn_one",
            # It compares pickles, and torch writes an address of memory into that of a generator.
            "check_no_state_aliasing_with_input",
        }

    @classmethod
    @override
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"capacity": 50}

    @override
    def learn_one(self, x: Features, y: ClfTarget) -> None:
        """Learn from an example, and replay others with it."""
        self._learn(self._rows([x]), [y])

    @override
    def learn_many(self, X: "pd.DataFrame", y: "pd.Series[Any]") -> None:
        """Learn from the rows of a frame in one step, and replay others with them."""
        if len(y):
            self._learn(self._rows(X.to_dict("records")), y.tolist())

    @override
    def predict_proba_one(self, x: Features, **_: Any) -> dict[ClfTarget, float]:
        """Return the probability of each class known so far; nothing before the first example."""
        if self.learner is None:
            return {}
        return dict(zip(self._classes, self._probabilities([x])[0].tolist(), strict=True))

    @override
    def predict_proba_many(self, X: "pd.DataFrame") -> "pd.DataFrame":
        """Return the probability of each class known so far, a row per row."""
        import pandas as pd

        if self.learner is None:
            return pd.DataFrame(index=X.index)
        found = self._probabilities(X.to_dict("records"))
        return pd.DataFrame(found.numpy(), index=X.index, columns=self._classes)

    @property
    def _classes(self) -> list[ClfTarget]:
        assert self.learner is not None
        assert self.learner.label_map is not None
        return self.learner.label_map.labels  # type: ignore[return-value]  # what river gave

    def _learn(self, rows: torch.Tensor, labels: Sequence[Hashable]) -> None:
        if self.learner is None:
            self.learner = vector_learner(
                self.method,
                in_features=len(self._features),
                classes=[],
                model=self.model,
                optimizer=self.optimizer,
                capacity=self.capacity,
                replay=self.replay,
                seed=self.seed,
                options=self.options,
            )
        self.learner.observe(rows, labels)

    def _probabilities(self, examples: Sequence[Features]) -> torch.Tensor:
        assert self.learner is not None
        logits = self.learner.predict(self._rows(examples))
        # In double precision, so that they add up to one as closely as river looks.
        return logits[:, : len(self._classes)].double().softmax(1).cpu()

    def _rows(self, examples: Sequence[Features]) -> torch.Tensor:
        if not self._features:
            # Whatever order they come in, another order later is the same example.
            self._features = sorted(examples[0], key=str)
        rows = np.zeros((len(examples), len(self._features)), dtype=np.float32)
        for row, example in zip(rows, examples, strict=True):
            for column, name in enumerate(self._features):
                value = example.get(name, 0.0)
                try:
                    row[column] = value
                except (TypeError, ValueError):
                    raise ValueError(
                        f"feature {name!r} is {value!r}, which is no number; encode it first, such "
                        "as by `river.preprocessing.OneHotEncoder`."
                    ) from None
        return torch.from_numpy(rows)
