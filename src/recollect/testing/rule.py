"""Conformance of a rule."""

from collections.abc import Iterator

import torch
from torch import Tensor

from recollect.rules import Rule
from recollect.testing.watching import fail, watched


def check_rule(rule: Rule, *, order_matters: bool = False) -> None:
    """Check that a rule does what the learner relies on.

    The rule must return one finite weight per gradient, in the dtype of the Gram matrix, from one
    replayed gradient up, also where gradients vanish, cancel or depend on each other. The same Gram
    matrix must give the same weights. The rule must not change the Gram matrix or global
    generators, and must not read more of the matrix than it says that it needs. When replayed
    gradients change places, their weights must change places with them.

    Args:
        rule: To check. A rule remembers nothing, so one instance will do.
        order_matters: Leave the last check out, for a rule whose weights depend on the order of the
            replayed gradients, such as one that averages neighbours in groups.

    Raises:
        AssertionError: what broke, and on which gradients.

    Example:
        >>> from recollect.rules import PrincipalDirection
        >>> check_rule(PrincipalDirection(steps=5))
        >>> check_rule(PrincipalDirection(groups=2), order_matters=True)
    """
    if not isinstance(rule, Rule):
        raise TypeError(f"`rule` is {rule!r}; pass an instance of a subclass of `Rule`.")
    for title, gradients in _cases():
        for dtype in (torch.float64, torch.float32):
            gram = (gradients @ gradients.T).to(dtype)
            _check_weights(rule, gram, f"{title}, {dtype}")
    if not order_matters:
        _check_order(rule)
    if rule.needs == "nothing":
        _check_blindness(rule)
    if rule.needs == "row":
        _check_row(rule)


def _cases() -> Iterator[tuple[str, Tensor]]:
    """Gradients as rows, g first, with what is special about them."""
    for replayed in (1, 2, 5, 10):
        rows = _random_rows(replayed)
        yield f"{replayed} random replayed gradients", rows
        yield f"a zero incoming and {replayed} replayed gradients", _zeroed(rows, [0])
        yield f"the last of {replayed} replayed gradients zero", _zeroed(rows, [replayed])
        yield f"{replayed} zero replayed gradients", _zeroed(rows, list(range(1, 1 + replayed)))
        yield f"{1 + replayed} zero gradients", 0 * rows
        yield f"{replayed} replayed gradients equal to the incoming one", rows[[0] * len(rows)]
        yield (
            f"{replayed} replayed gradients opposed to the incoming one",
            torch.cat((rows[:1], -rows[[0] * replayed])),
        )
        yield f"{replayed} gradients in a plane", rows[:, :2]
        yield f"{replayed} tiny gradients", 1e-12 * rows
        yield f"{replayed} huge gradients", 1e12 * rows
    rows = _random_rows(1)
    yield "two replayed gradients that cancel", torch.cat((rows, -rows[1:]))


def _random_rows(replayed: int) -> Tensor:
    rng = torch.Generator().manual_seed(replayed)
    return torch.randn(1 + replayed, 24, generator=rng, dtype=torch.float64)


def _zeroed(rows: Tensor, which: list[int]) -> Tensor:
    rows = rows.clone()
    rows[which] = 0
    return rows


def _check_weights(rule: Rule, gram: Tensor, case: str) -> None:
    before = gram.clone()
    with watched(rule, f"a call with {case}"):
        weights, again = rule(gram), rule(gram)
    if not isinstance(weights, Tensor) or weights.shape != gram.shape[:1]:
        shape = tuple(weights.shape) if isinstance(weights, Tensor) else weights
        fail(rule, f"returned {shape} for {len(gram)} gradients; return one weight for each.")
    if weights.dtype != gram.dtype or weights.device != gram.device:
        fail(
            rule,
            f"returned {weights.dtype} on {weights.device} for a Gram matrix of {gram.dtype} on "
            f"{gram.device}; keep both.",
        )
    if not bool(weights.isfinite().all()):
        fail(rule, f"returned {weights.tolist()} for {case}; weights must be finite.")
    if not torch.equal(gram, before):
        fail(rule, f"wrote to the Gram matrix ({case}); copy before changing it.")
    if not torch.equal(weights, again):
        fail(rule, f"gave two answers to one question ({case}); a rule is a pure function.")


def _check_order(rule: Rule) -> None:
    for replayed in (2, 5, 10):
        rows = _random_rows(replayed)
        order = torch.tensor([0, replayed, *range(1, replayed)])
        weights = rule(rows @ rows.T)
        moved = rule(rows[order] @ rows[order].T)
        if not torch.allclose(moved, weights[order], rtol=1e-6, atol=1e-9):
            fail(
                rule,
                f"gave {replayed} replayed gradients other weights when they changed places; make "
                "weights follow their gradients, or pass `order_matters=True` if places matter.",
            )


def _check_blindness(rule: Rule) -> None:
    for replayed in (1, 5):
        rows = _random_rows(replayed)
        if not torch.equal(rule(rows @ rows.T), rule(torch.zeros_like(rows @ rows.T))):
            fail(
                rule,
                'read the Gram matrix though its `needs` is "nothing"; the learner then hands it '
                'one without meaning. Set `needs` to "matrix".',
            )


def _check_row(rule: Rule) -> None:
    for title, gradients in _cases():
        gram = gradients @ gradients.T
        row = gram.diagonal().diag()
        row[0] = row[:, 0] = gram[0]
        weights = rule(gram)
        if not torch.allclose(rule(row), weights, rtol=1e-9, atol=1e-12):
            fail(
                rule,
                "read more of the Gram matrix than row 0 and the diagonal though its `needs` is "
                f'"row" ({title}); the rest is not measured then. Set `needs` to "matrix".',
            )
        answer = rule.row_weights(gram[0].tolist(), gram.diagonal().tolist())
        if not torch.allclose(weights.new_tensor(answer), weights, rtol=1e-9, atol=1e-12):
            fail(
                rule,
                f"gave other weights by `row_weights` than for the matrix ({title}); make both "
                "the same formula.",
            )
