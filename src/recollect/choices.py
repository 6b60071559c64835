"""What can be chosen by name, told without importing what it is made of.

Torch takes two seconds to import. A command that lists methods, or finds a mistake in a spec, reads
this instead; tests hold it to the parts themselves.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, get_args, get_origin

Passes = Literal["joint", "separate", "grouped"]
Weighs = Literal["losses", "contributions"]
# Which parameters enter inner products: all, those of the last layer, or those that are named.
Measured = Literal["all", "head"] | list[str]
# When margin increments are measured (paper note P5).
MarginTiming = Literal["never", "insertion", "replay", "both", "all"]
# What numbers a model computes with. bfloat16 is autocast: its weights stay float32.
Precision = Literal["float32", "bfloat16", "float64"]
# Which classes an incoming example is told apart from, under asymmetric cross entropy.
Against = Literal["present", "unseen"]
# What maximally interfered retrieval compares the loss after the virtual step with.
Beside = Literal["now", "best"]

Value = str | int | float | bool | None

#: What a method is made of.
PARTS: Final = ("storage", "retrieval", "rule", "objective", "predictor")


@dataclass(frozen=True)
class Row:
    """A method: one line on it, and the names of its parts. No storage means no memory.

    Attributes:
        summary: The line.
        storage: Which slot a newcomer takes.
        retrieval: Which slots are replayed.
        rule: How gradients become one update.
        objective: What is asked of outputs.
        predictor: How the learner answers.
        settings: Options of its parts or of the learner that are other than usual.
        augments: Whether it needs an augmentation, which nobody can choose for all data.
    """

    summary: str
    storage: str | None
    retrieval: str | None
    rule: str
    objective: str = "CrossEntropy"
    predictor: str = "Logits"
    settings: Mapping[str, Value] = field(default_factory=dict)
    augments: bool = False

    @property
    def parts(self) -> dict[str, str]:
        """The parts it has: which, and the name of each."""
        named = {part: getattr(self, part) for part in PARTS}
        return {part: name for part, name in named.items() if name is not None}


@dataclass(frozen=True)
class Option:
    """A setting of a part.

    Attributes:
        kind: Its type.
        default: What it is when nobody says.
        at_least: No number may be below it.
        above: Every number has to be above it.
        at_most: No number may be above it.
        below: Every number has to be below it.
        later: Whether records exist of before it was there. It is not written out where it has its
            default, so that they keep their hash.
    """

    kind: Any
    default: Value | tuple[float, ...]
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None
    later: bool = False

    def complaint(self, value: object) -> str | None:
        """Return what a number, or each of several, should be; None if it is that.

        Example:
            >>> Option(float, 0.5, at_least=0, at_most=1).complaint(2.0)
            'at most 1'
        """
        if isinstance(value, list | tuple):
            complaints = filter(None, map(self.complaint, value))
            return next((f"{complaint} each" for complaint in complaints), None)
        if not isinstance(value, int | float):
            return None
        if self.at_least is not None and value < self.at_least:
            return f"at least {self.at_least}"
        if self.above is not None and value <= self.above:
            return f"above {self.above}"
        if self.at_most is not None and value > self.at_most:
            return f"at most {self.at_most}"
        if self.below is not None and value >= self.below:
            return f"below {self.below}"
        return None

    def kind_in_words(self) -> str:
        """Return the type as a person reads it.

        Example:
            >>> Option(int | None, None).kind_in_words()
            'int or none'
            >>> Option(Literal["losses", "contributions"], "losses").kind_in_words()
            'losses | contributions'
            >>> Option(Literal["all", "head"] | list[str], "all").kind_in_words()
            'all | head or list'
        """
        if get_origin(self.kind) is Literal:
            return _in_words(self.kind)
        return " or ".join(map(_in_words, get_args(self.kind) or (self.kind,)))


def _in_words(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return " | ".join(map(str, get_args(kind)))
    return "none" if kind is type(None) else str(kind.__name__)


# What others are built on, by what is added to their names.
_BACKBONES: Final[Mapping[str, Row]] = {
    "er": Row("experience replay", "Reservoir", "Uniform", "GradientSum"),
    "er-ace": Row(
        "ER with asymmetric cross entropy",
        "Reservoir",
        "Uniform",
        "GradientSum",
        objective="AsymmetricCrossEntropy",
    ),
    "der++": Row(
        "dark experience replay, with labels",
        "Reservoir",
        "Uniform",
        "GradientSum",
        objective="DarkExperience",
        settings={"beta": 0.5},
    ),
    "rar": Row(
        "repeated augmented rehearsal",
        "Reservoir",
        "Uniform",
        "GradientSum",
        settings={"iterations": 3},
        augments=True,
    ),
}
_ADDED: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "p": ("with principal gradient direction", {"rule": "PrincipalDirection"}),
    "c": ("with confidence reservoir sampling", {"storage": "ConfidenceReservoir"}),
    "pc": ("with both", {"rule": "PrincipalDirection", "storage": "ConfidenceReservoir"}),
    "w": ("with a weight on replay", {"rule": "WeightedSum"}),
    "clip": ("with clipped, weighted replay", {"rule": "ClippedSum"}),
}


def _built_on(backbone: str) -> dict[str, Row]:
    """Return a backbone, and what PGD, CRS and their controls make of it."""
    row = _BACKBONES[backbone]
    added = {
        f"{backbone}-{suffix}": replace(row, summary=f"{backbone.upper()} {words}", **parts)
        for suffix, (words, parts) in _ADDED.items()
    }
    return {backbone: row, **added}


ROWS: Final[Mapping[str, Row]] = {
    "van": Row("the incoming batch alone, no memory", None, None, "GradientSum"),
    **_built_on("er"),
    "er-mir": Row(
        "ER with maximally interfered retrieval", "Reservoir", "MaximallyInterfered", "GradientSum"
    ),
    "er-p-mir": Row("ER-P with MIR", "Reservoir", "MaximallyInterfered", "PrincipalDirection"),
    "er-pc-mir": Row(
        "ER-PC with MIR, the paper's best",
        "ConfidenceReservoir",
        "MaximallyInterfered",
        "PrincipalDirection",
    ),
    "gss": Row("gradient-based sample selection, greedy", "GSSGreedy", "Uniform", "GradientSum"),
    "a-gem": Row(
        "averaged gradient episodic memory, task-free",
        "Reservoir",
        "Uniform",
        "AveragedProjection",
    ),
    "er-cb": Row("ER with class-balanced storage", "ClassBalanced", "Uniform", "GradientSum"),
    "er-p-cb": Row("ER-CB with PGD", "ClassBalanced", "Uniform", "PrincipalDirection"),
    "er-w-mir": Row("ER-W with MIR", "Reservoir", "MaximallyInterfered", "WeightedSum"),
    "er-clip-mir": Row("ER-CLIP with MIR", "Reservoir", "MaximallyInterfered", "ClippedSum"),
    "er-pcgrad": Row("ER with gradient surgery", "Reservoir", "Uniform", "PCGrad"),
    "er-mgda": Row("ER with multiple-gradient descent", "Reservoir", "Uniform", "MGDA"),
    "er-cagrad": Row("ER with conflict-averse gradients", "Reservoir", "Uniform", "CAGrad"),
    "er-upgrad": Row("ER with unconflicting projections", "Reservoir", "Uniform", "UPGrad"),
    **_built_on("er-ace"),
    "der": Row(
        "dark experience replay, from logits alone",
        "Reservoir",
        "Uniform",
        "GradientSum",
        objective="DarkExperience",
    ),
    **_built_on("der++"),
    **_built_on("rar"),
    "scr": Row(
        "supervised contrastive replay",
        "Reservoir",
        "Uniform",
        "GradientSum",
        objective="SupervisedContrast",
        predictor="NearestClassMean",
        augments=True,
    ),
    "er-ema": Row(
        "ER that answers with averaged weights",
        "Reservoir",
        "Uniform",
        "GradientSum",
        predictor="AveragedWeights",
    ),
}

OPTIONS: Final[Mapping[str, Mapping[str, Option]]] = {
    "AsymmetricCrossEntropy": {"against": Option(Against, "present")},
    "AveragedWeights": {"decay": Option(float, 0.99, at_least=0, below=1)},
    "AveragedProjection": {},
    "CAGrad": {
        "radius": Option(float, 0.5, at_least=0),
        "groups": Option(int | None, None, at_least=1),
    },
    "ClassBalanced": {},
    "ClippedSum": {
        "replay_weight": Option(float, 20.0, above=0),
        "clip": Option(float, 1.0, above=0),
    },
    "ConfidenceReservoir": {
        "pick": Option(Literal["highest", "proportional"], "proportional"),
        "margin_weight": Option(float, 0.1),
        "margins": Option(MarginTiming, "insertion"),
        "negative": Option(Literal["clamp", "shift"], "clamp"),
        "age_offset": Option(float, 0.0, at_least=0),
        "within_class": Option(bool, False),
    },
    "CrossEntropy": {},
    "DarkExperience": {
        "alpha": Option(float, 0.3, at_least=0),
        "beta": Option(float, 0.0, at_least=0),
    },
    "GSSGreedy": {
        "batches": Option(int, 10, at_least=1),
        "batch_size": Option(int, 10, at_least=1),
    },
    "GradientSum": {},
    "MGDA": {"groups": Option(int | None, None, at_least=1)},
    "Logits": {},
    "MaximallyInterfered": {
        "candidates": Option(int, 50, at_least=1),
        "beside": Option(Beside, "now", later=True),
    },
    "NearestClassMean": {"layer": Option(str | None, None)},
    "PCGrad": {"groups": Option(int | None, None, at_least=1)},
    "PrincipalDirection": {
        "step_size": Option(float, 10.0, at_least=0),
        "norm_floor": Option(float, 1.0, above=0),
        "target_floor": Option(float, 3.0, above=0),
        "steps": Option(int, 1, at_least=1),
        "groups": Option(int | None, None, at_least=1),
        "pull": Option(float, 0.5, at_least=0, at_most=1),
    },
    "Reservoir": {},
    "SupervisedContrast": {"temperature": Option(float, 0.1, above=0)},
    "UPGrad": {"groups": Option(int | None, None, at_least=1)},
    "Uniform": {},
    "WeightedSum": {"replay_weight": Option(float, 3.0, above=0)},
}

# `augment = [...]` of a spec: classes of `recollect.augment`.
_SHARE: Final = Option(float, 0.1, at_least=0, at_most=1)
AUGMENTATIONS: Final[Mapping[str, Mapping[str, Option]]] = {
    "ColourChange": {
        "brightness": _SHARE,
        "contrast": _SHARE,
        "value_range": Option(tuple[float, float], (0.0, 1.0)),
    },
    "RandomCrop": {"padding": Option(int, 4, at_least=1)},
    "RandomFlip": {"share": Option(float, 0.5, at_least=0, at_most=1)},
}

# `[model] name = ...` of a spec: `recollect.models.BUILDERS`, less what follows from the data.
MODELS: Final[Mapping[str, Mapping[str, Option]]] = {
    "mlp": {"hidden": Option(list[int], (100, 100), at_least=1)},
    "reduced-resnet18": {
        "norm": Option(Literal["batch", "group"], "batch"),
        "width": Option(int, 20, at_least=1),
    },
    "transformer": {
        "num_words": Option(int, 256, at_least=1),
        "width": Option(int, 64, at_least=1),
        "layers": Option(int, 2, at_least=1),
        "heads": Option(int, 4, at_least=1),
        "dropout": Option(float, 0.1, at_least=0, at_most=1),
    },
}

# Options of the usual optimizers, so that a misspelt one is told without torch. Torch itself tells
# of the others.
OPTIMIZERS: Final[Mapping[str, tuple[str, ...]]] = {
    "sgd": (
        *("dampening", "differentiable", "foreach", "fused", "maximize", "momentum", "nesterov"),
        "weight_decay",
    ),
    "adam": (
        *("amsgrad", "betas", "capturable", "decoupled_weight_decay", "differentiable", "eps"),
        *("foreach", "fused", "maximize", "weight_decay"),
    ),
}


#: Options of a learner that are code, which no spec or checkpoint holds as it is.
LEARNER_CODE: Final = ("loss", "label_map", "transform", "collate", "augment")

#: How a learner takes its steps, whatever its parts are. Methods, specs, records, checkpoints and
#: the command read it here.
LEARNER: Final[Mapping[str, Option]] = {
    "iterations": Option(int, 1, at_least=1),
    "passes": Option(Passes, "joint"),
    "weighs": Option(Weighs, "losses"),
    "measured": Option(Measured, "all"),
}

#: What each part asks of the rest of a learner, in words: what goes with what follows from it.
#: `recollect.methods.needs_of` makes these lines of what the parts declare.
NEEDS: Final[Mapping[str, str]] = {
    "AsymmetricCrossEntropy": "logits, classes, classes seen if against='unseen'",
    "AveragedProjection": "each replayed gradient",
    "AveragedWeights": "a copy of the weights",
    "CAGrad": "each replayed gradient",
    "ClassBalanced": "classes",
    "ClippedSum": "each replayed gradient",
    "ConfidenceReservoir": "classes, logits",
    "CrossEntropy": "logits, classes",
    "DarkExperience": "logits, classes, column logits, column num_logits",
    "GSSGreedy": "gradients of stored examples",
    "GradientSum": "nothing",
    "Logits": "nothing",
    "MGDA": "each replayed gradient",
    "MaximallyInterfered": "column best_loss if beside='best'",
    "NearestClassMean": "stored examples",
    "PCGrad": "each replayed gradient",
    "PrincipalDirection": "each replayed gradient",
    "Reservoir": "nothing",
    "SupervisedContrast": "projections, classes, augment, passes='joint'",
    "UPGrad": "each replayed gradient",
    "Uniform": "nothing",
    "WeightedSum": "nothing",
}


def options_of(method: str) -> dict[str, Option]:
    """Return every option of a method's parts, with the defaults that it has there."""
    row = ROWS[method]
    options = {key: option for part in row.parts.values() for key, option in OPTIONS[part].items()}
    return {
        key: replace(option, default=row.settings[key]) if key in row.settings else option
        for key, option in options.items()
    }
