"""Conformance of an objective."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import torch
from torch import Tensor

from recollect.objectives import Answers, Objective, Part
from recollect.testing.watching import explained, fail, watched

_CLASSES = 5


def check_objective(objective: Objective, *, width: int = _CLASSES) -> None:
    """Check that an objective does what the learner relies on.

    It is given incoming examples alone, replayed ones alone, and both, in any order and in two
    precisions. It must return one finite loss per example, whose gradients are finite. The same
    answers must give the same losses, and other places of the examples the same losses in other
    places. It must write to nothing, and draw nothing if it says so. If it says that it does not
    couple examples, a loss must depend on the outputs of its own example only, and not on whether
    the other part is there. It must keep a finite row per newcomer for each column that it
    declares, and read the classes seen only if it says so.

    Args:
        objective: To check.
        width: Outputs per example; labels are classes from 0 to 4.

    Raises:
        AssertionError: what broke, and on which answers.

    Example:
        >>> from recollect.objectives import AsymmetricCrossEntropy
        >>> check_objective(AsymmetricCrossEntropy(against="unseen"))
    """
    if not isinstance(objective, Objective):
        raise TypeError(
            f"`objective` is {objective!r}; pass an instance of a subclass of `Objective`."
        )
    for dtype in (torch.float64, torch.float32):
        for title, flags in _cases():
            answers = _answers(objective, flags, width, dtype)
            _check_losses(objective, answers, f"{title}, {dtype}")
            if dtype == torch.float64:
                _check_order(objective, answers, title)
                _check_seen(objective, answers, title)
                if not objective.couples:
                    _check_apart(objective, answers, title)


def _cases() -> Iterator[tuple[str, list[bool]]]:
    """Whether each example is replayed, with what is special about it."""
    for count in (1, 2, 6):
        yield f"{count} incoming", [False] * count
        yield f"{count} replayed", [True] * count
        yield f"{count} of each", [False] * count + [True] * count
    yield "more replayed than incoming", [False] * 2 + [True] * 7
    yield "both in turns", [False, True, True, False, True]
    yield "replayed first", [True, True, False]


def _answers(objective: Objective, flags: list[bool], width: int, dtype: torch.dtype) -> Answers:
    rng = torch.Generator().manual_seed(len(flags))
    outputs = torch.randn(objective.views * len(flags), width, generator=rng, dtype=dtype)
    labels = torch.randint(min(width, _CLASSES), (len(flags),), generator=rng)
    stored = torch.randn(objective.views * sum(flags), width, generator=rng, dtype=dtype)
    columns = _kept(objective, Part(stored[: sum(flags)], labels[torch.tensor(flags)]))
    seen = torch.unique(labels) if objective.needs_classes_seen else torch.arange(0)
    return Answers(
        outputs.requires_grad_(),
        labels,
        flags,
        columns if sum(flags) else {},
        seen,
        objective.views,
    )


def _kept(objective: Objective, part: Part) -> Mapping[str, Tensor]:
    names = {column.name for column in objective.columns}
    with watched(objective, "`rows_to_keep`"):
        rows = objective.rows_to_keep(part)
    if rows.keys() != names:
        fail(objective, f"declares the columns {sorted(names)} and keeps {sorted(rows)}.")
    for name, kept in rows.items():
        if not isinstance(kept, Tensor) or len(kept) != len(part) or kept.requires_grad:
            fail(objective, f"keeps `{name}` in other than one detached row per example.")
        if kept.ndim > 2 or not bool(torch.isfinite(kept).all()):
            fail(objective, f"keeps `{name}` with NaN, infinity or too many dimensions.")
    return rows


def _check_losses(objective: Objective, answers: Answers, case: str) -> None:
    tensors = [answers.outputs, answers.labels, *answers.columns.values()]
    before = [tensor.detach().clone() for tensor in tensors]
    losses = _asked(objective, answers, case)
    count = len(answers.labels)
    if not isinstance(losses, Tensor) or losses.shape != (count,):
        shape = tuple(losses.shape) if isinstance(losses, Tensor) else losses
        fail(objective, f"returned {shape} for {case}; return one loss for each of {count}.")
    if losses.dtype != answers.outputs.dtype:
        fail(objective, f"returned {losses.dtype} for {case}; keep the precision of outputs.")
    if not bool(torch.isfinite(losses).all()):
        fail(objective, f"returned {losses.tolist()} for {case}; losses must be finite.")
    if not torch.equal(losses, _asked(objective, answers, case)):
        fail(objective, f"gave two answers to one question ({case}); an objective is pure.")
    if any(not torch.equal(b, t) for b, t in zip(before, tensors, strict=True)):
        fail(objective, f"wrote to what it was given ({case}); copy before changing it.")
    if losses.requires_grad:
        (gradient,) = torch.autograd.grad(losses.sum(), answers.outputs)
        if not bool(torch.isfinite(gradient).all()):
            fail(objective, f"has a gradient with NaN or infinity ({case}).")


def _asked(objective: Objective, answers: Answers, case: str) -> Tensor:
    answers = replace(answers)  # it keeps its parts, and the graphs that they hang on
    if objective.draws:
        with explained(objective, f"a call with {case}"), torch.random.fork_rng(devices=[]):
            return objective(answers)
    with watched(objective, f"a call with {case}"):
        return objective(answers)


def _check_order(objective: Objective, answers: Answers, case: str) -> None:
    """Turn the examples round: each keeps its loss."""
    count, views = len(answers.labels), answers.views
    order = torch.arange(count).flip(0)
    rows = torch.cat([order + view * count for view in range(views)])
    turned = Answers(
        answers.outputs[rows],
        answers.labels[order],
        [answers.is_replayed[i] for i in order.tolist()],
        {name: kept.flip(0) for name, kept in answers.columns.items()},
        answers.classes_seen,
        views,
    )
    found, expected = _asked(objective, turned, case), _asked(objective, answers, case)[order]
    if not torch.allclose(found, expected, rtol=1e-9, atol=1e-12):
        fail(objective, f"gave examples other losses when they changed places ({case}).")


def _check_seen(objective: Objective, answers: Answers, case: str) -> None:
    if objective.needs_classes_seen:
        return
    others = Answers(
        *(answers.outputs, answers.labels, answers.is_replayed, answers.columns),
        torch.arange(_CLASSES),
        answers.views,
    )
    if not torch.equal(_asked(objective, others, case), _asked(objective, answers, case)):
        fail(
            objective,
            f"read `classes_seen` ({case}), which the learner keeps only for objectives whose "
            "`needs_classes_seen` is true.",
        )


def _check_apart(objective: Objective, answers: Answers, case: str) -> None:
    """Demand that a loss is an example's own, given the labels of its part."""
    losses = _asked(objective, answers, case)
    for example in range(len(losses) if losses.requires_grad else 0):
        (gradient,) = torch.autograd.grad(losses[example], answers.outputs, retain_graph=True)
        rows = gradient.reshape(answers.views, len(losses), -1).abs().sum((0, 2))
        rows[example] = 0
        if bool(rows.any()):
            fail(
                objective,
                f"lets the loss of example {example} depend on the outputs of another ({case}); "
                "set `couples` to true, so that rules weigh contributions.",
            )
    for part, replayed in ((answers.incoming, False), (answers.replayed, True)):
        if len(part):
            alone = Answers(
                *(part.outputs, part.labels, [replayed] * len(part), part.columns),
                answers.classes_seen,
                answers.views,
            )
            flags = torch.tensor(answers.is_replayed)
            found, expected = _asked(objective, alone, case), losses[flags == replayed]
            if not torch.allclose(found, expected, rtol=1e-9, atol=1e-12):
                who = "replayed" if replayed else "incoming"
                fail(
                    objective,
                    f"gives {who} examples other losses when they pass alone ({case}), as they do "
                    "in separate passes; set `couples` to true.",
                )
