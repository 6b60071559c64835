"""Where each parameter's gradient can be taken apart by example, found once for a kind of pass.

A node on the examples' side has gradients of single examples in its rows; one on the parameters'
side has those of all examples at once. Where the sides meet, a formula takes them apart.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import BackwardCFunction

from recollect.gradients.capture import NOWHERE, Graph, Place, batch_norm_passes_gradients_on
from recollect.gradients.rows.labels import Found, labelled
from recollect.gradients.rows.layout import Layout, Regular

# Nodes that move a parameter's entries about and nothing else. Directly over a parameter they are
# on its side, even if all but one example have a gradient of zero there today.
_MOVES: Final = frozenset(
    f"{name}Backward{version}"
    for name in (
        "T", "Transpose", "Permute", "View", "UnsafeView", "ReshapeAlias", "ToCopy", "Clone",
        "Unsqueeze", "Squeeze", "Alias", "Slice", "Select", "Split", "SplitWithSizes",
        "UnsafeSplit", "Unbind", "Contiguous", "AsStrided",
    )
    for version in range(3)
)  # fmt: skip

# Integer or boolean tensors in these say nothing of which row is whose.
_KEEP_ROWS: Final = (
    "Embedding", "NllLoss", "MaxPool", "MaskedFill", "Where", "NativeDropout", "ScaledDot",
    "Threshold", "Clamp", "Relu", "Rnn",
)  # fmt: skip


@dataclass(slots=True)
class Border:
    """A node where examples meet parameters.

    Attributes:
        node: Its number.
        layouts: For each of its outputs that has a gradient, where examples lie in it.
        slots: For each input that leads to parameters, the name of the parameter, or of the
            place in the shared part (see `Shared`).
        transposed: Inputs that are their parameter transposed.
    """

    node: int
    layouts: dict[int, Layout]
    slots: dict[int, str]
    transposed: frozenset[int]


@dataclass(slots=True)
class Plan:
    """What to do in each pass of one kind.

    Attributes:
        borders: By the number of the node.
        passed_through: Borders in front of others.
        shared: Places where a part begins that examples share, by slot.
        silent: Places that had a gradient of zero: should one come, the plan no longer holds.
        contents: Integer tensors that decide which row is whose, as they were.
        seen: For each border, the examples whose gradient was not zero.
        keeps: Whether the plan holds for later passes of the same kind.
        finite: Whether all gradients were.
        each_once: Whether each parameter is used in one border and directly.
        by_itself: Parameters that need a backward pass per example.
        replays: Whether nodes must be called again after the pass, so that it keeps the graph;
            known after the first.
    """

    borders: dict[int, Border] = field(default_factory=dict)
    passed_through: list[int] = field(default_factory=list)
    shared: dict[str, Place] = field(default_factory=dict)
    silent: list[Place] = field(default_factory=list)
    contents: list[tuple[int, list[Tensor]]] = field(default_factory=list)
    seen: dict[int, frozenset[int]] = field(default_factory=dict)
    keeps: bool = False
    finite: bool = True
    each_once: bool = False
    by_itself: frozenset[str] = frozenset()
    replays: bool = True

    def holds_for(self, graph: Graph) -> bool:
        """Whether integer tensors still say which row is whose."""
        return all(_same(_integers(graph, number), contents) for number, contents in self.contents)


def make_plan(
    graph: Graph, losses: Float[Tensor, " examples"], *, examples_mix: bool, before: Plan | None
) -> Plan:
    """Find the borders.

    Args:
        graph: Of the losses; it is kept.
        losses: One per example, more than one.
        examples_mix: Through BatchNorm, whose rows count as their examples' own (note P8).
        before: A plan for the same kind of pass that was not to be kept.
    """
    above = _nodes_above(graph)
    useful = _upwards(graph.leaves, above) | set(graph.leaves)
    outputs = _used_outputs(graph)
    moving = _moving(graph, above)
    found: dict[Place, Found] = {}
    mixed: set[int] = set()
    todo = _parents(moving, above) - moving
    while todo:
        places = [(number, output) for number in sorted(todo) for output in outputs[number]]
        if examples_mix:
            with batch_norm_passes_gradients_on(graph):
                found |= labelled(losses, graph, places)
        else:
            found |= labelled(losses, graph, places)
        mixed = {number for (number, _), what in found.items() if what.state == "mixed"}
        shared = moving | (_downwards(mixed, graph) & useful)
        todo = (_parents(shared, above) - shared) | _upwards(mixed, above)
        todo -= {number for number, _ in found}
    shared = moving | (_downwards(mixed, graph) & useful)
    plan = Plan()
    for number in sorted(_parents(shared, above) - shared):
        _add_border(plan, graph, number, shared, {o: found[number, o] for o in outputs[number]})
    _finish(plan, graph, above, len(losses), before)
    return plan


def _add_border(
    plan: Plan, graph: Graph, number: int, shared: set[int], at: Mapping[int, Found]
) -> None:
    plan.finite &= all(what.finite for what in at.values())
    layouts = {o: what.state for o, what in at.items() if not isinstance(what.state, str)}
    plan.silent += [(number, o) for o, what in at.items() if what.state == "silent"]
    if not layouts:
        return
    border = Border(number, layouts, {}, frozenset())
    transposed = set()
    for position, place in enumerate(graph.edges[number]):
        if place[0] not in shared:
            continue
        name, is_transposed = _directly(graph, place)
        if name is None:
            name = f"#{place[0]}.{place[1]}"
            plan.shared[name] = place
        border.slots[position] = name
        if is_transposed:
            transposed.add(position)
    border.transposed = frozenset(transposed)
    plan.borders[number] = border
    plan.seen[number] = frozenset().union(*(what.seen for what in at.values()))


def _finish(
    plan: Plan, graph: Graph, above: list[list[int]], count: int, before: Plan | None
) -> None:
    in_front = _upwards(plan.borders, above)
    plan.passed_through = [number for number in plan.borders if number in in_front]
    used = [slot for border in plan.borders.values() for slot in border.slots.values()]
    plan.each_once = not plan.shared and not plan.silent and len(set(used)) == len(used)
    plan.contents = _contents(graph, in_front, count)
    if before is not None and _same_borders(plan, before):
        plan.seen = {number: seen | before.seen[number] for number, seen in plan.seen.items()}
    regular = all(
        isinstance(layout, Regular)
        for border in plan.borders.values()
        for layout in border.layouts.values()
    )
    plan.keeps = regular and plan.finite and all(len(seen) == count for seen in plan.seen.values())


def _same_borders(plan: Plan, before: Plan) -> bool:
    return {number: border.layouts for number, border in plan.borders.items()} == {
        number: border.layouts for number, border in before.borders.items()
    }


def _directly(graph: Graph, place: Place) -> tuple[str | None, bool]:
    """Follow transposes and casts from a border to a parameter; None if there is more between."""
    number, transposed = place[0], False
    while number not in graph.leaves:
        name = graph.names[number]
        if name == "TBackward0":
            transposed = not transposed
        elif name != "ToCopyBackward0":
            return None, False
        ((number, _),) = graph.edges[number]
    return graph.leaves[number], transposed


def _nodes_above(graph: Graph) -> list[list[int]]:
    above: list[list[int]] = [[] for _ in graph.nodes]
    for number, edges in enumerate(graph.edges):
        for behind, _ in edges:
            if behind != NOWHERE:
                above[behind].append(number)
    return above


def _used_outputs(graph: Graph) -> list[list[int]]:
    used: list[set[int]] = [set() for _ in graph.nodes]
    used[0].add(0)
    for edges in graph.edges:
        for behind, output in edges:
            if behind != NOWHERE:
                used[behind].add(output)
    return [sorted(outputs) for outputs in used]


def _moving(graph: Graph, above: list[list[int]]) -> set[int]:
    """Return parameters, and the nodes that only move the entries of one about."""
    moving = set(graph.leaves)
    waiting = list(moving)
    while waiting:
        for number in above[waiting.pop()]:
            if number not in moving and graph.names[number] in _MOVES:
                moving.add(number)
                waiting.append(number)
    return moving


def _parents(numbers: Iterable[int], above: list[list[int]]) -> set[int]:
    return {parent for number in numbers for parent in above[number]}


def _upwards(numbers: Iterable[int], above: list[list[int]]) -> set[int]:
    """Return all nodes in front of these, towards the losses."""
    found: set[int] = set()
    waiting = list(numbers)
    while waiting:
        for number in above[waiting.pop()]:
            if number not in found:
                found.add(number)
                waiting.append(number)
    return found


def _downwards(numbers: Iterable[int], graph: Graph) -> set[int]:
    """Return these nodes and all behind them."""
    found = set(numbers)
    waiting = list(found)
    while waiting:
        for number, _ in graph.edges[waiting.pop()]:
            if number != NOWHERE and number not in found:
                found.add(number)
                waiting.append(number)
    return found


# --- integers that decide which row is whose ------------------------------------------------------


def _contents(graph: Graph, in_front: set[int], count: int) -> list[tuple[int, list[Tensor]]]:
    found = []
    for number in sorted(in_front):
        if not any(kind in graph.names[number] for kind in _KEEP_ROWS):
            contents = _integers(graph, number)
            if contents and not _keeps_rows(graph, number, count):
                found.append((number, [content.clone() for content in contents]))
    return found


def _integers(graph: Graph, number: int) -> list[Tensor]:
    node = graph.nodes[number]
    if isinstance(node, BackwardCFunction):
        saved: list[object] = list(node.saved_tensors)
    else:
        saved = [getattr(node, name) for name in dir(node) if name.startswith("_saved_")]
    entries = [e for v in saved for e in (v if isinstance(v, tuple | list) else (v,))]
    return [e for e in entries if isinstance(e, Tensor) and not e.is_floating_point()]


def _keeps_rows(graph: Graph, number: int, count: int) -> bool:
    """Whether a node that picks entries leaves them to the example they came from."""
    place = graph.edges[number][0]
    if place[0] == NOWHERE:
        return False
    shape = graph.shape(place)
    if not shape or shape[0] != count:
        return False
    name = graph.names[number]
    if name == "IndexBackward0":
        first = graph.nodes[number]._saved_indices[0]  # type: ignore[attr-defined]
        return first is not None and torch.equal(first.flatten().cpu(), torch.arange(count))
    dim = getattr(graph.nodes[number], "_saved_dim", 0)
    if dim is None or dim > len(shape):
        dim = 0 if dim is None else dim - 2**64
    return bool(dim % len(shape) != 0)


def _same(now: list[Tensor], then: list[Tensor]) -> bool:
    return len(now) == len(then) and all(torch.equal(a, b) for a, b in zip(now, then, strict=True))
