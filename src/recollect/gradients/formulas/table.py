"""Which formula belongs to which kind of node, those of users included."""

from collections.abc import Callable, Mapping, Sequence

from recollect.gradients.formulas.visit import Visit
from recollect.gradients.share import Share

#: Takes a node apart; None if it cannot after all, and the node is to be called again instead.
Formula = Callable[[Visit], "Sequence[Share] | None"]
Formulas = Mapping[str, Formula]

_FORMULAS: dict[str, Formula] = {}


def formula(*names: str) -> Callable[[Formula], Formula]:
    """Add a formula for nodes of autograd with these names.

    Args:
        names: What `tensor.grad_fn.name()` says, as in `"AddmmBackward0"`.

    Example:
        >>> @formula("ExpBackward0")
        ... def exponential(visit):
        ...     products = visit.gradient * visit.saved("result")
        ...     rows = visit.summed(products, visit.shape(0))
        ...     return None if rows is None else [visit.explicit({0: rows})]
    """

    def add(function: Formula) -> Formula:
        for name in names:
            _FORMULAS[name] = function
        return function

    return add


def formula_for(name: str) -> Formula | None:
    """Return the formula for a kind of node."""
    return _FORMULAS.get(name)
