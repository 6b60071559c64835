"""A scikit-learn classifier that replays: `fit`, `partial_fit`, `predict`, `predict_proba`."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin  # type: ignore[import-untyped]
from sklearn.utils import check_random_state  # type: ignore[import-untyped]
from sklearn.utils.multiclass import check_classification_targets, unique_labels  # type: ignore[import-untyped]
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data  # type: ignore[import-untyped]

from recollect.integrations.vectors import BuildModel, BuildOptimizer, vector_learner
from recollect.learner import Learner

__all__ = ["ReplayClassifier"]


class ReplayClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A `recollect.Learner` on rows of numbers.

    `partial_fit` learns from rows as they come and forgets little of earlier ones. `fit` forgets
    everything and passes over the rows in their order, `epochs` times. Scale the columns first, as
    for any network.

    Args:
        method: One of `recollect.methods()`.
        model: `model(in_features, num_classes)` builds the network; None for an MLP of 100 and 100
            units. End one of your own in a `GrowingHead` if new classes may come.
        optimizer: `optimizer(parameters)` builds the optimizer; None for Adam at 0.003.
        capacity: Slots of the memory.
        replay: Examples replayed with each batch.
        batch_size: Rows per step.
        epochs: Passes over the rows that `fit` makes.
        options: Other options of `recollect.method`, such as `{"step_size": 3.0}`.
        random_state: All randomness follows from it. None draws from NumPy's generator.

    Attributes:
        classes_: The classes known so far, sorted; those that a later `partial_fit` brought follow.
        learner_: The learner itself, to save, inspect or load.
        n_features_in_: Number of columns.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.pipeline import make_pipeline
        >>> from sklearn.preprocessing import StandardScaler
        >>> rows, labels = load_iris(return_X_y=True)
        >>> classifier = make_pipeline(StandardScaler(), ReplayClassifier(epochs=5))
        >>> bool(classifier.fit(rows, labels).score(rows, labels) > 0.9)
        True
    """

    classes_: NDArray[Any]
    learner_: Learner
    n_features_in_: int

    def __init__(  # noqa: PLR0913 - scikit-learn takes every setting here
        self,
        method: str = "er",
        *,
        model: BuildModel | None = None,
        optimizer: BuildOptimizer | None = None,
        capacity: int = 500,
        replay: int = 10,
        batch_size: int = 10,
        epochs: int = 1,
        options: Mapping[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = 0,
    ) -> None:
        self.method = method
        self.model = model
        self.optimizer = optimizer
        self.capacity = capacity
        self.replay = replay
        self.batch_size = batch_size
        self.epochs = epochs
        self.options = options
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:  # noqa: N803
        """Begin anew, and pass over rows and labels.

        Args:
            X: Rows of numbers.
            y: A label per row, of any kind.
            sample_weight: What each row's loss is multiplied by, whenever it is learnt from.
        """
        self._learn(X, y, None, sample_weight, begins=True)
        for _ in range(1, self.epochs):
            self._learn(X, y, None, sample_weight, begins=False)
        return self

    def partial_fit(
        self,
        X: ArrayLike,  # noqa: N803
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn from more rows.

        Args:
            X: Rows of numbers.
            y: A label per row.
            classes: All classes there will be. Needless with a head that grows, as the default
                model's does; without it a class is added when it comes.
            sample_weight: As for `fit`.
        """
        return self._learn(X, y, classes, sample_weight, begins=not hasattr(self, "learner_"))

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float32]:  # noqa: N803
        """Return the probability of each of `classes_`, a row per row of X."""
        check_is_fitted(self, "learner_")
        rows = validate_data(self, X, dtype=np.float32, reset=False)
        logits = self.learner_.predict(torch.from_numpy(rows), batch_size=4096)
        found: NDArray[np.float32] = logits[:, : len(self.classes_)].softmax(1).cpu().numpy()
        return found

    def predict(self, X: ArrayLike) -> NDArray[Any]:  # noqa: N803
        """Return the likeliest class of each row."""
        likeliest = self.predict_proba(X).argmax(1)
        return self.classes_[likeliest]

    def _learn(
        self,
        X: ArrayLike,  # noqa: N803
        y: ArrayLike,
        classes: ArrayLike | None,
        sample_weight: ArrayLike | None,
        *,
        begins: bool,
    ) -> Self:
        rows, labels = validate_data(self, X, y, dtype=np.float32, reset=begins)
        check_classification_targets(labels)
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, rows, dtype=np.float32)
        known = unique_labels(labels) if classes is None else unique_labels(classes)
        if begins:
            self._begin(known)
        elif classes is not None and set(known.tolist()) - set(self.classes_.tolist()):
            raise ValueError(f"`classes` is {known}, but the first call had {self.classes_}.")
        if strange := sorted(set(np.unique(labels).tolist()) - set(known.tolist())):
            raise ValueError(f"`y` holds {strange}, which `classes` does not name.")
        for start in range(0, len(rows), self.batch_size):
            part = slice(start, start + self.batch_size)
            self.learner_.observe(
                torch.from_numpy(rows[part]),
                labels[part],
                weights=None if weights is None else torch.from_numpy(weights[part]),
            )
        assert self.learner_.label_map is not None
        names = self.learner_.label_map.labels[len(self.classes_) :]
        if names:
            self.classes_ = np.concatenate([self.classes_, np.array(names, dtype=labels.dtype)])
        return self

    def _begin(self, classes: NDArray[Any]) -> None:
        seed = self.random_state
        if not isinstance(seed, int):
            seed = int(check_random_state(seed).randint(np.iinfo(np.int32).max))
        self.classes_ = classes
        self.learner_ = vector_learner(
            self.method,
            in_features=self.n_features_in_,
            classes=classes.tolist(),
            model=self.model,
            optimizer=self.optimizer,
            capacity=self.capacity,
            replay=self.replay,
            seed=seed,
            options=self.options,
        )
