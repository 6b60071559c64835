"""What a command changes in a spec: single settings by `--set`, and the protocol."""

import tomllib
from collections.abc import Iterable
from typing import Any, Final

from recollect.suggestions import shown

Problem = tuple[str, str]

GIVEN: Final = "given with --set"
MAX_DEPTH: Final = 10  # tables in tables, or lists in lists
TOO_DEEP: Final = "nests tables or lists too deeply; a spec needs three levels."

# What a protocol decides: a spec written for one protocol does not bind another in these.
_OF_THE_PROTOCOL: Final = (
    ("stream", "batch_size"),
    ("stream", "examples_per_segment"),
    ("stream", "validation_per_segment"),
    ("model", "hidden"),
    ("optimizer", "lr"),
    ("learner", "replay"),
    ("learner", "iterations"),
)
_OF_THE_PROTOCOL_IN_METHODS: Final = ("lr", "replay", "iterations")

# What a command says in another place, and writes there again into its records: given twice, the
# recorded command would not lead to its record.
_NOT_WITH_SET: Final = {
    "benchmark": "name the benchmark as the argument, or in a spec of your own.",
    "protocol": "choose the protocol with --protocol, which brings its settings.",
}


def apply_overrides(raw: dict[str, Any], overrides: Iterable[str]) -> list[Problem]:
    """Write `path=value` pairs into nested tables; return what could not be written."""
    problems = []
    for override in overrides:
        path, equals, text = override.partition("=")
        keys = path.strip().split(".")
        if not equals or not all(keys) or len(keys) > MAX_DEPTH:
            problems.append(("--set", f"is {shown(override)}; write it as path.to.key=value."))
            continue
        if path.strip() in _NOT_WITH_SET:
            problems.append(("--set", f"is {shown(override)}; {_NOT_WITH_SET[path.strip()]}"))
            continue
        table = raw
        for key in keys[:-1]:
            inner = table.setdefault(key, {})
            if not isinstance(inner, dict):
                problems.append(
                    ("--set", f"is {shown(override)}, but `{key[:80]}` is not a table.")
                )
                break
            table = inner
        else:
            value = _toml_value(text.strip())
            if is_deeper(value, MAX_DEPTH):
                problems.append(("--set", f"is {shown(override)}; its value {TOO_DEEP}"))
                continue
            table[keys[-1]] = value
            # How the old value was found says nothing about the new one.
            if "found" in table and keys[-1] != "found":
                table["found"] = GIVEN
    return problems


def _toml_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # as of a file; the rules will say what is wrong with it
        return text


def is_deeper(value: object, depth: int) -> bool:
    """Say whether tables or lists are nested more deeply, without going all the way."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return bool(inner) and (depth == 0 or any(is_deeper(entry, depth - 1) for entry in inner))


def change_protocol(raw: dict[str, Any], protocol: str) -> None:
    """Drop what the protocol decides, so that the other one does."""
    raw["protocol"] = protocol
    raw.pop("memory", None)
    for table, key in _OF_THE_PROTOCOL:
        if isinstance(raw.get(table), dict):
            raw[table].pop(key, None)
    if isinstance(raw.get("optimizer"), dict) and "found" in raw["optimizer"]:
        raw["optimizer"]["found"] = f"default of protocol {protocol}"


def free_methods(tables: object, protocol: str) -> None:
    """Drop what methods' tables say of the protocol's settings, and that it was found."""
    methods = tables.values() if isinstance(tables, dict) else ()
    for table in methods:
        dropped = [key for key in _OF_THE_PROTOCOL_IN_METHODS if key in table]
        for key in dropped:
            del table[key]
        if dropped and "found" in table:
            has_options = table.keys() - {"base", "found"}  # found together with what is dropped
            told = f"{table['found']}; but {' and '.join(dropped)} of protocol {protocol}"
            table["found"] = told if has_options else f"default of protocol {protocol}"
