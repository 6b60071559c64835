"""Options of what a spec names, checked by tables alone: nothing is imported for it."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import ConfigDict, TypeAdapter, ValidationError

from recollect.choices import AUGMENTATIONS, MODELS, Option
from recollect.suggestions import nearest, shown

Problem = tuple[str, str]
Settings = dict[str, Any]

_MOST_AUGMENTATIONS: Final = 20


def read_options(
    said: Mapping[str, Any], known: Mapping[str, Option]
) -> tuple[Settings, list[Problem]]:
    """Check options by their types and ranges, and write the defaults out.

    Returns:
        Every option as JSON can say it; and what is wrong, by key.
    """
    values = {key: plain(option.default) for key, option in known.items()}
    problems = []
    for key, value in said.items():
        if key not in known:
            told = nearest(key, known) if known else "it has no options."
            problems.append((key, f"unknown key; {told}"))
            continue
        try:
            values[key] = plain(as_kind(known[key].kind, value))
        except ValidationError as error:
            problems.append((key, f"is {shown(value)}; it should be {in_words(error)}."))
            continue
        if rule := known[key].complaint(values[key]):
            problems.append((key, f"is {shown(value)}; it should be {rule}."))
    return values, problems


def read_augmentations(said: object) -> tuple[list[Settings], list[Problem]]:
    """Read `augment`: names, or tables of a name and options, in the order they are applied.

    Example:
        >>> read_augmentations(["RandomFlip"])
        ([{'name': 'RandomFlip', 'share': 0.5}], [])
    """
    if not isinstance(said, list) or len(said) > _MOST_AUGMENTATIONS:
        told = 'is {}; write a list such as ["RandomCrop", {{ name = "RandomFlip", share = 0.3 }}].'
        return [], [("", told.format(shown(said)))]
    read, problems = [], []
    for position, entry in enumerate(said):
        table = {"name": entry} if isinstance(entry, str) else entry
        if not isinstance(table, Mapping) or not isinstance(table.get("name"), str):
            told = f"is {shown(entry)}; name one of {', '.join(AUGMENTATIONS)}."
            problems.append((f".{position}", told))
            continue
        name = table["name"]
        if name not in AUGMENTATIONS:
            problems.append((f".{position}", f"is {shown(name)}; {nearest(name, AUGMENTATIONS)}"))
            continue
        options = {key: value for key, value in table.items() if key != "name"}
        values, of_this = read_options(options, AUGMENTATIONS[name])
        read.append({"name": name, **values})
        problems += [(f".{position}.{key}", told) for key, told in of_this]
    return read, problems


def model_problems(name: str, options: Mapping[str, Any]) -> list[Problem]:
    """Check the options of a model of the library's, by key."""
    if name == "usual":
        hints = {"hidden": 'only an MLP has hidden widths; set name = "mlp".'}
        hints["norm"] = 'only the ResNet normalises; set name = "reduced-resnet18".'
        other = "the benchmark's own model takes no options; name a model."
        return [(key, hints.get(key, other)) for key in options]
    if name not in MODELS:
        told = nearest(name, ["usual", *MODELS])
        return [("name", f"is {shown(name)}; {told} A file of yours is `path/to/net.py:Net`.")]
    hints = {}
    if name != "mlp":
        hints["hidden"] = 'only an MLP has hidden widths; set name = "mlp".'
    if name != "reduced-resnet18":
        hints["norm"] = 'only the ResNet normalises; set name = "reduced-resnet18".'
    known = MODELS[name]
    foreign = [(key, hints[key]) for key in options if key in hints and key not in known]
    rest = {key: value for key, value in options.items() if key not in dict(foreign)}
    return foreign + read_options(rest, known)[1]


def as_kind(kind: Any, value: object) -> Any:
    """Return a value as its type has it: 1 is 1.0 where a float is meant, a list may be a tuple.

    Raises:
        ValidationError: It is no such value.
        PydanticSchemaGenerationError: The type is nothing that a spec could say.
    """
    config = ConfigDict(strict=True, allow_inf_nan=False, arbitrary_types_allowed=True)
    adapter: TypeAdapter[Any] = TypeAdapter(kind, config=config)
    try:
        return adapter.validate_python(value)
    except ValidationError:
        if not isinstance(value, list):
            raise
        try:
            return adapter.validate_python(tuple(value))
        except ValidationError:
            return adapter.validate_python(value)  # for what it says of the list


def plain(value: Any) -> Any:
    """Return a value as JSON gives it back."""
    return [plain(entry) for entry in value] if isinstance(value, tuple | list) else value


def in_words(error: ValidationError) -> str:
    """Return what a value should have been."""
    wanted = (
        str(found["msg"])
        .removeprefix("Input should be ")
        .replace("a valid i", "an i")
        .replace("a valid ", "a ")
        for found in error.errors()
    )
    return " or ".join(dict.fromkeys(wanted))
