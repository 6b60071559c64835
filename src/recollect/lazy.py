"""Packages whose names are imported when they are asked for: torch takes two seconds to import."""

import importlib
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any


def import_when_asked(
    package: str, names: Mapping[str, str], *, submodules: Sequence[str] = ()
) -> None:
    """Let a package give names of other modules, each imported the first time it is asked for.

    A plain `__getattr__` would not do: when a submodule is imported that is called like one of the
    names (`benchmark` in `recollect.benchmarks`), Python puts it in the name's place.

    Args:
        package: The package, imported just now.
        names: Each public name, and the module it comes from.
        submodules: Submodules that can be reached as attributes without importing them.
    """
    module = sys.modules[package]
    lazy = {**names, **dict.fromkeys(submodules, "")}

    class Lazy(ModuleType):
        def __getattr__(self, name: str) -> Any:
            if name not in lazy:
                raise AttributeError(f"module {package!r} has no attribute {name!r}")
            if not lazy[name]:
                return importlib.import_module(f"{package}.{name}")
            found = getattr(importlib.import_module(lazy[name]), name)
            vars(module)[name] = found
            return found

        def __setattr__(self, name: str, value: object) -> None:
            if name in names and isinstance(value, ModuleType):
                return  # a submodule that was imported; see above
            super().__setattr__(name, value)

        def __dir__(self) -> list[str]:
            return sorted({*super().__dir__(), *lazy})

    module.__class__ = Lazy
