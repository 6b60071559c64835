"""Measure the gradients of many examples in one backward pass.

Autograd's graph tells all that is needed. The node that used a parameter has saved what it was
given, and the gradient at its output arrives in the backward pass: together they determine every
example's parameter gradient there. So nothing is known of the model's layers, only of the few kinds
of nodes that parameters meet (`formulas/`), and a node of another kind is simply called again.
"""

import time
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.checkpoint import CheckpointError

from recollect.errors import UnsupportedModuleError
from recollect.gradients.batch_norm import mixes_examples
from recollect.gradients.capture import (
    Arrived,
    Graph,
    gradients_at,
    graph_behind,
    in_one_pass,
    run_backward,
)
from recollect.gradients.formulas import (  # noqa: F401
    elementwise,
    embedding,
    linear,
    norms,
    recurrent,
)
from recollect.gradients.formulas.convolutions import convolution  # noqa: F401
from recollect.gradients.formulas.replay import CHEAP, replayed
from recollect.gradients.formulas.shared import pushed
from recollect.gradients.formulas.table import Formulas, formula_for
from recollect.gradients.formulas.visit import Visit
from recollect.gradients.groups import Groups
from recollect.gradients.measurement import GramSum, Measurement, ProductSums
from recollect.gradients.objective import Objective
from recollect.gradients.one_by_one import one_by_one
from recollect.gradients.rows.plan import Plan, make_plan
from recollect.gradients.scratch import Scratch
from recollect.gradients.share import ExplicitShare, Share, one_share_a_parameter
from recollect.gradients.weighted_losses import WeightedLosses

_LIMIT_BYTES: Final = 64 * 2**20
_MOST_PLANS: Final = 64  # kinds of passes that are remembered
_CHECKED: Final = 4  # plans of changing layouts that are checked; later ones only now and then
# Their tensors are large: what is made of them is made at once, while they are in the cache.
_LARGE: Final = frozenset(
    {"ConvolutionBackward0", "NativeBatchNormBackward0", "NativeGroupNormBackward0"}
)


