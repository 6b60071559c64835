"""Autograd's graph between losses and parameters, and gradients that arrive at its nodes."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, Node
from torch.utils.hooks import RemovableHandle

from recollect.errors import UnsupportedModuleError

_LEAF: Final = "torch::autograd::AccumulateGrad"
_REENTRANT: Final = "CheckpointFunctionBackward"
NOWHERE: Final = -1

Place = tuple[int, int]  # a node, by its number, and which of its outputs


@dataclass(slots=True)
class Graph:
    """The nodes behind the losses, numbered from the losses on.

    Attributes:
        nodes: All of them.
        names: Their kinds.
        edges: For each input of each node, the place it came from; NOWHERE if it has no gradient.
        leaves: Names of parameters, by the number of the node that stands for them.
    """

    nodes: list[Node]
    names: list[str]
    edges: list[tuple[Place, ...]]
    leaves: dict[int, str]

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for two passes that did the same on tensors of the same shapes."""
        shapes = [tuple(entry.shape) for node in self.nodes for entry in node._input_metadata]
        modes = [
            node._saved_training  # type: ignore[attr-defined]
            for node, name in zip(self.nodes, self.names, strict=True)
            if name == "NativeBatchNormBackward0"
        ]
        return (
            tuple(self.names),
            tuple(self.edges),
            tuple(shapes),
            tuple(self.leaves.items()),
            tuple(modes),
        )

    def edge(self, place: Place) -> GradientEdge:
        """Return a place as autograd takes it."""
        return GradientEdge(self.nodes[place[0]], place[1])

    def shape(self, place: Place) -> torch.Size:
        """Return the shape of the value at a place."""
        return torch.Size(self.nodes[place[0]]._input_metadata[place[1]].shape)


def graph_behind(losses: Float[Tensor, " examples"], names: Mapping[int, str]) -> Graph:
    """Walk through autograd's graph.

    Args:
        losses: Where it begins.
        names: Parameters that are looked for, by `id`.
    """
    root = losses.grad_fn
    if root is None:  # nothing was trained: autograd's own message
        torch.autograd.grad(losses.sum(), [])
    assert root is not None
    index: dict[Node | None, int] = {root: 0}
    nodes, kinds, edges, leaves = [root], [], [], {}
    for number, node in enumerate(nodes):  # grows on the way
        name = node.name()
        kinds.append(name)
        if name == _LEAF:
            parameter = names.get(id(node.variable))  # type: ignore[attr-defined]
            if parameter is not None:
                leaves[number] = parameter
        came_from = []
        for behind, output in node.next_functions:
            if behind is None:
                came_from.append((NOWHERE, 0))
                continue
            at = index.get(behind)
            if at is None:
                at = index[behind] = len(nodes)
                nodes.append(behind)
            came_from.append((at, output))
        edges.append(tuple(came_from))
    if _REENTRANT in kinds:
        _refuse_reentrant(names, leaves)
    return Graph(nodes, kinds, edges, leaves)


def _refuse_reentrant(names: Mapping[int, str], leaves: Mapping[int, str]) -> None:
    hidden = [name for name in names.values() if name not in leaves.values()]
    which = f"parameter `{hidden[0]}`" if hidden else "part of the model"
    raise UnsupportedModuleError(
        f"autograd's graph does not show {which}: `torch.utils.checkpoint` hides it with "
        "`use_reentrant=True`. Pass `use_reentrant=False` where the model calls it (Hugging Face: "
        "`gradient_checkpointing_enable({'use_reentrant': False})`)."
    )


Arrived = Callable[[int, Sequence[Tensor | None]], None]


def run_backward(
    losses: Float[Tensor, " examples"],
    seeds: Float[Tensor, " examples"],
    graph: Graph,
    watched: Mapping[int, Sequence[int]],
    arrived: Arrived,
    *,
    passed_through: Iterable[int],
    keep_graph: bool,
) -> None:
    """Run a backward pass of `seeds . losses` that ends at nodes, and hand over what arrives.

    Weight gradients are not computed. A node that the pass goes through is handed over just before
    it runs, when all it saved is still there.

    Args:
        losses: One per example.
        seeds: Their coefficients.
        graph: Of the losses.
        watched: For each node that is waited for, its outputs.
        arrived: Takes a node's number and the gradient at each of its outputs.
        passed_through: The nodes that lie in front of others.
        keep_graph: Another pass will follow.
    """
    handles: list[RemovableHandle] = []
    through = set(passed_through)
    last = [number for number in watched if number not in through]
    places = [(number, output) for number in last for output in watched[number]]
    try:
        handles += [_hand_over(graph.nodes[number], number, arrived) for number in through]
        found = torch.autograd.grad(
            losses,
            [graph.edge(place) for place in places],
            seeds,
            retain_graph=keep_graph,
            allow_unused=True,
        )
    finally:
        for handle in handles:  # hook and node hold each other
            handle.remove()
    at = dict(zip(places, found, strict=True))
    del found
    with torch.no_grad():
        for number in last:
            size = len(graph.nodes[number]._input_metadata)
            gradients = [at.pop((number, output), None) for output in range(size)]
            if any(gradient is not None for gradient in gradients):
                arrived(number, gradients)


def _hand_over(node: Node, number: int, arrived: Arrived) -> RemovableHandle:
    def hook(gradients: Sequence[Tensor | None]) -> None:
        arrived(number, gradients)

    return node.register_prehook(hook)


def in_one_pass(work: Callable[[], object]) -> None:
    """Do something in a backward pass of its own, in which each checkpoint is computed once."""
    with torch.enable_grad():
        start = torch.zeros((), requires_grad=True)
        end = start.clone()
    node = end.grad_fn
    assert node is not None
    handle = node.register_prehook(lambda _: work() and None)
    try:
        torch.autograd.grad(end, start)
    finally:
        handle.remove()


def gradients_at(
    losses: Float[Tensor, " examples"],
    seeds: Float[Tensor, " examples"],
    graph: Graph,
    places: Sequence[Place],
) -> list[Tensor | None]:
    """Return the gradient of `seeds . losses` at each place; the graph stays."""
    edges = [graph.edge(place) for place in places]
    found = torch.autograd.grad(losses, edges, seeds, retain_graph=True, allow_unused=True)
    return list(found)


def is_compiled(model: nn.Module) -> bool:
    """Whether a part of the model is compiled, which makes it one node of the graph."""
    dynamo = sys.modules.get("torch._dynamo.eval_frame")
    if dynamo is None:
        return False
    return any(
        isinstance(module, dynamo.OptimizedModule) or module._compiled_call_impl is not None
        for module in model.modules()
    )


def eagerly() -> AbstractContextManager[None]:
    """Run compiled models as they were written.

    Taken apart by one backward pass per example, the one node of a compiled model cost 7 steps.
    """
    return torch.compiler.set_stance("force_eager")


@contextmanager
def batch_norm_passes_gradients_on(graph: Graph) -> Iterator[None]:
    """Let BatchNorm hand gradients on as they are, so that rows stay their examples' own."""
    handles = [
        node.register_hook(lambda inputs, outputs: (outputs[0], *[None] * (len(inputs) - 1)))
        for node, name in zip(graph.nodes, graph.names, strict=True)
        if "BatchNorm" in name
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
