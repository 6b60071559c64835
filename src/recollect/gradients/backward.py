"""One backward pass to the outputs of layers, each cotangent handed over as it arrives."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.autograd.graph import Node
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.hooks import RemovableHandle

from recollect.gradients.calls import Call

Arrived = Callable[[Call, Sequence[Tensor | None]], None]

# Layers whose tensors are large: their cotangents are used while still in the cache and let go.
_LARGE = (nn.Conv1d, nn.Conv2d, nn.Conv3d, _BatchNorm, nn.GroupNorm)


def run_backward(
    objective: Tensor,
    calls: list[Call],
    arrived: Arrived,
    *,
    keep_graph: bool = False,
    at_the_end: bool = False,
) -> None:
    """Run the backward pass and call `arrived` for every call that has a cotangent.

    Empties `calls`, so that what a layer was given lives no longer than it is needed.

    Args:
        objective: What is differentiated.
        calls: Calls of layers; cotangents are those of their outputs.
        arrived: Told a call and its cotangents.
        keep_graph: Another pass will follow.
        at_the_end: Hand all cotangents over behind the pass instead of on its way.
    """
    on_the_way = set() if at_the_end else _passed_through(calls)
    waiting: list[Call] = []
    handles: list[RemovableHandle] = []
    for index, call in enumerate(calls):
        if index in on_the_way:
            handles.append(_hand_over_at_node(call, arrived))
        else:
            waiting.append(call)
    calls.clear()

    edges = [edge for call in waiting for edge in call.edges]
    try:
        gradients = torch.autograd.grad(
            objective, edges, retain_graph=keep_graph, allow_unused=True
        )
    finally:
        for handle in handles:  # hook and node hold each other
            handle.remove()
    found = iter(gradients)
    with torch.no_grad():
        for call in waiting:
            cotangents = [next(found) for _ in call.edges]
            if any(cotangent is not None for cotangent in cotangents):
                arrived(call, cotangents)


def _passed_through(calls: Sequence[Call]) -> set[int]:
    """Which calls of large layers the pass goes through on its way to others."""
    ends = {edge.node for call in calls for edge in call.edges}
    return {
        index
        for index, call in enumerate(calls)
        if isinstance(call.module, _LARGE) and len(call.edges) == 1
        if _leads_to_another(call.edges[0].node, ends)
    }


def _leads_to_another(node: Node, ends: set[Node]) -> bool:
    seen, behind = {node}, [following for following, _ in node.next_functions]
    while behind:
        following = behind.pop()
        if following is None or following in seen:
            continue
        if following in ends:
            return True
        seen.add(following)
        behind.extend(further for further, _ in following.next_functions)
    return False


def _hand_over_at_node(call: Call, arrived: Arrived) -> RemovableHandle:
    waiting = [call]
    edge = call.edges[0]

    def hook(cotangents: Sequence[Tensor | None]) -> None:
        cotangent = cotangents[edge.output_nr]
        if cotangent is not None:
            call = waiting.pop()
            call.statistics = _kept_statistics(call)
            arrived(call, [cotangent])

    return edge.node.register_prehook(hook)


def _kept_statistics(call: Call) -> tuple[Tensor, Tensor] | None:
    """Mean and inverse deviation that BatchNorm's forward pass kept for its backward pass."""
    node = call.edges[0].node
    if not (isinstance(call.module, _BatchNorm) and call.module.training):
        return None
    if node.name() != "NativeBatchNormBackward0":
        return None
    return node._saved_result1, node._saved_result2  # type: ignore[attr-defined]
