"""Build a learner's parts again from what a checkpoint says of them."""

import ast
from typing import Any, Final

from recollect import objectives, predictors, retrieval, rules, storage
from recollect.errors import CheckpointError

_OURS: Final = {
    what: {
        f"{kind.__module__}.{kind.__qualname__}": kind
        for kind in (getattr(module, name) for name in module.__all__)
        if isinstance(kind, type)
    }
    for what, module in (
        ("storage", storage),
        ("retrieval", retrieval),
        ("rule", rules),
        ("objective", objectives),
        ("predictor", predictors),
    )
}


def rebuilt(what: str, described: object) -> Any:
    """Build the part that `describe` described; None if there was none.

    Args:
        what: `"storage"`, `"retrieval"`, `"rule"`, `"objective"` or `"predictor"`.
        described: As the checkpoint has it.

    Raises:
        CheckpointError: It is not one of the library's, or has options that are no plain values.
    """
    if described == "none":
        return None
    try:
        name, options = _read(str(described))
        return _OURS[what][name](**options)
    except (KeyError, SyntaxError, ValueError, TypeError) as error:
        raise CheckpointError(
            f"the checkpoint's {what} is {described}, which cannot be built again from its name; "
            f"pass it to `from_checkpoint` as `{what}=...`."
        ) from error


def _read(described: str) -> tuple[str, dict[str, object]]:
    """Read `module.Kind(option=value, ...)` without running anything."""
    tree = ast.parse(described, mode="eval").body
    if not isinstance(tree, ast.Call):
        return described, {}
    if tree.args or any(keyword.arg is None for keyword in tree.keywords):
        raise ValueError(described)
    options = {str(word.arg): ast.literal_eval(word.value) for word in tree.keywords}
    return ast.unparse(tree.func), options
