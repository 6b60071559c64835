"""A learner in a line for a prompt, and as a small table for a notebook."""

import html
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recollect.learner.learner import Learner


def facts_of(learner: "Learner") -> dict[str, str]:
    """Say what a learner is made of and how far it is."""
    memory = learner.memory
    facts = {"model": type(learner.model).__name__, "rule": _of(learner.rule)}
    if memory is not None:
        facts["memory"] = f"{len(memory):,} of {memory.capacity:,} slots, {_size(memory.nbytes)}"
        facts |= {"storage": _of(learner.storage), "retrieval": _of(learner.retrieval)}
    if learner.objective.is_recorded:
        facts["objective"] = _of(learner.objective)
    if learner.predictor.is_recorded:
        facts["predictor"] = _of(learner.predictor)
    rates = ", ".join(f"{float(group['lr']):g}" for group in learner.optimizer.param_groups)
    facts["optimizer"] = f"{type(learner.optimizer).__name__}, learning rate {rates}"
    facts["steps"] = f"{learner.step:,}, {learner.seen:,} examples seen"
    return facts


def in_a_line(learner: "Learner") -> str:
    """Return what `repr` shows."""
    facts = facts_of(learner)
    shown = ("memory", "storage", "retrieval", "rule", "objective", "predictor", "steps")
    return f"Learner({'; '.join(f'{name}: {facts[name]}' for name in shown if name in facts)})"


def as_html(learner: "Learner") -> str:
    """Return what a notebook shows."""
    rows = "".join(
        f"<tr><th>{name}</th><td>{html.escape(value)}</td></tr>"
        for name, value in facts_of(learner).items()
    )
    return f"<table><caption>Learner</caption>{rows}</table>"


def _of(part: object) -> str:
    shown = repr(part)
    return type(part).__name__ if shown.startswith("<") else shown


def _size(count: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"
