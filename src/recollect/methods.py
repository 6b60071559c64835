"""Every method by name: a row of storage x retrieval x rule."""

import dataclasses
import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import nn

from recollect.learner import Learner
from recollect.memory import Memory
from recollect.retrieval import MaximallyInterfered, Retrieval, Uniform
from recollect.rules import (
    AveragedProjection,
    ClippedSum,
    GradientSum,
    PrincipalDirection,
    Rule,
    WeightedSum,
)
from recollect.storage import ClassBalanced, ConfidenceReservoir, GSSGreedy, Reservoir, Storage


@dataclass(frozen=True)
class Method:
    """One row: what it is, and the three parts it is made of. No storage means no memory."""

    summary: str
    storage: type[Storage] | None
    retrieval: type[Retrieval] | None
    rule: type[Rule]


METHODS: Final[Mapping[str, Method]] = {
    "van": Method("the incoming batch alone, no memory", None, None, GradientSum),
    "er": Method("experience replay", Reservoir, Uniform, GradientSum),
    "er-p": Method("ER with principal gradient direction", Reservoir, Uniform, PrincipalDirection),
    "er-c": Method(
        "ER with confidence reservoir sampling", ConfidenceReservoir, Uniform, GradientSum
    ),
    "er-pc": Method("ER with both", ConfidenceReservoir, Uniform, PrincipalDirection),
    "er-mir": Method(
        "ER with maximally interfered retrieval", Reservoir, MaximallyInterfered, GradientSum
    ),
    "er-p-mir": Method("ER-P with MIR", Reservoir, MaximallyInterfered, PrincipalDirection),
    "er-pc-mir": Method(
        "ER-PC with MIR, the paper's best",
        ConfidenceReservoir,
        MaximallyInterfered,
        PrincipalDirection,
    ),
    "gss": Method("gradient-based sample selection, greedy", GSSGreedy, Uniform, GradientSum),
    "a-gem": Method(
        "averaged gradient episodic memory, task-free", Reservoir, Uniform, AveragedProjection
    ),
    "er-cb": Method("ER with class-balanced storage", ClassBalanced, Uniform, GradientSum),
    "er-p-cb": Method("ER-CB with PGD", ClassBalanced, Uniform, PrincipalDirection),
    "er-w": Method("ER with a weight on replay", Reservoir, Uniform, WeightedSum),
    "er-w-mir": Method("ER-W with MIR", Reservoir, MaximallyInterfered, WeightedSum),
    "er-clip": Method("ER-W with clipped replay", Reservoir, Uniform, ClippedSum),
    "er-clip-mir": Method("ER-CLIP with MIR", Reservoir, MaximallyInterfered, ClippedSum),
}

# Options of `method` that go to the learner itself.
_LEARNER_OPTIONS: Final = ("loss", "transform", "iterations", "passes", "weighs")


def method(
    name: str | Method,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    capacity: int = 500,
    replay: int = 10,
    seed: int = 0,
    **options: Any,
) -> Learner:
    """Build a learner from a method's name.

    Args:
        name: One of `methods()`, or a `Method` of your own: a row of three parts.
        model: As for `Learner`.
        optimizer: As for `Learner`.
        capacity: Slots of the memory.
        replay: Examples replayed with each batch.
        seed: As for `Learner`.
        **options: Any parameter of the method's storage, retrieval or rule (`step_size`, `pick`,
            `candidates` ...), of `Learner` (`loss`, `transform`, `iterations`, `passes`,
            `weighs`), and `memory_device`.

    Example:
        >>> from recollect.models import mlp
        >>> model = mlp(4, 2)
        >>> sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        >>> method("er-pc-mir", model, sgd, step_size=3.0, candidates=20).rule.step_size
        3.0
    """
    row = name if isinstance(name, Method) else METHODS.get(name)
    if row is None:
        raise ValueError(f"`name` is {name!r}; choose one of {', '.join(METHODS)}.{_near(name)}")
    parts = {
        part: {key: options.pop(key) for key in list(options) if key in _settings(kind)}
        for part, kind in (
            ("storage", row.storage),
            ("retrieval", row.retrieval),
            ("rule", row.rule),
        )
    }
    own = {key: options.pop(key) for key in _LEARNER_OPTIONS if key in options}
    memory_device = options.pop("memory_device", "cpu")
    if options:
        shown = "of your own" if isinstance(name, Method) else repr(name)
        raise TypeError(_unknown_options(shown, row, list(options)))
    if row.storage is None or row.retrieval is None:
        return Learner(model, optimizer, rule=row.rule(**parts["rule"]), seed=seed, **own)
    return Learner(
        model,
        optimizer,
        memory=Memory(capacity, device=memory_device),
        storage=row.storage(**parts["storage"]),
        retrieval=row.retrieval(replay=replay, **parts["retrieval"]),  # type: ignore[call-arg]
        rule=row.rule(**parts["rule"]),
        seed=seed,
        **own,
    )


def methods() -> dict[str, str]:
    """List all methods: name and one line each."""
    return {name: row.summary for name, row in METHODS.items()}


def _settings(kind: type | None) -> tuple[str, ...]:
    if kind is None or not dataclasses.is_dataclass(kind):
        return ()
    return tuple(field.name for field in dataclasses.fields(kind) if field.name != "replay")


def _unknown_options(name: str, row: Method, unknown: list[str]) -> str:
    known = [key for kind in (row.storage, row.retrieval, row.rule) for key in _settings(kind)]
    known += [*_LEARNER_OPTIONS, "memory_device"]
    near = difflib.get_close_matches(unknown[0], known, n=1)
    hint = f" Did you mean `{near[0]}`?" if near else ""
    return (
        f"method {name} has no option {', '.join(f'`{key}`' for key in unknown)}; its options "
        f"are {', '.join(known)}.{hint}"
    )


def _near(name: object) -> str:
    near = difflib.get_close_matches(str(name).lower().replace("_", "-"), METHODS, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""
