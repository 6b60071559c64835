"""Which modules of the library run while traces are taken."""

import ast
import inspect
import sys
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, Final

import torch
from tests.golden.scenarios import SCENARIOS
from tests.golden.traces import trace

import recollect

PACKAGE: Final = Path(recollect.__file__).parent
_ENOUGH: Final = 7  # steps: the memory is full, and a learner resumed or widened, before the last


@cache
def modules() -> frozenset[str]:
    """List the modules of the library that hold a function or a method."""
    return frozenset(_name(path) for path in PACKAGE.rglob("*.py") if _holds_functions(path))


def entered_modules() -> frozenset[str]:
    """List those of which some function runs in the first steps of some scenario."""
    files: set[str] = set()

    def called(frame: FrameType, event: str, argument: Any) -> None:
        # The bodies of modules and classes run on import, which is not what is meant.
        if frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            files.add(frame.f_code.co_filename)

    before = sys.gettrace()
    sys.settrace(called)
    try:
        for scenario in SCENARIOS.values():
            trace(scenario, torch.float32, steps=min(_ENOUGH, scenario.steps))
    finally:
        sys.settrace(before)
    paths = [Path(file) for file in files]
    return frozenset(_name(path) for path in paths if path.is_relative_to(PACKAGE))


def _holds_functions(path: Path) -> bool:
    return any(isinstance(node, ast.FunctionDef) for node in ast.walk(ast.parse(path.read_text())))


def _name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
