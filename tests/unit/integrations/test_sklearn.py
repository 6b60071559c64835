import pickle
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.base import clone  # type: ignore[import-untyped]
from sklearn.datasets import load_digits, make_blobs  # type: ignore[import-untyped]
from sklearn.exceptions import NotFittedError  # type: ignore[import-untyped]
from sklearn.model_selection import GridSearchCV  # type: ignore[import-untyped]
from sklearn.pipeline import make_pipeline  # type: ignore[import-untyped]
from sklearn.preprocessing import StandardScaler  # type: ignore[import-untyped]
from sklearn.utils.estimator_checks import check_estimator  # type: ignore[import-untyped]

import recollect
from recollect.integrations.sklearn import ReplayClassifier
from recollect.rules import PrincipalDirection

# Checks of scikit-learn that do not apply, and why.
NOT_OURS = {
    "check_sample_weight_equivalence_on_dense_data": (
        "a row of weight 0 still takes its place in a batch and in the memory, and one of weight 2 "
        "takes one place and not two"
    ),
}
# Without pandas and array API, scikit-learn leaves out what it would check with them.
MAY_BE_SKIPPED = {
    "check_array_api_input",
    "check_classifier_data_not_an_array",
    "check_sample_weights_pandas_series",
}


@pytest.mark.slow
def test_scikit_learn_finds_a_classifier_as_its_own_are() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of checks that are skipped
        results = check_estimator(
            ReplayClassifier(), expected_failed_checks=NOT_OURS, on_skip=None, on_fail=None
        )
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert failed == {}
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == NOT_OURS.keys()
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= MAY_BE_SKIPPED
    assert sum(r["status"] == "passed" for r in results) >= 55


def blobs(num: int = 200) -> tuple[np.ndarray, np.ndarray]:
    rows, labels = make_blobs(num, centers=4, n_features=5, random_state=0)
    return StandardScaler().fit_transform(rows), labels


def test_fit_is_one_pass_of_a_learner_to_the_bit() -> None:
    rows, labels = blobs()
    fitted = ReplayClassifier("er-p", batch_size=20, options={"step_size": 3.0}).fit(rows, labels)
    again = ReplayClassifier("er-p", options={"step_size": 3.0}).partial_fit(
        rows[:20], labels[:20], classes=range(4)
    )
    own = again.learner_
    assert own.step == 2  # batches of ten
    learner = pickle.loads(
        pickle.dumps(
            ReplayClassifier("er-p", batch_size=20, options={"step_size": 3.0}).partial_fit(
                rows[:20], labels[:20], classes=range(4)
            )
        )
    ).learner_
    for start in range(20, 200, 20):
        part = torch.tensor(rows[start : start + 20], dtype=torch.float32)
        learner.observe(part, labels[start : start + 20])
    for mine, theirs in zip(
        learner.model.parameters(), fitted.learner_.model.parameters(), strict=True
    ):
        assert torch.equal(mine, theirs)
    assert fitted.learner_.rule == PrincipalDirection(step_size=3.0)


def test_epochs_are_passes_one_after_the_other() -> None:
    rows, labels = blobs(60)
    two = ReplayClassifier(epochs=2).fit(rows, labels)
    again = ReplayClassifier().fit(rows, labels).partial_fit(rows, labels)
    assert np.array_equal(two.predict_proba(rows), again.predict_proba(rows))


def test_pieces_teach_what_the_whole_does() -> None:
    rows, labels = blobs()
    whole, pieces = ReplayClassifier().fit(rows, labels), ReplayClassifier()
    for start in range(0, 200, 50):
        pieces.partial_fit(
            rows[start : start + 50], labels[start : start + 50], classes=[0, 1, 2, 3]
        )
    assert np.array_equal(whole.predict_proba(rows), pieces.predict_proba(rows))


def test_classes_may_come_by_any_name_and_at_any_time() -> None:
    rows, labels = blobs()
    names = np.array(["duck", "cat", "bee", "ant"])[labels]
    order = np.argsort(names, kind="stable")[::-1]  # duck first, ant last
    classifier = ReplayClassifier()
    for start in range(0, 200, 50):
        classifier.partial_fit(rows[order[start : start + 50]], names[order[start : start + 50]])
    assert classifier.classes_.tolist() == ["duck", "cat", "bee", "ant"]
    assert classifier.predict_proba(rows).shape == (200, 4)
    assert np.allclose(classifier.predict_proba(rows).sum(1), 1)
    assert classifier.score(rows, names) > 0.9  # it has not forgotten the duck


def test_what_a_stream_brings_late_does_not_erase_what_came_first() -> None:
    rows, labels = load_digits(return_X_y=True)
    order = np.argsort(labels, kind="stable")
    scaled = StandardScaler().fit_transform(rows)[order]
    replayed = ReplayClassifier().fit(scaled, labels[order]).score(scaled, labels[order])
    plain = ReplayClassifier("van").fit(scaled, labels[order]).score(scaled, labels[order])
    assert plain < 0.3 < 0.6 < replayed


def test_parameters_are_cloned_and_searched() -> None:
    rows, labels = blobs(90)
    classifier = ReplayClassifier(capacity=50, optimizer=partial(torch.optim.SGD, lr=0.1))
    assert clone(classifier).get_params()["capacity"] == 50
    search = GridSearchCV(
        make_pipeline(StandardScaler(), classifier),
        {"replayclassifier__method": ["van", "er"]},
        cv=2,
    )
    assert search.fit(rows, labels).best_score_ > 0.5


def test_a_network_of_ones_own_is_seeded_and_leaves_torch_alone() -> None:
    rows, labels = blobs(60)
    before = torch.get_rng_state()
    first, second = (
        ReplayClassifier(model=torch.nn.Linear, random_state=5)
        .fit(rows, labels)
        .predict_proba(rows)
        for _ in range(2)
    )
    assert np.array_equal(first, second)
    assert torch.equal(before, torch.get_rng_state())


def test_a_weight_multiplies_the_loss() -> None:
    rows, labels = blobs(60)
    half = ReplayClassifier(optimizer=partial(torch.optim.SGD, lr=0.05))
    half.fit(rows, labels, sample_weight=np.full(60, 2.0))
    whole = ReplayClassifier(optimizer=partial(torch.optim.SGD, lr=0.1)).fit(rows, labels)
    assert np.allclose(half.predict_proba(rows), whole.predict_proba(rows), atol=1e-5)


def test_the_learner_is_saved_with_its_names(tmp_path: Path) -> None:
    rows, labels = blobs(60)
    names = np.array(["ant", "bee", "cat", "duck"])[labels]
    classifier = ReplayClassifier().fit(rows, names)
    classifier.learner_.save(tmp_path / "learner.ckpt")
    model = classifier.learner_.model
    learner = recollect.Learner.from_checkpoint(
        tmp_path / "learner.ckpt", model, torch.optim.Adam(model.parameters(), lr=0.01)
    )
    assert learner.label_map is not None
    assert learner.label_map.labels == ["ant", "bee", "cat", "duck"]


def test_mistakes_are_told() -> None:
    rows, labels = blobs(60)
    with pytest.raises(NotFittedError):
        ReplayClassifier().predict(rows)
    with pytest.raises(ValueError, match=r"`y` holds \[3\], which `classes` does not name"):
        ReplayClassifier().partial_fit(rows, labels, classes=[0, 1, 2])
    classifier = ReplayClassifier().partial_fit(rows, labels, classes=[0, 1, 2, 3])
    with pytest.raises(ValueError, match="but the first call had"):
        classifier.partial_fit(rows, labels, classes=[0, 1, 2, 3, 4])
