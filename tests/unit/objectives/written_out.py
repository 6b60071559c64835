"""Objectives once more, in NumPy, example by example, as their equations stand in the papers."""

import numpy as np
from numpy.typing import NDArray

Real = NDArray[np.float64]
Whole = NDArray[np.int64]


def minus_log_share(logits: Real, label: int, among: set[int]) -> float:
    """-log of a class's share among some classes."""
    chosen = np.array(sorted(among))
    largest = logits[chosen].max()
    return float(np.log(np.exp(logits[chosen] - largest).sum()) + largest - logits[label])


def cross_entropy(logits: Real, labels: Whole) -> Real:
    everything = set(range(logits.shape[1]))
    pairs = zip(logits, labels.tolist(), strict=True)
    return np.array([minus_log_share(z, y, everything) for z, y in pairs])


def asymmetric(logits: Real, labels: Whole, left_out: set[int]) -> Real:
    among = set(range(logits.shape[1])) - left_out | set(labels.tolist())
    pairs = zip(logits, labels.tolist(), strict=True)
    return np.array([minus_log_share(z, y, among) for z, y in pairs])


def dark(logits: Real, stored: Real, labels: Whole, alpha: float, beta: float) -> Real:
    distance = np.array([((z - h) ** 2).mean() for z, h in zip(logits, stored, strict=True)])
    return alpha * distance + beta * cross_entropy(logits, labels)


def contrast(first: Real, second: Real, labels: Whole, temperature: float) -> Real:
    """Supervised contrast of two views of each example."""
    views = [*first, *second]
    views = [view / np.linalg.norm(view) for view in views]
    classes = [*labels.tolist(), *labels.tolist()]
    losses = []
    for a, anchor in enumerate(views):
        others = [b for b in range(len(views)) if b != a]
        below = sum(np.exp(anchor @ views[b] / temperature) for b in others)
        partners = [b for b in others if classes[b] == classes[a]]
        logs = [np.log(np.exp(anchor @ views[p] / temperature) / below) for p in partners]
        losses.append(-sum(logs) / len(partners))
    count = len(labels)
    return np.array([(losses[i] + losses[i + count]) / 2 for i in range(count)])


# --- what a package on PyPI computes --------------------------------------------------------------
# Written from the formulas of avalanche-lib 0.6.0, which does not install beside our torch:
# `avalanche.training.losses` of `ER_ACE` and `avalanche.training.supervised.der.DER`. Scalars, as
# there.


def avalanche_er_ace(
    incoming: Real, labels: Whole, replayed: Real, replayed_labels: Whole
) -> float:
    """Half of the mean over replayed, all classes, plus the mean over incoming, classes present."""
    present = np.unique(labels)
    columns = incoming[:, present]
    targets = (labels[:, None] == present[None, :]).astype(np.float64)
    log_shares = columns - np.log(np.exp(columns).sum(1, keepdims=True))
    of_incoming = -(targets * log_shares).sum(1).mean()
    return float((cross_entropy(replayed, replayed_labels).mean() + of_incoming) / 2)


def avalanche_der(
    incoming: Real,
    labels: Whole,
    replayed: Real,
    replayed_labels: Whole,
    stored: Real,
    alpha: float,
    beta: float,
) -> float:
    """Cross entropy, plus alpha times one mean of squares over all entries, plus beta times CE."""
    squares = ((replayed - stored) ** 2).sum() / replayed.size
    of_replayed = cross_entropy(replayed, replayed_labels).mean()
    return float(cross_entropy(incoming, labels).mean() + alpha * squares + beta * of_replayed)
