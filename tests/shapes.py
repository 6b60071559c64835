"""Hold what functions take and return to the shapes in their annotations, wherever there are any.

`recollect.gradients` is held to all of its types, in every test. Elsewhere only to shapes: tests
pass wrong types on purpose, to see our own messages. And only where `RECOLLECT_TEST_SHAPES=all`,
which `make test` says of the parts' own tests: tests that trace every line would take ten times as
long.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, get_args

from beartype import BeartypeConf, beartype
from jaxtyping import AbstractArray, install_import_hook

# What tests give wrong shapes to on purpose, because it checks them itself, in words.
NOT_CHECKED: Final = {
    "recollect.storage.storage": "what a user's policy answers; learner/checks.py looks at it",
    "recollect.objectives.loss": "calls a user's loss; network/checks.py looks at its answer",
    "recollect.metrics.margins": "called by users with what they have; refuses it in words",
}
SOURCE: Final = Path(__file__).parents[1] / "src"
IS_EVERYWHERE: Final = os.environ.get("RECOLLECT_TEST_SHAPES") == "all"
_TOWER: Final = BeartypeConf(is_pep484_tower=True)


def install() -> None:
    """Check what is imported from here on."""
    install_import_hook("recollect.gradients", "beartype.beartype")
    if IS_EVERYWHERE:
        install_import_hook(list(modules_with_shapes()), "tests.shapes.checked")


def modules_with_shapes() -> Iterator[str]:
    """List the modules that state shapes and are checked; wrapping others would only cost time."""
    for path in sorted((SOURCE / "recollect").rglob("*.py")):
        if "from jaxtyping import" in path.read_text():
            parts = path.relative_to(SOURCE).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            if name not in NOT_CHECKED:
                yield name


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Check the arguments and results of a function that state a shape."""
    shapes = {name: a for name, a in function.__annotations__.items() if _states_a_shape(a)}
    if not shapes:
        return function
    function.__annotations__ = shapes
    checking: Callable[..., Any] = beartype(conf=_TOWER)(function)
    return checking


def _states_a_shape(annotation: Any) -> bool:
    is_one = isinstance(annotation, type) and issubclass(annotation, AbstractArray)
    return is_one or any(map(_states_a_shape, get_args(annotation)))
