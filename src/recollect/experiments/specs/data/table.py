"""The keys of `[data]`, and which of them go together."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from recollect.suggestions import nearest, shown

Problem = tuple[str, str]

_MOST: Final = 1_000_000_000
_Count = Annotated[int, Field(gt=0, le=_MOST)]
_Share = Annotated[float, Field(gt=0, lt=1)]

#: What data can be, and the keys that say how to read it.
KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "folder": ("size", "mode"),
    "table": ("label", "inputs", "image", "size", "mode"),
    "arrays": ("label", "inputs"),
    "huggingface": ("label", "inputs", "split", "revision"),
    "set": (),
}
#: How data can be cut into segments, and the keys that say more of it.
CUTS: Final[Mapping[str, tuple[str, ...]]] = {
    "class": ("classes_per_segment", "class_order", "classes"),
    "column": ("column",),
    "time": ("column", "segments"),
}


class DataTable(BaseModel):
    """`[data]`: data of one's own, and how it is cut into segments."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)

    folder: str | None = None
    table: str | None = None
    arrays: str | None = None
    huggingface: str | None = None
    set: str | None = None
    name: str | None = None
    label: str | None = None
    inputs: str | list[str] | None = None
    image: str | None = None
    size: Annotated[list[_Count], Field(min_length=2, max_length=2)] | None = None
    mode: Literal["RGB", "L"] | None = None
    split: str | None = None
    revision: str | None = None
    test: _Share | str | None = None
    scaling: Literal["usual", "standard", "as-given"] | None = None
    cut: Literal["class", "column", "time"] = "class"
    classes_per_segment: _Count | None = None
    class_order: Literal["ascending", "shuffled"] | None = None
    classes: list[list[str]] | None = None
    column: str | None = None
    segments: _Count | None = None
    blur: Annotated[int, Field(ge=0, le=_MOST)] | Literal["iid"] | None = None

    @property
    def kind(self) -> str:
        """Which of `KINDS` it is."""
        said = self.model_dump()
        return next(kind for kind in KINDS if said[kind] is not None)

    @property
    def where(self) -> str:
        """The folder, file or name of the data."""
        return str(self.model_dump()[self.kind])


def read_table(raw: object) -> tuple[DataTable | None, list[Problem]]:
    """Check keys, types and ranges, and which keys go together.

    Returns:
        The table, None if something is wrong with it, and what is wrong, by key.
    """
    if not isinstance(raw, Mapping):
        return None, [("", f"is {shown(raw)}; it should be a table.")]
    try:
        table = DataTable.model_validate(dict(raw))
    except ValidationError as error:
        found = dict(_problem(told) for told in error.errors())
        return None, [*found.items(), *_of_keys(raw)]
    problems = [*_of_keys(raw), *_of_the_cut(table)]
    return (None, problems) if problems else (table, [])


def _problem(error: Any) -> Problem:
    key = str(error["loc"][0])
    if error["type"] == "extra_forbidden":
        return key, f"unknown key; {nearest(key, DataTable.model_fields)}"
    if key == "test":
        rule = "be a share between 0 and 1, or name the test part"
        return key, f"is {shown(error['input'])}; it should {rule}."
    rule = (
        error["msg"].removeprefix("Input ").replace("a valid i", "an i").replace("a valid ", "a ")
    )
    return ".".join(map(str, error["loc"][:2])), f"is {shown(error['input'])}; it {rule}."


def _of_keys(raw: Mapping[str, Any]) -> Iterator[Problem]:
    said = [kind for kind in KINDS if kind in raw]
    if len(said) != 1:
        names = f"names {' and '.join(said)}; name one."
        yield "", names if said else f"names no data; give one of {', '.join(KINDS)}."
        return
    (kind,) = said
    cut = raw.get("cut", "class")
    yield from _foreign_keys(raw, kind, KINDS, "{}")
    if isinstance(cut, str) and cut in CUTS:
        yield from _foreign_keys(raw, cut, CUTS, 'cut = "{}"')
    is_npy = kind == "arrays" and str(raw[kind]).endswith(".npy")
    if kind in ("table", "arrays", "huggingface") and "label" not in raw:
        yield "label", "is missing; it names what holds the classes."
    if kind in ("arrays", "huggingface") and "inputs" not in raw and not is_npy:
        yield "inputs", "is missing; it names what holds the inputs."
    if "image" in raw and "inputs" in raw:
        yield "image", "and `inputs` name inputs; leave one out."
    yield from _without_columns(raw, kind, cut, has_none=is_npy or kind in ("folder", "set"))


def _foreign_keys(
    raw: Mapping[str, Any], chosen: str, known: Mapping[str, tuple[str, ...]], as_said: str
) -> Iterator[Problem]:
    """Yield keys that belong to another kind of data, or to another cut."""
    for key in sorted({key for keys in known.values() for key in keys}):
        if key in raw and key not in known[chosen]:
            others = " or ".join(as_said.format(o) for o, keys in known.items() if key in keys)
            yield key, f"goes with {others}, not with {as_said.format(chosen)}."


def _without_columns(
    raw: Mapping[str, Any], kind: str, cut: object, *, has_none: bool
) -> Iterator[Problem]:
    if has_none and "column" in raw and cut in ("column", "time"):
        yield "column", f"is {shown(raw['column'])}, but such data has no columns; leave it out."
    if has_none and cut == "column":
        yield "cut", "is 'column', but such data has no columns; cut by class or time."
    if kind == "set" and cut == "time":
        yield "cut", "is 'time', which a set does not have; cut by class."
    if kind == "set" and "test" in raw:
        yield "test", "is the set's own; leave it out."


def _of_the_cut(table: DataTable) -> Iterator[Problem]:
    if table.cut == "class":
        if (table.classes_per_segment is None) == (table.classes is None):
            rule = "says how many classes each segment brings; or `classes` names them."
            is_missing = table.classes is None
            yield (
                "classes_per_segment",
                f"is missing; it {rule}" if is_missing else "and `classes` are given; leave one.",
            )
        if table.classes is not None:
            named = [name for group in table.classes for name in group]
            twice = sorted({name for name in named if named.count(name) > 1})
            if twice or not all(table.classes):
                yield "classes", f"is {shown(table.classes)}; name each class once, and some each."
    if table.cut == "column" and table.column is None:
        yield "column", "is missing; each of its values is a segment."
    if table.cut == "time" and table.segments is None:
        yield "segments", "is missing; it says into how many the time is cut."
    if isinstance(table.blur, int) and table.blur % 2:
        yield "blur", f"is {table.blur}; it should be an even number of examples."
