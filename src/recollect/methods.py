"""Every method by name: a row of storage x retrieval x rule x objective x predictor."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args, get_origin

import torch
from torch import nn

from recollect.choices import LEARNER, LEARNER_CODE, OPTIONS, PARTS, ROWS, Row, Value
from recollect.learner import Learner
from recollect.memory import Memory
from recollect.objectives import (
    AsymmetricCrossEntropy,
    CrossEntropy,
    DarkExperience,
    Objective,
    SupervisedContrast,
)
from recollect.predictors import AveragedWeights, Logits, NearestClassMean, Predictor
from recollect.retrieval import MaximallyInterfered, Retrieval, Uniform
from recollect.rules import (
    MGDA,
    AveragedProjection,
    CAGrad,
    ClippedSum,
    GradientSum,
    PCGrad,
    PrincipalDirection,
    Rule,
    UPGrad,
    WeightedSum,
)
from recollect.storage import ClassBalanced, ConfidenceReservoir, GSSGreedy, Reservoir, Storage
from recollect.suggestions import near


@dataclass(frozen=True)
class Method:
    """One row: what it is, and the parts it is made of. No storage means no memory.

    `settings` are options of its parts, or `iterations`, that are other than usual; `augments` says
    that it needs an augmentation.
    """

    summary: str
    storage: type[Storage] | None
    retrieval: type[Retrieval] | None
    rule: type[Rule]
    objective: type[Objective] = CrossEntropy
    predictor: type[Predictor] = Logits
    settings: Mapping[str, Value] = field(default_factory=dict)
    augments: bool = False

    @property
    def kinds(self) -> dict[str, type | None]:
        """Its parts by what they are for, None where it has none."""
        return {part: getattr(self, part) for part in PARTS}


_KINDS: Final[Mapping[str, type]] = {
    kind.__name__: kind
    for kind in (
        *(ClassBalanced, ConfidenceReservoir, GSSGreedy, Reservoir),
        *(MaximallyInterfered, Uniform),
        *(AveragedProjection, ClippedSum, GradientSum, PrincipalDirection, WeightedSum),
        *(CAGrad, MGDA, PCGrad, UPGrad),
        *(AsymmetricCrossEntropy, CrossEntropy, DarkExperience, SupervisedContrast),
        *(AveragedWeights, Logits, NearestClassMean),
    )
}


def _method(row: Row) -> Method:
    """Return a row with its parts themselves in place of their names."""
    kinds: dict[str, Any] = {
        part: None if name is None else _KINDS[name]
        for part, name in {part: row.parts.get(part) for part in PARTS}.items()
    }
    return Method(row.summary, **kinds, settings=row.settings, augments=row.augments)


METHODS: Final[Mapping[str, Method]] = {name: _method(row) for name, row in ROWS.items()}

# Options of `method` that go to the learner itself.
_LEARNER_OPTIONS: Final = (*LEARNER_CODE, *LEARNER, "measure_all")


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
        name: One of `methods()`, or a `Method` of your own: a row of parts.
        model: As for `Learner`.
        optimizer: As for `Learner`.
        capacity: Slots of the memory.
        replay: Examples replayed with each batch.
        seed: As for `Learner`.
        **options: Any parameter of the method's parts (`step_size`, `pick`, `candidates`, `alpha`
            ...), of `Learner` (`loss`, `transform`, `collate`, `augment`, `iterations`, `passes`,
            `weighs`, `measured`, `measure_all`), and `memory_device`.

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
    options = {**row.settings, **options}
    parts = {
        part: {key: options.pop(key) for key in list(options) if key in _settings(kind)}
        for part, kind in row.kinds.items()
    }
    own = {key: options.pop(key) for key in _LEARNER_OPTIONS if key in options}
    memory_device = options.pop("memory_device", "cpu")
    if options:
        shown = "of your own" if isinstance(name, Method) else repr(name)
        raise TypeError(_unknown_options(shown, row, list(options)))
    if row.augments and own.get("augment") is None:
        shown = f", as {name!r} does" if isinstance(name, str) else ""
        raise ValueError(
            f"`augment` is missing; a method that repeats or compares augmented examples{shown}, "
            "needs one, such as `recollect.augment.RandomCrop(padding=4)`."
        )
    own["predictor"] = row.predictor(**parts["predictor"])
    if own.get("loss") is None or not row.objective.is_cross_entropy:
        own["objective"] = row.objective(**parts["objective"])
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
    known = [key for kind in row.kinds.values() for key in _settings(kind)]
    known += [*_LEARNER_OPTIONS, "memory_device"]
    close = near(unknown[0], known)
    hint = f" Did you mean `{close}`?" if close else ""
    return (
        f"method {name} has no option {', '.join(f'`{key}`' for key in unknown)}; its options "
        f"are {', '.join(known)}.{hint}"
    )


def _near(name: object) -> str:
    close = near(str(name).lower().replace("_", "-"), METHODS)
    return f" Did you mean {close!r}?" if close else ""


def needs_of(kind: type) -> str:
    """Say what a part of the library asks of the rest of a learner, from what it declares.

    Example:
        >>> needs_of(SupervisedContrast)
        "projections, classes, augment, passes='joint'"
        >>> needs_of(MaximallyInterfered)
        "column best_loss if beside='best'"
    """
    given: dict[str, Any] = {"replay": 1} if issubclass(kind, Retrieval) else {}
    usual = _asked(kind(**given))
    listed = list(usual)
    for key, option in OPTIONS[kind.__name__].items():
        if get_origin(option.kind) is Literal:
            for value in get_args(option.kind):
                more = [need for need in _asked(kind(**given, **{key: value})) if need not in usual]
                listed += [f"{need} if {key}={value!r}" for need in more]
    return ", ".join(listed) or "nothing"


def _asked(part: object) -> list[str]:
    match part:
        case Storage():
            needs = {
                "classes": part.needs_classes,
                "logits": part.margins != "never",
                "gradients of stored examples": part.needs_evidence
                and type(part).margins == "never",
            }
        case Rule():
            needs = {"each replayed gradient": part.needs != "nothing"}
        case Objective():
            needs = {
                "logits": part.takes_logits,
                "projections": part.takes_projections,
                "classes": part.needs_classes,
                "classes seen": part.needs_classes_seen,
                "augment": part.views > 1,
                "passes='joint'": part.couples,
                **{f"column {column.name}": True for column in part.columns},
            }
        case Retrieval():
            needs = {f"column {column.name}": True for column in part.columns}
        case Predictor():
            needs = {
                "stored examples": part.needs_memory,
                "a copy of the weights": part.follows_weights,
            }
        case _:
            raise TypeError(f"{part!r} is no part of a learner.")
    return [need for need, is_asked in needs.items() if is_asked]
