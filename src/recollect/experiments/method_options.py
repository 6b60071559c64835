"""What a spec can say of a method: fields of its three parts that hold plain values."""

import dataclasses
import typing
from collections.abc import Iterator
from typing import Any

from recollect.methods import Method

Option = str | int | float | bool | None
Field = dataclasses.Field[Any]


def option_types(row: Method) -> dict[str, Any]:
    """Return every option and its type."""
    return {option.name: typing.get_type_hints(kind)[option.name] for kind, option in _options(row)}


def option_defaults(row: Method) -> dict[str, Any]:
    """Return the options that have a default, and what it is."""
    required = required_options(row)
    return {o.name: o.default for _, o in _options(row) if o.name not in required}


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
    for kind in (row.storage, row.retrieval, row.rule):
        for option in settable(kind).values():
            is_plain = option.default is dataclasses.MISSING or isinstance(option.default, Option)
            if kind is not None and is_plain and option.name != "replay":
                yield kind, option
