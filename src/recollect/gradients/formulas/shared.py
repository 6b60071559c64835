"""A part of the graph that examples share: their gradients are pushed through it together."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from recollect.gradients.capture import Graph, Place
from recollect.gradients.groups import Groups
from recollect.gradients.share import ExplicitShare, Share


def pushed(
    graph: Graph,
    places: Mapping[str, Place],
    shares: list[Share],
    parameters: Mapping[str, nn.Parameter],
    groups: Groups,
) -> ExplicitShare | None:
    """Return what gradients at places in front of a shared part are at its parameters.

    Args:
        graph: It is kept.
        places: Where the part begins, by slot.
        shares: Of these slots.
        parameters: By name.
        groups: Which examples belong together.
    """
    rows: dict[str, Tensor] = {}
    for share in shares:
        for slot, written in share.rows().items():
            rows[slot] = rows[slot] + written if slot in rows else written
    slots = [slot for slot in places if slot in rows]
    if not slots:
        return None
    behind = _leaves_behind(graph, [places[slot] for slot in slots])
    edges = [graph.edge(places[slot]) for slot in slots]
    given = [_like(rows[slot], graph, places[slot]) for slot in slots]
    inputs = [parameters[name] for name in behind]
    found: Sequence[Tensor | None]
    try:
        found = torch.autograd.grad(
            edges, inputs, given, retain_graph=True, allow_unused=True, is_grads_batched=True
        )
    except RuntimeError:  # no batching rule for a node in there
        each = [
            torch.autograd.grad(
                edges, inputs, [g[i] for g in given], retain_graph=True, allow_unused=True
            )
            for i in range(len(groups))
        ]
        found = tuple(
            None if column[0] is None else torch.stack(column) for column in zip(*each, strict=True)
        )
    return ExplicitShare(
        {name: g.detach() for name, g in zip(behind, found, strict=True) if g is not None}, groups
    )


def _like(rows: Tensor, graph: Graph, place: Place) -> Tensor:
    dtype = graph.nodes[place[0]]._input_metadata[place[1]].dtype
    return rows.to(dtype)


def _leaves_behind(graph: Graph, places: list[Place]) -> list[str]:
    seen, waiting = set(), [number for number, _ in places]
    while waiting:
        number = waiting.pop()
        if number >= 0 and number not in seen:
            seen.add(number)
            waiting += [behind for behind, _ in graph.edges[number]]
    return list(dict.fromkeys(graph.leaves[n] for n in sorted(seen) if n in graph.leaves))