class GradientEngine:
    """Per-example gradients of a model's parameters, never written out unless that is cheaper.

    The gradient of example i is that of its loss in this very pass, with its own dropout mask. The
    first pass of a kind makes a plan, which is checked: random combinations of the gradients must
    be autograd's own. Through BatchNorm they are contributions to the batch's gradient (note P8).

    Args:
        model: Any module.
        parameters: The parameters to differentiate, by their name in `model`.
        limit_bytes: Largest temporary the engine may hold for one layer.
        formulas: Formulas for kinds of nodes, in front of those that are known.
        measured: Names of the parameters whose gradients enter inner products; None for all.
    """

    def __init__(
        self,
        model: nn.Module,
        parameters: Mapping[str, nn.Parameter],
        *,
        limit_bytes: int = _LIMIT_BYTES,
        formulas: Formulas | None = None,
        measured: Collection[str] | None = None,
    ) -> None:
        self.model = model
        self.parameters = dict(parameters)
        self.limit_bytes = limit_bytes
        self._formulas = dict(formulas or {})
        # What the graph shows of other parameters is passed over, as if they were frozen.
        self._names = {
            id(parameter): name
            for name, parameter in self.parameters.items()
            if measured is None or name in measured
        }
        self._dtypes = {name: parameter.dtype for name, parameter in self.parameters.items()}
        self._plans: dict[tuple[object, ...], Plan] = {}
        self._made = 0
        self._scratch = Scratch()
        self._checkpointed = False
        self._warned: set[str] = set()

    @property
    def taken_apart(self) -> frozenset[str]:
        """Parameters that some kind of pass could only measure with a pass per example."""
        return frozenset().union(*(plan.by_itself for plan in self._plans.values()))

    def measure(self, objective: Objective, *, keep_graph: bool = False) -> Measurement:
        """Run the backward pass of the objective and measure the gradient of each group.

        Args:
            objective: Losses that the model led to, and what is asked of them.
            keep_graph: Another pass will follow.
        """
        groups, scales = objective.groups, objective.scales
        graph = graph_behind(objective.losses, self._names)
        plan = self._plan(graph, objective)
        shares = self._shares(graph, plan, objective, keep_graph=keep_graph)
        return Measurement(shares, groups, scales)

    def measure_losses(self, objective: Objective, *, to_be_joined: bool) -> WeightedLosses:
        """As `measure`, but weights will multiply losses instead of shares; the graph is kept.

        Args:
            objective: What `measure` takes apart.
            to_be_joined: Keep shares, for inner products with those of another pass.
        """
        if to_be_joined:
            kept = self.measure(objective, keep_graph=True)
            return WeightedLosses(list(kept.shares.values()), objective, self.parameters)
        graph = graph_behind(objective.losses, self._names)
        plan = self._plan(graph, objective)
        found = ProductSums(objective)
        if plan is not None and plan.each_once and not plan.by_itself:
            if plan.borders:
                self._hand_over(graph, plan, objective, found.add, keep_graph=True)
        else:  # a parameter that is used twice has inner products with itself
            for share in self._shares(graph, plan, objective, keep_graph=True):
                found.add(share)
        gram, row = found.totals()
        return WeightedLosses([], objective, self.parameters, gram=gram, row=row)

    # --- one pass ---------------------------------------------------------------------------------

    def _shares(
        self, graph: Graph, plan: Plan | None, objective: Objective, *, keep_graph: bool
    ) -> list[Share]:
        if plan is None:
            return self._whole(graph, objective, keep_graph=keep_graph)
        shares: list[Share] = []
        groups = objective.groups
        keep = keep_graph or bool(plan.by_itself)
        if plan.borders:
            self._hand_over(graph, plan, objective, shares.append, keep_graph=keep)
        with torch.no_grad():
            shares = self._through_shared(graph, plan, shares, groups)
            if not plan.each_once:
                shares = one_share_a_parameter(shares)
        if plan.by_itself:
            apart = [s for s in shares if not plan.by_itself.isdisjoint(s.parameters)]
            names = plan.by_itself.union(*(share.parameters for share in apart))
            shares = [s for s in shares if plan.by_itself.isdisjoint(s.parameters)]
            shares.append(self._one_by_one(names, objective))
        return [*shares, *self._zeros(graph, shares, groups)]

    def _hand_over(
        self,
        graph: Graph,
        plan: Plan,
        objective: Objective,
        take: Callable[[Share], None],
        *,
        keep_graph: bool,
    ) -> None:
        """Run the backward pass and give every border's shares to `take`."""
        through = set(plan.passed_through)
        later: list[tuple[int, Sequence[Share]]] = []
        to_replay: list[tuple[int, Visit]] = []
        groups = objective.groups
        start = time.perf_counter()

        def arrived(number: int, gradients: Sequence[Tensor | None]) -> None:
            name, visit = graph.names[number], self._visit(graph, plan, number, gradients, groups)
            known = self._formulas.get(name) or formula_for(name)
            shares = None if known is None else known(visit)
            if shares is None:
                to_replay.append((number, visit))
            elif number in through and name in _LARGE:
                for share in shares:
                    take(share)
            else:
                order = graph.nodes[number]._sequence_nr()
                later.append((order, shares))

        self._run(graph, plan, objective, arrived, keep_graph=keep_graph or plan.replays)
        seconds: dict[int, float] = {}
        with torch.no_grad():
            for number, visit in to_replay:
                begun = time.perf_counter()
                order = graph.nodes[number]._sequence_nr()
                later.append((order, replayed(visit)))
                seconds[number] = time.perf_counter() - begun
            for _, shares in sorted(later, key=lambda entry: entry[0]):  # as the model ran
                for share in shares:
                    take(share)
        plan.replays = bool(to_replay)
        self._warn(graph, plan, seconds, time.perf_counter() - start)

    def _run(
        self, graph: Graph, plan: Plan, objective: Objective, arrived: Arrived, *, keep_graph: bool
    ) -> None:
        """Run the backward pass; read what nodes saved on its way or, checkpointed, after it."""
        watched = {number: sorted(border.layouts) for number, border in plan.borders.items()}
        run = partial(run_backward, objective.losses, objective.coefficients, graph, watched)
        if not self._checkpointed:
            try:
                run(arrived, passed_through=plan.passed_through, keep_graph=keep_graph)
            except CheckpointError as error:
                self._checkpointed = True
                if not keep_graph:
                    raise UnsupportedModuleError(
                        "the model began to use checkpoints after its first step; repeat the step."
                    ) from error
                raise
            return
        waiting: list[tuple[int, Sequence[Tensor | None]]] = []
        run(lambda *found: waiting.append(found), passed_through=(), keep_graph=True)
        in_one_pass(lambda: _each(arrived, waiting))

    def _visit(
        self,
        graph: Graph,
        plan: Plan,
        number: int,
        gradients: Sequence[Tensor | None],
        groups: Groups,
    ) -> Visit:
        border = plan.borders[number]
        return Visit(
            graph.nodes[number],
            [gradient if o in border.layouts else None for o, gradient in enumerate(gradients)],
            border.layouts,
            border.slots,
            border.transposed,
            self._dtypes,
            groups,
            self.limit_bytes,
            self._scratch,
        )

    def _warn(self, graph: Graph, plan: Plan, replays: Mapping[int, float], seconds: float) -> None:
        """Name each kind of node without a formula once, and what it costs."""
        for number in replays:
            name = graph.names[number]
            if name in self._warned or name in CHEAP or formula_for(name) is not None:
                continue
            self._warned.add(name)
            took = sum(part for at, part in replays.items() if graph.names[at] == name)
            slot = next(iter(plan.borders[number].slots.values()))
            owner = slot.rpartition(".")[0] if slot in self.parameters else ""
            where = f"in layer `{owner}` " if owner else ""
            warnings.warn(
                f"node `{name}` {where}has no formula and is called once per gradient, which took "
                f"{took / seconds:.0%} of this backward pass; `recollect.gradients.formula` adds "
                "one",
                stacklevel=2,
            )

    def _through_shared(
        self, graph: Graph, plan: Plan, shares: list[Share], groups: Groups
    ) -> list[Share]:
        """Push what was found in front of a shared part on to its parameters."""
        if not plan.shared:
            return shares
        direct, in_front = [], []
        for share in shares:
            apart = [name for name in share.parameters if name in plan.shared]
            if not apart:
                direct.append(share)
            elif len(apart) == len(share.parameters):
                in_front.append(share)
            else:
                rows = share.rows()
                in_front.append(ExplicitShare({name: rows.pop(name) for name in apart}, groups))
                direct.append(ExplicitShare(rows, groups))
        found = pushed(graph, plan.shared, in_front, self.parameters, groups)
        return direct if found is None else [*direct, found]

    def _zeros(self, graph: Graph, shares: Sequence[Share], groups: Groups) -> list[Share]:
        """Give parameters whose gradient is zero in this pass zeros, as autograd does."""
        measured = {name for share in shares for name in share.parameters}
        missing = dict.fromkeys(name for name in graph.leaves.values() if name not in measured)
        zeros = {name: torch.zeros_like(self.parameters[name]) for name in missing}
        return [
            ExplicitShare({name: zero.expand(len(groups), *zero.shape)}, groups)
            for name, zero in zeros.items()
        ]

    def _whole(self, graph: Graph, objective: Objective, *, keep_graph: bool) -> list[Share]:
        """Differentiate the only example."""
        names = list(dict.fromkeys(graph.leaves.values()))
        if not names:
            return []
        found = torch.autograd.grad(
            objective.losses,
            [self.parameters[name] for name in names],
            objective.coefficients,
            retain_graph=keep_graph,
        )
        for name, gradient in zip(names, found, strict=True):
            _refuse_sparse(name, gradient)
        return [
            ExplicitShare({name: gradient[None]}, objective.groups)
            for name, gradient in zip(names, found, strict=True)
        ]

    def _one_by_one(self, names: frozenset[str], objective: Objective) -> ExplicitShare:
        some = {name: self.parameters[name] for name in self.parameters if name in names}
        with torch.enable_grad():
            losses = objective.losses * objective.coefficients
        rows = one_by_one(losses, some)
        return ExplicitShare(
            {name: objective.groups.sum(found) for name, found in rows.items()}, objective.groups
        )

    # --- plans ------------------------------------------------------------------------------------

    def _plan(self, graph: Graph, objective: Objective) -> Plan | None:
        """Return the plan for this kind of pass; None if there is one example only."""
        losses = objective.losses
        if len(losses) == 1:
            return None
        key = (graph.key, losses.dtype)
        known = self._plans.get(key)
        if known is not None and known.keeps and self._holds(known, graph, losses):
            return known
        plan = make_plan(graph, losses, examples_mix=mixes_examples(self.model), before=known)
        self._made += 1
        if plan.keeps or self._made <= _CHECKED or self._made % _CHECKED == 0:
            self._check(graph, plan, losses)
        if key not in self._plans and len(self._plans) == _MOST_PLANS:
            self._plans.pop(next(iter(self._plans)))
        self._plans[key] = plan
        return plan

    def _holds(self, plan: Plan, graph: Graph, losses: Float[Tensor, " examples"]) -> bool:
        """Whether what is not in the key is as it was: which rows are whose, and what is zero."""
        if not plan.holds_for(graph):
            return False
        if not plan.silent:
            return True
        found = gradients_at(losses, torch.ones_like(losses), graph, plan.silent)
        return not any(gradient is not None and bool(gradient.any()) for gradient in found)

    def _check(self, graph: Graph, plan: Plan, losses: Float[Tensor, " examples"]) -> None:
        """Compare a random combination of the gradients with autograd's own.

        A plain sum would not see rows that were taken for another example's. Parameters that do not
        agree are given a backward pass per example. Under BatchNorm only the sum has a meaning.
        """
        mixed = mixes_examples(self.model)
        ones = torch.ones_like(losses)
        drawn = torch.randn(len(losses), generator=torch.Generator().manual_seed(0))
        weights = ones if mixed else drawn.to(losses)
        names = list(dict.fromkeys(graph.leaves.values()))
        if not names:  # none of those that are measured was used
            return
        inputs = [self.parameters[name] for name in names]
        expected = torch.autograd.grad(losses, inputs, weights, retain_graph=True)
        for name, gradient in zip(names, expected, strict=True):
            _refuse_sparse(name, gradient)
        finite = plan.finite and all(bool(torch.isfinite(g).all()) for g in expected)
        if not finite:  # the learner says so with its own message
            plan.by_itself, plan.keeps = frozenset(names), False
            return
        each = Groups((1,) * len(losses))
        objective = Objective(losses, ones, each, ones)
        try:
            shares = self._shares(graph, plan, objective, keep_graph=True)
        except CheckpointError:  # now it is known
            shares = self._shares(graph, plan, objective, keep_graph=True)
        rounding = _rounding(graph)
        wanted = dict(zip(names, expected, strict=True))
        with torch.no_grad():
            plan.by_itself = _wrong(shares, weights, wanted, rounding)
        if plan.by_itself:
            name = min(plan.by_itself)
            warnings.warn(
                f"the gradient of parameter `{name}` could not be split by example in one pass; "
                "it takes one backward pass per example",
                stacklevel=2,
            )


