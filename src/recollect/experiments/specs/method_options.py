"""What a spec can say of a method: fields of its parts that hold plain values."""

import dataclasses
import math
import typing
from collections.abc import Iterator
from enum import Enum
from typing import Any

from pydantic import ValidationError
from pydantic.errors import PydanticSchemaGenerationError

from recollect.choices import Value
from recollect.experiments.specs.method_tables import checked_option
from recollect.methods import Method

Field = dataclasses.Field[Any]


def option_types(row: Method) -> dict[str, Any]:
    """Return every option and its type."""
    return {option.name: typing.get_type_hints(kind)[option.name] for kind, option in _options(row)}


def option_defaults(row: Method) -> dict[str, Any]:
    """Return the options that have a default, and what it is."""
    required, types = required_options(row), option_types(row)
    return {
        o.name: _as_given(types[o.name], row.settings.get(o.name, o.default))
        for _, o in _options(row)
        if o.name not in required
    }


def later_options(row: Method) -> frozenset[str]:
    """Return the options that are not written out at their default; see `choices.Option`."""
    return frozenset(o.name for _, o in _options(row) if o.metadata.get("later"))


def _as_given(kind: Any, default: object) -> Any:
    """Return a default as if a spec had said it, so that saying it changes nothing."""
    try:
        return checked_option(kind, default)
    except (ValidationError, PydanticSchemaGenerationError):  # nothing that a spec could say
        return default


def required_options(row: Method) -> dict[str, type]:
    """Return the options without a default, and whose they are. No part of ours has any."""
    return {o.name: kind for kind, o in _options(row) if o.default is dataclasses.MISSING}


def settable(kind: type | None) -> dict[str, Field]:
    """Return the fields that can be given when a part is built; `replay` may be one of them."""
    if kind is None or not dataclasses.is_dataclass(kind):
        return {}
    fields = (option for option in dataclasses.fields(kind) if option.init)
    return {o.name: o for o in fields if o.default_factory is dataclasses.MISSING}


def _options(row: Method) -> Iterator[tuple[type, Field]]:
    for kind in row.kinds.values():
        for option in settable(kind).values():
            if kind is not None and _is_plain(option.default) and option.name != "replay":
                yield kind, option


def _is_plain(default: object) -> bool:
    if isinstance(default, float):
        return math.isfinite(default)
    known = default is dataclasses.MISSING or isinstance(default, Value)
    return known and not isinstance(default, Enum)
