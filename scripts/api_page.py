"""Write docs/api.md: every public name, how it is called, and its first sentence.

    python -m scripts.api_page

All of it comes from the code: `__all__`, signatures and docstrings. A test compares the two.
"""

import importlib
import inspect
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal, get_args, get_origin

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "api.md"
MODULES: Final = (
    "recollect",
    "recollect.learner",
    "recollect.memory",
    "recollect.augment",
    "recollect.storage",
    "recollect.retrieval",
    "recollect.rules",
    "recollect.ranges",
    "recollect.gradients",
    "recollect.streams",
    "recollect.benchmarks",
    "recollect.datasets",
    "recollect.models",
    "recollect.metrics",
    "recollect.trackers",
    "recollect.integrations.sklearn",
    "recollect.integrations.river",
    "recollect.testing",
    "recollect.errors",
)
_HEAD: Final = """# Every public name

`Learner` and `method` build a learner, `Memory` is what it remembers with, and `benchmark` gives a
stream with test sets. Everything else is a part of these four or measures them. Each name has one
line and leads to its source, whose docstring has the equation, the arguments and an example, as
`help(recollect.Learner)` has. `python -m scripts.api_page` writes this page from the code.
"""


def page() -> str:
    """Return the whole page."""
    told: list[Any] = []
    return "\n".join([_HEAD, *(_section(importlib.import_module(name), told) for name in MODULES)])


def _section(module: ModuleType, told: list[Any]) -> str:
    """Return one module's table, without what an earlier one has told."""
    lines = [f"## `{module.__name__}`", "", _first_sentence(module), "", "| | |", "|---|---|"]
    for name, found in _public(module):
        if any(found is earlier for earlier in told):
            continue
        told.append(found)
        lines.append(f"| {_linked(name, found)} | {_about(found)} |")
        if inspect.isclass(found):
            lines += [
                f"| &emsp;`.{method}{_signature(call)}` | {_first_sentence(call)} |"
                for method, call in _members(found)
            ]
    return "\n".join([*lines, ""])


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    """Give what a class itself defines and documents, for anybody to use."""
    for name, found in vars(kind).items():
        call = found.__func__ if isinstance(found, classmethod | staticmethod) else found
        if name.startswith("_") or not (inspect.isfunction(call) or isinstance(call, property)):
            continue
        if call.__doc__:  # its own: what it overrides has told it
            yield name, call


def _public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    names = getattr(module, "__all__", None)
    if names is None:  # a plain module: what it defines itself
        names = [
            name
            for name, found in vars(module).items()
            if inspect.isclass(found) and found.__module__ == module.__name__
        ]
    for name in names:
        yield name, getattr(module, name)


def _linked(name: str, found: Any) -> str:
    shown = f"`{name}{_signature(found)}`"
    if not (inspect.isclass(found) or inspect.isfunction(found)):
        return shown
    # Not the file of its code: tests wrap functions to check shapes.
    source = Path(sys.modules[found.__module__].__file__ or "").resolve().relative_to(ROOT)
    return f"[{shown}](../{source.as_posix()})"


def _signature(found: Any) -> str:
    if inspect.isclass(found) and (inspect.isabstract(found) or issubclass(found, Exception)):
        return ""
    if getattr(found, "_is_protocol", False) or not callable(found) or get_origin(found):
        return ""
    parameters = inspect.signature(found).parameters.values()
    shown, is_keyword_only = [], False
    for parameter in parameters:
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not is_keyword_only:
            shown.append("*")
        is_keyword_only = parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        plain = parameter.replace(annotation=parameter.empty)
        if parameter.default is not parameter.empty and not _is_short(parameter.default):
            plain = plain.replace(default=...)
        shown.append(str(plain).replace("=Ellipsis", "=..."))
    return f"({', '.join(shown)})"


def _is_short(default: object) -> bool:
    return default is None or isinstance(default, bool | int | float | str)


def _about(found: Any) -> str:
    if get_origin(found) is Literal:
        return "one of " + ", ".join(f"`{value!r}`" for value in get_args(found))
    if inspect.isclass(found) or inspect.isfunction(found):
        return _first_sentence(found)
    if isinstance(found, Mapping):
        return "by name: " + ", ".join(f"`{_joined(name)}`" for name in found)
    return f"`{found}`".replace("typing.", "").replace("collections.abc.", "")


def _joined(name: str | tuple[str, ...]) -> str:
    return name if isinstance(name, str) else ", ".join(name)


def _first_sentence(found: Any) -> str:
    first, *_ = (inspect.getdoc(found) or "").split("\n\n")
    return " ".join(first.split()).replace("|", "\\|")


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
