"""`[tune]` of a spec: how its settings are searched for."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from recollect.errors import ConfigError
from recollect.suggestions import nearest, shown

MOST_TRIALS: Final = 10_000
MOST_SEEDS: Final = 1000  # so that the seeds of no two stages are the same
Count = Annotated[int, Field(gt=0, le=MOST_TRIALS)]
Seeds = Annotated[int, Field(gt=0, le=MOST_SEEDS)]


class _Table(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class MethodSearch(_Table):
    """`[tune.methods.NAME]`: what is searched for one method.

    `space` overrides ranges, option by option; `known` settings are tried first, and without any
    what the spec says now, if the ranges have it.
    """

    space: dict[str, Any] = {}
    known: list[dict[str, Any]] | None = None


class InheritedTable(_Table):
    """`[tune.inherited.NAME]`: a method that takes over what is found for others."""

    sources: Annotated[list[str], Field(alias="from", min_length=1)]
    settings: dict[str, Any] = {}


class TuneTable(_Table):
    """`[tune]`: budget, overrides while searching, ranges, and settings to begin with.

    `set` is written like `--set` and holds while searching only: shorter streams, for instance.
    `ahead` is how many trials of a method may run at once: each is suggested by those that are this
    far behind it, however many processes there are.
    """

    trials: Count = 20
    seeds: Seeds = 2
    finalists: Count = 3
    fresh_seeds: Annotated[int, Field(ge=0, le=MOST_SEEDS)] = 4
    ahead: Count = 4
    prune: bool = True
    set: list[str] = []
    space: dict[str, Any] = {}
    methods: dict[str, MethodSearch] = {}
    inherited: dict[str, InheritedTable] = {}


def read_table(said: Mapping[str, Any], source: str) -> TuneTable:
    """Check `[tune]` by names and types.

    Raises:
        ConfigError: It breaks rules; every problem is listed.
    """
    try:
        table = TuneTable.model_validate(dict(said))
    except ValidationError as error:
        raise ConfigError(source, [_in_words(problem) for problem in error.errors()]) from error
    methods = {
        name: own.model_copy(update={"space": _flat(own.space)})
        for name, own in table.methods.items()
    }
    return table.model_copy(update={"space": _flat(table.space), "methods": methods})


def _flat(space: Mapping[str, Any]) -> dict[str, Any]:
    """Name options of the optimizer by their path: TOML makes a table of `optimizer.momentum`."""
    inner = space.get("optimizer")
    if not isinstance(inner, Mapping):
        return dict(space)
    flat = {key: said for key, said in space.items() if key != "optimizer"}
    return flat | {f"optimizer.{key}": said for key, said in inner.items()}


def _in_words(error: Any) -> tuple[str, str]:
    path = ".".join(["tune", *(str(part) for part in error["loc"])])
    if error["type"] == "extra_forbidden":
        known = TuneTable.model_fields if len(error["loc"]) == 1 else ("space", "known", "from")
        return path, f"unknown key; {nearest(str(error['loc'][-1]), known)}"
    if error["type"] == "missing":
        return path, "is missing; say which methods' settings it takes over."
    rule = error["msg"].removeprefix("Input ").replace("a valid ", "a ")
    return path, f"is {shown(error['input'])}; it {rule}."
