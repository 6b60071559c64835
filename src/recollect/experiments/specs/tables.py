"""The tables of a spec as its TOML file has them: their keys, types and ranges."""

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from recollect.choices import Measured, Passes, Precision, Weighs
from recollect.suggestions import nearest, shown

Problem = tuple[str, str]

MOST: Final = 1_000_000_000  # slots, examples, steps: no machine has more

_Count = Annotated[int, Field(gt=0, le=MOST)]
_Share = Annotated[float, Field(ge=0, le=1)]


class _Table(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class _Named(_Table):
    """A table whose other keys are options of what its `name` says."""

    model_config = ConfigDict(extra="allow")

    @property
    def options(self) -> dict[str, Any]:
        """The keys that are options."""
        return dict(self.model_extra or {})


class CostTable(_Named):
    """`[stream.cost]`: what a step of each method costs, in steps of ER."""

    found: str | None = None
    __pydantic_extra__: dict[str, Annotated[float, Field(gt=0)]] = Field(init=False)


class StreamTable(_Table):
    """`[stream]`: what arrives, and how. Keys left out are the protocol's."""

    batch_size: _Count | None = None
    num_segments: _Count | None = None
    examples_per_segment: _Count | None = None
    validation_per_segment: Annotated[int, Field(ge=0, le=MOST)] | None = None
    data: str | None = None
    groups: Literal["random"] | None = None
    disjoint: _Share | None = None
    blur: _Share | None = None
    repeat: _Share | None = None
    long_tail: Annotated[float, Field(gt=0, le=1)] | None = None
    budget: Annotated[float, Field(gt=0)] | None = None
    cost: CostTable = CostTable()


class ModelTable(_Named):
    """`[model]`: what learns. `"usual"` is the benchmark's own choice."""

    name: str = "usual"


class OptimizerTable(_Named):
    """`[optimizer]`: how it steps, by any optimizer of torch. Without `lr`, the protocol's."""

    name: str = "sgd"
    lr: Annotated[float, Field(gt=0)] | None = None
    momentum: Annotated[float, Field(ge=0, lt=1)] | None = None
    weight_decay: Annotated[float, Field(ge=0)] | None = None
    found: str | None = None

    @property
    def options(self) -> dict[str, Any]:
        """The keys that are options, those that several optimizers share among them."""
        shared = {"momentum": self.momentum, "weight_decay": self.weight_decay}
        return {key: v for key, v in shared.items() if v is not None} | dict(self.model_extra or {})


class SchedulerTable(_Named):
    """`[scheduler]`: how the learning rate moves, batch by batch, by any schedule of torch."""

    name: str


class LearnerTable(_Table):
    """`[learner]`: how it learns, whatever the method."""

    replay: _Count | None = None
    iterations: _Count | None = None
    passes: Passes = "joint"
    weighs: Weighs = "losses"
    measured: Measured = "all"
    augment: Any = None
    dtype: Precision = "float32"


class EvaluationTable(_Table):
    """`[evaluation]`: what is counted, and how often."""

    on: Literal["test", "validation"] = "test"
    points: _Count = 20
    examples: _Count = 1000


class File(_Table):
    """A whole spec, but for what its methods and names mean."""

    benchmark: str | None = None
    data: Any = None
    protocol: str | None = None
    memory: list[_Count] | None = None
    seeds: _Count = 10
    compare: list[str] | None = None
    stream: StreamTable = StreamTable()
    model: ModelTable = ModelTable()
    optimizer: OptimizerTable = OptimizerTable()
    scheduler: SchedulerTable | None = None
    learner: LearnerTable = LearnerTable()
    evaluation: EvaluationTable = EvaluationTable()
    methods: dict[str, dict[str, Any]]
    tune: dict[str, Any] = {}


def in_our_words(error: Any) -> Problem:
    """Say one of pydantic's findings as a problem with its TOML path."""
    path = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        return path, f"unknown key; {nearest(str(error['loc'][-1]), _keys_at(error['loc'][:-1]))}"
    if error["type"] == "missing":
        return path, "is missing; a spec needs it."
    rule = (
        error["msg"].removeprefix("Input ").replace("a valid i", "an i").replace("a valid ", "a ")
    )
    return path, f"is {shown(error['input'])}; it {rule}."


def _keys_at(location: tuple[str | int, ...]) -> list[str]:
    fields = File.model_fields
    if not location:
        return list(fields)
    table = fields[str(location[0])].annotation
    return list(table.model_fields) if isinstance(table, type) and issubclass(table, _Table) else []
