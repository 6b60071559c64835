"""What a formula is given: one node where parameters are used, and the gradient that arrived."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.graph import Node

from recollect.gradients.groups import Groups
from recollect.gradients.rows.layout import ElementLabels, Layout, Regular, RowLabels, reduced
from recollect.gradients.scratch import Scratch
from recollect.gradients.share import ExplicitShare


@dataclass(slots=True)
class Visit:
    """A node of autograd's graph while the backward pass stands at it.

    A node computed outputs from inputs. Some of its inputs lead to parameters; a formula says what
    each group of examples adds to the gradient there.

    Attributes:
        node: The node, with what it saved as `node._saved_...`.
        gradients: The gradient at each of its outputs; None if there is none.
        layouts: Where examples lie in each of them.
        slots: What each input that leads to a parameter is called.
        transposed: Inputs that are their parameter transposed.
        dtypes: Precision of the parameter behind each slot, as far as it is known.
        groups: Which examples belong together.
        limit_bytes: Largest temporary to hold.
        scratch: Memory for temporaries.
    """

    node: Node
    gradients: Sequence[Tensor | None]
    layouts: Mapping[int, Layout]
    slots: Mapping[int, str]
    transposed: frozenset[int]
    dtypes: Mapping[str, torch.dtype]
    groups: Groups
    limit_bytes: int
    scratch: Scratch

    @property
    def gradient(self) -> Tensor:
        """The gradient at the only output that has one."""
        (found,) = [gradient for gradient in self.gradients if gradient is not None]
        return found

    @property
    def layout(self) -> Layout:
        """Where examples lie in it."""
        (number,) = [i for i, gradient in enumerate(self.gradients) if gradient is not None]
        return self.layouts[number]

    @property
    def rows_layout(self) -> Regular | RowLabels | None:
        """The layout, if one dimension tells whose an entry is."""
        return None if isinstance(self.layout, ElementLabels) else self.layout

    def saved(self, name: str) -> Any:
        """Return what the node saved under a name; tensors cut off the graph."""
        value = getattr(self.node, f"_saved_{name}")
        return value.detach() if isinstance(value, Tensor) else value

    def shape(self, position: int) -> torch.Size:
        """Return the shape of the value at an input."""
        behind, output = self.node.next_functions[position]
        assert behind is not None
        return torch.Size(behind._input_metadata[output].shape)

    def dtype(self, position: int) -> torch.dtype:
        """Return the precision of the parameter behind an input, or one that is enough."""
        enough = torch.promote_types(self.gradient.dtype, torch.float32)
        return self.dtypes.get(self.slots[position], enough)

    def summed(self, tensor: Tensor, shape: torch.Size) -> Float[Tensor, "groups ..."] | None:
        """Add up each group's part of `tensor`, in the shape of a value that was broadcast.

        `tensor` lies as the gradient does. None if the value has entries of its own for different
        examples.
        """
        layout = self.rows_layout
        if layout is None:
            return None
        return reduced(layout, tensor, shape, self.groups.sum)

    def explicit(self, rows: Mapping[int, Float[Tensor, "groups ..."]]) -> ExplicitShare:
        """Make a share of gradients that are written out, by input."""
        named: dict[str, Tensor] = {}
        for position, found in rows.items():
            slot = self.slots[position]
            found = found.to(self.dtypes.get(slot, found.dtype))
            if position in self.transposed:
                found = found.transpose(-1, -2)
            named[slot] = named[slot] + found if slot in named else found
        return ExplicitShare(named, self.groups)
