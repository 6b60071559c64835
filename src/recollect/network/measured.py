"""Which parameters enter inner products of gradients."""

from collections.abc import Mapping

from torch import nn

from recollect.choices import Measured
from recollect.models import GrowingHead
from recollect.suggestions import nearest


def check_measured(measured: object) -> None:
    """Refuse what names no parameters."""
    if measured in ("all", "head"):
        return
    if isinstance(measured, str) or not isinstance(measured, list | tuple):
        raise ValueError(
            f"`measured` is {measured!r}; choose 'all', 'head' or a list of names of layers or "
            "parameters."
        )
    if not measured or not all(isinstance(name, str) and name for name in measured):
        raise ValueError(f"`measured` is {measured!r}; name at least one layer or parameter.")


def measured_names(
    measured: Measured, model: nn.Module, trained: Mapping[str, nn.Parameter]
) -> frozenset[str] | None:
    """Return the names of the trained parameters that are measured; None for all of them.

    Args:
        measured: `"all"`; `"head"`, the last layer that is trained, as the model lists its layers,
            or its `GrowingHead`; or names of parameters and of layers, which stand for all of
            their parameters.
        model: Whose they are.
        trained: Its trained parameters, by name.
    """
    if measured == "all" or not trained:
        return None
    if measured == "head":
        heads = [path for path, module in model.named_modules() if isinstance(module, GrowingHead)]
        head = heads[0] if len(heads) == 1 else [*trained][-1].rpartition(".")[0]
        wanted = [head]
    else:
        wanted = list(measured)
    found: set[str] = set()
    for name in wanted:
        inside = {key for key in trained if key == name or key.startswith(f"{name}.") or not name}
        if not inside:
            known = dict.fromkeys(part for key in trained for part in (key.rpartition(".")[0], key))
            raise ValueError(
                f"`measured` names {name!r}, which no trained parameter is called or lies in; "
                f"{nearest(name, filter(None, known))}"
            )
        found |= inside
    return None if len(found) == len(trained) else frozenset(found)
