"""Run by `test_peers.py` with the python of the peers' environment, which has pandas."""

import json

import pandas as pd  # type: ignore[import-untyped,import-not-found,unused-ignore]
import torch
from river import compose, datasets, preprocessing

from recollect.integrations.river import ReplayClassifier


def main() -> None:
    examples = list(datasets.ImageSegments().take(300))  # type: ignore[no-untyped-call]
    frame = pd.DataFrame([x for x, _ in examples])
    labels = pd.Series([y for _, y in examples])
    scaler = preprocessing.StandardScaler()
    scaler.learn_many(frame)
    scaled = scaler.transform_many(frame)
    many, own = ReplayClassifier(), ReplayClassifier()
    empty = many.predict_many(scaled)
    for start in range(0, 300, 10):
        many.learn_many(scaled[start : start + 10], labels[start : start + 10])
        rows = own._rows(scaled[start : start + 10].to_dict("records"))
        own._learn(rows, labels[start : start + 10].tolist())
    assert many.learner is not None
    assert own.learner is not None
    found = many.predict_proba_many(scaled)
    one = many.predict_proba_one(scaled.iloc[7].to_dict())
    pipeline = compose.Pipeline(preprocessing.StandardScaler(), ReplayClassifier())
    pipeline.learn_many(frame[:50], labels[:50])
    state = zip(many.learner.model.parameters(), own.learner.model.parameters(), strict=True)
    print(
        json.dumps(
            {
                "nothing known": len(empty.columns),
                "steps": many.learner.step,
                "same bits": all(torch.equal(a, b) for a, b in state),
                "columns": [sorted(found.columns), sorted(set(labels))],
                "sums to one": bool((found.sum(axis=1) - 1).abs().max() < 1e-9),
                "as one by one": bool(max(abs(one[c] - found.iloc[7][c]) for c in one) < 1e-6),
                "accuracy": float((many.predict_many(scaled) == labels).mean()),
                "in a pipeline": str(pipeline.predict_many(frame[:5]).iloc[0]) in set(labels),
            }
        )
    )


if __name__ == "__main__":
    main()
