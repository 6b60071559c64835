"""The LSTM as oneDNN computes it: all time steps in one node, which keeps its gates to itself."""

from collections.abc import Sequence
from typing import Final

import torch
from jaxtyping import Float
from torch import Tensor

from recollect.gradients.formulas.linear import LinearShare
from recollect.gradients.formulas.table import formula
from recollect.gradients.formulas.visit import Visit
from recollect.gradients.rows.layout import Regular
from recollect.gradients.share import Share

_LSTM: Final = 2  # what the node calls this kind of network


@formula("MkldnnRnnLayerBackward0")
def lstm(visit: Visit) -> Sequence[Share] | None:
    r"""One layer in one direction.

    All outputs h_t were saved, so the gates of all steps come from one product, and two recurrences
    of elementwise operations are left: cell states forwards, gradients backwards.

        (i, f, g, o)_t = W x_t + U h_{t-1} + b,  c_t = f c_{t-1} + i g,  h_t = o tanh c_t

    The gradients of W and U then are those of linear layers, with one position per step.
    """
    if visit.saved("mode") != _LSTM or visit.saved("batch_sizes"):
        return None
    examples = visit.groups.num_examples
    # Time comes first, whatever the layer was told: examples lie in the second dimension.
    layout = Regular(1, 1, examples, 1)
    states = Regular(0, 1, examples, 1)
    as_ever = all(at == (states if number else layout) for number, at in visit.layouts.items())
    if not set(visit.slots) <= {1, 2, 3, 4} or not as_ever:
        return None
    dtype = visit.dtypes.get(next(iter(visit.slots.values())), torch.float32)
    x, into, before = (visit.saved(name).to(dtype) for name in ("input", "weight0", "weight1"))
    outputs, first, cell = (visit.saved(name).to(dtype) for name in ("result0", "hx_", "cx_"))
    d_out, d_last, d_cell = (
        None if gradient is None else gradient.to(dtype)
        for gradient in (*visit.gradients, None, None)[:3]
    )
    d_out = torch.zeros_like(outputs) if d_out is None else d_out
    reverse = visit.saved("reverse")
    if reverse:
        x, outputs, d_out = x.flip(0), outputs.flip(0), d_out.flip(0)
    shape = outputs.shape[1:]
    given = torch.cat((first.reshape(1, *shape), outputs[:-1]))
    gates = x @ into.T + given @ before.T
    if visit.saved("has_biases"):
        gates += visit.saved("weight2").to(dtype) + visit.saved("weight3").to(dtype)
    d_last = torch.zeros_like(outputs[0]) if d_last is None else d_last.reshape(shape)
    d_cell = torch.zeros_like(outputs[0]) if d_cell is None else d_cell.reshape(shape)
    d_gates = _gate_gradients(gates, cell.reshape(shape), before, d_out, d_last, d_cell)
    if reverse:
        x, given, d_gates = x.flip(0), given.flip(0), d_gates.flip(0)
    arranged = [layout.arranged(factor).flatten(0, -2) for factor in (x, given, d_gates)]
    shares: list[Share] = []
    for a, weight, bias in ((arranged[0], 1, 3), (arranged[1], 2, 4)):
        if weight in visit.slots or bias in visit.slots:
            share = LinearShare(
                a,
                arranged[2],
                weight=visit.slots.get(weight),
                bias=visit.slots.get(bias),
                groups=visit.groups,
                limit_bytes=visit.limit_bytes,
            )
            shares.append(share)
    return shares


def _gate_gradients(
    gates: Float[Tensor, "time examples gates"],
    cell: Float[Tensor, "examples hidden"],
    before: Float[Tensor, "gates hidden"],
    d_out: Float[Tensor, "time examples hidden"],
    d_hidden: Float[Tensor, "examples hidden"],
    d_cell: Float[Tensor, "examples hidden"],
) -> Float[Tensor, "time examples gates"]:
    """Return the gradient at every gate before its function.

    Args:
        gates: Before their functions.
        cell: The first state.
        before: U.
        d_out: Gradient at each output.
        d_hidden: At the last one, from behind the layer.
        d_cell: At the last cell state.
    """
    hidden = cell.shape[-1]
    functions = torch.sigmoid(gates)
    functions[..., 2 * hidden : 3 * hidden] = torch.tanh(gates[..., 2 * hidden : 3 * hidden])
    i, f, g, o = torch.split(functions, hidden, dim=-1)
    cells = torch.empty(len(gates) + 1, *cell.shape, dtype=gates.dtype)
    cells[0] = cell
    each = cells.unbind(0)
    for t, (add, keep) in enumerate(zip((i * g).unbind(0), f.unbind(0), strict=True)):
        torch.addcmul(add, keep, each[t], out=each[t + 1])
    squashed = torch.tanh(cells[1:])
    # How each gate moves the cell state or the output, and the output the cell state.
    of_cell = torch.stack((g * i * (1 - i), cells[:-1] * f * (1 - f), i * (1 - g * g)), dim=2)
    of_output = squashed * o * (1 - o)
    through = o * (1 - squashed * squashed)
    found = torch.empty(*gates.shape[:2], 4, hidden, dtype=gates.dtype)
    steps = list(
        zip(
            *(part.unbind(0) for part in (d_out, through, of_cell, of_output, f, found)),
            strict=True,
        )
    )
    for t in range(len(steps) - 1, -1, -1):
        at_output, passes, on_cell, on_output, keep, into = steps[t]
        d_hidden = d_hidden + at_output
        d_cell = torch.addcmul(d_cell, d_hidden, passes)
        torch.mul(on_cell, d_cell.unsqueeze(1), out=into[:, :3])
        torch.mul(on_output, d_hidden, out=into[:, 3])
        if t:
            d_hidden = into.flatten(1) @ before
            d_cell = d_cell * keep
    return found.flatten(2)
