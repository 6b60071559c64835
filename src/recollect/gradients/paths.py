"""Names of modules and parameters within a model."""

from collections.abc import Mapping

from torch import nn

from recollect.errors import UnsupportedModuleError


def owned_parameters(
    modules: Mapping[str, nn.Module], parameters: Mapping[str, nn.Parameter]
) -> dict[str, dict[str, str]]:
    """Map each module's path to its own parameters: local name -> name in the model."""
    names = {id(parameter): name for name, parameter in parameters.items()}
    owned: dict[str, dict[str, str]] = {}
    for path, module in modules.items():
        for local, parameter in module.named_parameters(recurse=False):
            if id(parameter) in names:
                owned.setdefault(path, {})[local] = names[id(parameter)]
    return owned


def is_inside(path: str, ancestor: str) -> bool:
    """Whether the module at `path` is the one at `ancestor` or below it."""
    return ancestor == "" or path == ancestor or path.startswith(ancestor + ".")


def name_inside(name: str, path: str) -> str:
    """What the module at `path` calls the parameter that the model calls `name`."""
    return name if path == "" else name.removeprefix(path + ".")


def ancestor_called(path: str, called: set[str], name: str) -> str:
    """Go up from `path` to the nearest module that was called."""
    while path:
        path = path.rpartition(".")[0]
        if path in called:
            return path
    raise UnsupportedModuleError(
        f"the gradient of parameter `{name}` could not be split by example: the shares found do "
        "not add up to autograd's gradient, even over the whole model. Use `GradientSum`, which "
        "needs no per-example gradients, or freeze the parameter."
    )
