import pickle
from collections import Counter

import pytest
import torch
from river import checks, datasets, evaluate, metrics, preprocessing

from recollect.integrations.river import ReplayClassifier


@pytest.mark.slow
def test_river_finds_a_classifier_as_its_own_are() -> None:
    model, done = ReplayClassifier(capacity=50), Counter[str]()
    for check in checks.yield_checks(model):
        name = check.__name__
        done[name] += 1
        # The second stream is the first with NumPy's truth values; the third has seven classes.
        is_repeated = done[name] == 2 and name not in ("check_learn_one", "check_pickling")
        # Ten times as long as the others: one of the three is enough.
        is_long = name == "check_bounded_memory_growth" and done[name] > 1
        if not (name in model._unit_test_skips() or is_repeated or is_long):
            check(model.clone())
    assert len(done) >= 25
    assert {
        "check_learn_one",
        "check_emerging_features",
        "check_clone_is_independent",
    } <= done.keys()


def test_replay_remembers_what_a_sorted_stream_brought_first() -> None:
    examples = sorted(datasets.ImageSegments().take(700), key=lambda example: str(example[1]))  # type: ignore[no-untyped-call]
    found = {}
    for method in ("van", "er"):
        model = preprocessing.StandardScaler() | ReplayClassifier(method)
        for x, y in examples:
            model.learn_one(x, y)
        right = sum(model.predict_one(x) == y for x, y in examples)
        found[method] = right / len(examples)
    assert found["van"] < 0.35 < 0.5 < found["er"]


def test_features_are_those_of_the_first_example_in_any_order() -> None:
    model, same = ReplayClassifier(replay=2), ReplayClassifier(replay=2)
    for label, value in (("a", 1.0), ("b", -1.0), ("a", 2.0)):
        model.learn_one({"x": value, "y": 0.5}, label)
        same.learn_one({"y": 0.5, "x": value, **({"z": 9} if value == 2.0 else {})}, label)
    assert model.predict_proba_one({"x": 1.0}) == same.predict_proba_one({"y": 0.0, "x": 1.0})
    assert list(model.predict_proba_one({"x": 1.0})) == ["a", "b"]


def test_nothing_is_known_before_the_first_example() -> None:
    model = ReplayClassifier()
    assert model.predict_proba_one({"x": 1.0}) == {}
    assert model.predict_one({"x": 1.0}) is None


def test_a_feature_that_is_no_number_is_told() -> None:
    with pytest.raises(ValueError, match="feature 'colour' is 'red', which is no number; encode"):
        ReplayClassifier().learn_one({"colour": "red"}, True)


def test_a_network_of_ones_own_takes_the_place_of_the_mlp() -> None:
    model = ReplayClassifier(model=torch.nn.Linear, method="er-p", options={"step_size": 2.0})
    accuracy = evaluate.progressive_val_score(
        datasets.Phishing().take(100),
        model,
        metrics.Accuracy(),  # type: ignore[no-untyped-call]
    )
    assert accuracy.get() > 0.5
    assert model.learner is not None
    assert isinstance(model.learner.model, torch.nn.Linear)
    again = pickle.loads(pickle.dumps(model))
    assert again.learner.step == 100