def _each(arrived: Arrived, waiting: Sequence[tuple[int, Sequence[Tensor | None]]]) -> None:
    for number, gradients in waiting:
        arrived(number, gradients)


def _rounding(graph: Graph) -> float:
    """Return `eps` of the coarsest numbers in the graph."""
    kinds = {entry.dtype for node in graph.nodes for entry in node._input_metadata}
    return max(torch.finfo(kind).eps for kind in kinds if kind.is_floating_point)


def _wrong(
    shares: Sequence[Share],
    weights: Float[Tensor, " examples"],
    wanted: Mapping[str, Tensor],
    rounding: float,
) -> frozenset[str]:
    """Find the parameters whose weighted sum is not autograd's own.

    Rounding is measured against the gradients that were added up, since these may cancel as those
    of a bias in front of BatchNorm do; and against those of other layers, since within an example
    the same may happen.
    """
    lengths = []
    for share in shares:
        products = GramSum(share.groups, like=weights)
        products.add(share)
        squares = products.total(torch.ones_like(weights)).diagonal().clamp_min(0)
        lengths.append(float((weights.square() * squares).sum().sqrt()))
    longest = max(lengths, default=0.0)
    wrong = set()
    for share, length in zip(shares, lengths, strict=True):
        for name, found in share.combine(weights).items():
            expected = wanted[name]
            eps = torch.finfo(expected.dtype).eps
            coarse = rounding if rounding > eps else 0.0  # as under autocast
            part = max(10 * eps**0.5, 8 * coarse)
            scale = max(length, float(torch.linalg.vector_norm(expected)))
            distance = float(torch.linalg.vector_norm(found - expected))
            if not distance <= part * scale + (100 * eps + coarse) * longest:
                wrong.add(name)
    return frozenset(wrong)


def _refuse_sparse(name: str, gradient: Tensor) -> None:
    if gradient.is_sparse:
        raise UnsupportedModuleError(
            f"parameter `{name}` has sparse gradients, which cannot be weighed by example; build "
            "its layer with `sparse=False`."
        )
