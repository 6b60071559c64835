"""Measure the gradients of many examples in one backward pass.

A layer's input and the gradient at its output determine every example's parameter gradient there.
The engine records both (forward hooks, and one `autograd.grad` with respect to layer outputs, which
never computes a weight gradient) and hands them to a formula per kind of layer.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.graph import get_gradient_edge

from recollect.errors import UnsupportedModuleError
from recollect.gradients.backward import run_backward
from recollect.gradients.calls import Call, Unit, no_place_for_examples
from recollect.gradients.direct import direct_share, has_formula
from recollect.gradients.fallback import ModuleCall, fallback_share, tensors_in
from recollect.gradients.groups import Groups
from recollect.gradients.layout import Layout, possible_layouts, reaches_only
from recollect.gradients.measurement import GramSum, Measurement
from recollect.gradients.normalization import mixes_examples
from recollect.gradients.paths import ancestor_called, is_inside, name_inside, owned_parameters
from recollect.gradients.room import Room
from recollect.gradients.share import Share, add_up
from recollect.gradients.weighed_losses import WeighedLosses

_LIMIT_BYTES = 64 * 2**20


class GradientEngine:
    """Per-example gradients of a model's parameters, never written out unless that is cheaper.

    The first pass makes a plan and checks it: the shares must add up to autograd's own gradient,
    and the loss of one example must not reach others (except through BatchNorm, note P8).

    Args:
        model: Any module whose examples stand in the first dimension of its inputs.
        parameters: The parameters to differentiate, by their name in `model`.
        limit_bytes: Largest temporary the engine may hold for one layer.
    """

    def __init__(
        self,
        model: nn.Module,
        parameters: Mapping[str, nn.Parameter],
        *,
        limit_bytes: int = _LIMIT_BYTES,
    ) -> None:
        self.model = model
        self.parameters = dict(parameters)
        self.limit_bytes = limit_bytes
        self._modules = dict(model.named_modules())
        self._owned = owned_parameters(self._modules, self.parameters)
        self._units: dict[str, list[Unit]] | None = None  # by path; None until the first pass
        self._layouts: dict[str, Layout] = {}
        self._room = Room()
        self._watched = self._candidates()
        self._each_parameter_once = False

    @contextmanager
    def record(self) -> Iterator["Tape"]:
        """Record every call of a layer with parameters inside the `with` block."""
        tape = Tape(self, planning=self._units is None)
        keep = tape.keep
        handles = [
            module.register_forward_hook(partial(keep, path), with_kwargs=True)
            for path, module in self._watched
        ]
        try:
            yield tape
        finally:
            for handle in handles:
                handle.remove()

    def _candidates(self) -> list[tuple[str, nn.Module]]:
        """List owners of parameters and all their ancestors: any may be where one is used."""
        return [
            (path, module)
            for path, module in self._modules.items()
            if any(is_inside(owner, path) for owner in self._owned)
        ]

    # --- measuring --------------------------------------------------------------------------------

    def measure(
        self,
        calls: list[Call],
        losses: Float[Tensor, " examples"],
        coefficients: Float[Tensor, " examples"],
        groups: Groups,
        scales: Float[Tensor, " groups"],
        *,
        keep_graph: bool = False,
    ) -> Measurement:
        """Run the backward pass of `coefficients . losses` and collect every layer's share."""
        objective = losses @ coefficients
        if self._units is None:
            return self._plan(calls, losses, objective, groups, scales, keep_graph=keep_graph)
        used = self._used(calls, self._units, groups)
        each_parameter_once = self._each_parameter_once and len(used) == len(self._units)
        shares = self._shares(self._units, used, objective, groups, keep_graph=keep_graph)
        if not each_parameter_once:
            shares = _one_share_a_parameter(shares)
        return Measurement(shares, groups, scales)

    def gram(
        self,
        calls: list[Call],
        losses: Float[Tensor, " examples"],
        coefficients: Float[Tensor, " examples"],
        groups: Groups,
        scales: Float[Tensor, " groups"],
    ) -> Float[Tensor, "groups groups"]:
        """Run the backward pass, keep its graph and nothing else: a share is let go once seen."""
        if self._units is None or not self._each_parameter_once:
            kept = self.measure(calls, losses, coefficients, groups, scales, keep_graph=True)
            return kept.gram()
        used = self._used(calls, self._units, groups)
        if len(used) != len(self._units):  # a layer used twice has inner products with itself
            kept = self.measure(used, losses, coefficients, groups, scales, keep_graph=True)
            return kept.gram()
        found = GramSum(groups, like=scales)
        self._hand_over(
            self._units, used, losses @ coefficients, groups, found.add, keep_graph=True
        )
        return found.total(scales)

    def _used(
        self, calls: list[Call], units: Mapping[str, Sequence[Unit]], groups: Groups
    ) -> list[Call]:
        used = [call for call in calls if call.path in units or self._is_late(call)]
        calls.clear()
        for call in used:
            self._set_layout(call, groups.num_examples)
        return used

    def _shares(
        self,
        units: Mapping[str, Sequence[Unit]],
        calls: list[Call],
        objective: Tensor,
        groups: Groups,
        *,
        keep_graph: bool,
        at_the_end: bool = False,
    ) -> list[Share]:
        shares: list[Share] = []
        self._hand_over(
            *(units, calls, objective, groups, shares.append),
            keep_graph=keep_graph,
            at_the_end=at_the_end,
        )
        return shares

    def _hand_over(
        self,
        units: Mapping[str, Sequence[Unit]],
        calls: list[Call],
        objective: Tensor,
        groups: Groups,
        take: Callable[[Share], None],
        *,
        keep_graph: bool,
        at_the_end: bool = False,
    ) -> None:
        """Run the backward pass and give every share to `take`."""

        def arrived(call: Call, cotangents: Sequence[Tensor | None]) -> None:
            for unit in units[call.path]:
                take(self._share(unit, call, cotangents, groups))

        run_backward(objective, calls, arrived, keep_graph=keep_graph, at_the_end=at_the_end)

    def _share(
        self, unit: Unit, call: Call, cotangents: Sequence[Tensor | None], groups: Groups
    ) -> Share:
        given = call.given
        if [tensor._version for tensor in given] != call.versions:
            raise UnsupportedModuleError(
                f"the input of layer `{call.path}` was changed in place after the layer used it; "
                "replace the in-place operation behind it."
            )
        if unit.direct:
            (cotangent,) = cotangents
            assert cotangent is not None
            return direct_share(
                call.module,
                unit.parameters,
                given[0],
                cotangent,
                layout=call.layout,
                groups=groups,
                limit_bytes=self.limit_bytes,
                room=self._room,
                statistics=call.statistics,
            )
        zeroed = [
            given[0].new_zeros(shape) if cotangent is None else cotangent
            for shape, cotangent in zip(call.shapes, cotangents, strict=True)
        ]
        again = ModuleCall(
            call.path,
            call.module,
            (call.args, call.kwargs),
            unit.parameters,
            call.differentiable,
            call.outputs,
        )
        return fallback_share(again, zeroed, layout=call.layout, groups=groups)

    def _is_late(self, call: Call) -> bool:
        """Take in a layer that the pass which made the plan did not use."""
        assert self._units is not None
        placed = {
            name for units in self._units.values() for u in units for name in u.parameters.values()
        }
        own = self._owned.get(call.path, {})
        late = {local: name for local, name in own.items() if name not in placed}
        if late:
            self._units[call.path] = [Unit(call.path, late, has_formula(call.module))]
        return bool(late)

    def _set_layout(self, call: Call, num_examples: int) -> None:
        known = self._layouts.get(call.path)
        if known == "first" and call.shapes[0][0] == num_examples:
            return  # by far the commonest, and what a call starts with
        possible = possible_layouts(call.shapes[0], num_examples)
        if not possible:
            raise no_place_for_examples(call, num_examples)
        call.layout = known if known in possible else possible[0]

    # --- the first pass: who is measured where, checked -------------------------------------------

    def _plan(
        self,
        calls: list[Call],
        losses: Tensor,
        objective: Tensor,
        groups: Groups,
        scales: Tensor,
        *,
        keep_graph: bool,
    ) -> Measurement:
        expected = dict(
            zip(
                self.parameters,
                torch.autograd.grad(
                    objective, list(self.parameters.values()), retain_graph=True, allow_unused=True
                ),
                strict=True,
            )
        )
        for name, gradient in expected.items():
            if gradient is not None and gradient.is_sparse:
                raise UnsupportedModuleError(
                    f"parameter `{name}` has sparse gradients, which cannot be weighed by example; "
                    "build its layer with `sparse=False`."
                )
        called = {call.path for call in calls}
        places = self._starting_places(called, {n for n, g in expected.items() if g is not None})
        while True:
            units = self._units_at(places)
            used = [call for call in calls if call.path in units]
            self._find_layouts(used, losses)
            shares = self._shares(
                units, list(used), objective, groups, keep_graph=True, at_the_end=True
            )
            measured = Measurement(_one_share_a_parameter(shares), groups, scales)
            total = measured.combine(1 / scales)
            wrong = [
                name
                for name, gradient in expected.items()
                if gradient is not None and not _close(total.get(name), gradient)
            ]
            if not wrong:
                break
            for name in wrong:  # used outside its owner's forward: look from one level further out
                places[name] = [ancestor_called(places[name][0], called, name)]
        finite = all(g is None or bool(torch.isfinite(g).all()) for g in expected.values())
        if groups.num_examples > 1 and finite:  # else the checks have shown nothing
            self._units = units
            self._layouts = {call.path: call.layout for call in used}
            paths = dict.fromkeys([*self._owned, *units])
            self._watched = [(path, self._modules[path]) for path in paths]
            names = [name for share in shares for name in share.parameters]
            self._each_parameter_once = len(names) == len(set(names))
        # Once more, as any later pass is measured: a resumed run plans in mid-stream, and must find
        # the same to the bit.
        del measured, total
        calls.clear()
        shares = self._shares(units, used, objective, groups, keep_graph=keep_graph)
        return Measurement(_one_share_a_parameter(shares), groups, scales)

    def _starting_places(self, called: set[str], wanted: set[str]) -> dict[str, list[str]]:
        places: dict[str, list[str]] = {}
        for path, owned in self._owned.items():
            for name in owned.values():
                if name in wanted:
                    # A parametrization works on weights, not on examples: its owner does.
                    place = path.partition("parametrizations")[0].rstrip(".")
                    if place not in called:
                        place = ancestor_called(place, called, name)
                    places.setdefault(name, []).append(place)
        return places

    def _units_at(self, places: Mapping[str, Sequence[str]]) -> dict[str, list[Unit]]:
        members: dict[tuple[str, bool], dict[str, str]] = {}
        for name, paths in places.items():
            for path in dict.fromkeys(paths):
                own = {full: local for local, full in self._owned.get(path, {}).items()}
                direct = name in own and has_formula(self._modules[path])
                local = own[name] if name in own else name_inside(name, path)
                members.setdefault((path, direct), {})[local] = name
        units: dict[str, list[Unit]] = {}
        for (path, direct), parameters in members.items():
            units.setdefault(path, []).append(Unit(path, parameters, direct))
        return units

    def _find_layouts(self, calls: Sequence[Call], losses: Tensor) -> None:
        count = len(losses)
        apart = count > 1 and not mixes_examples(self.model)
        edges = [edge for call in calls for edge in call.edges]
        alone = iter(
            torch.autograd.grad(losses[0], edges, retain_graph=True, allow_unused=True)
            if apart
            else [None] * len(edges)
        )
        for call in calls:
            cotangents = [next(alone) for _ in call.edges]
            layouts = possible_layouts(call.shapes[0], count)
            if cotangents[0] is not None and bool(torch.isfinite(cotangents[0]).all()):
                layouts = [
                    layout for layout in layouts if reaches_only(cotangents[0], 0, layout, count)
                ]
            if not layouts:
                raise no_place_for_examples(call, count)
            call.layout = layouts[0]


class Tape:
    """What a recorded forward pass left behind."""

    def __init__(self, engine: GradientEngine, *, planning: bool) -> None:
        self._engine = engine
        self._planning = planning
        self._calls: list[Call] = []

    def keep(
        self,
        path: str,
        module: nn.Module,
        args: tuple[object, ...],
        kwargs: dict[str, object],
        output: Any,
    ) -> None:
        """Forward hook: remember inputs and the place of the outputs in the autograd graph."""
        # An edge, not the tensor: a later in-place operation gives the tensor another history.
        returned = tensors_in(output)
        differentiable = [i for i, result in enumerate(returned) if result.requires_grad]
        if not differentiable:
            return
        results = [returned[i] for i in differentiable]
        given = tensors_in(args) + (tensors_in(kwargs) if kwargs else [])
        self._calls.append(
            Call(
                path,
                module,
                args,
                kwargs,
                given,
                [tensor._version for tensor in given],
                edges=[get_gradient_edge(result) for result in results],
                differentiable=differentiable,
                shapes=[result.shape for result in results],
                outputs=[result.detach().clone() for result in results] if self._planning else None,
            )
        )

    def measure(
        self,
        losses: Float[Tensor, " examples"],
        coefficients: Float[Tensor, " examples"],
        groups: Groups,
        scales: Float[Tensor, " groups"],
    ) -> Measurement:
        """Measure the gradients of `groups` from the losses this pass led to.

        Args:
            losses: One loss an example.
            coefficients: The objective whose backward pass is run is `coefficients . losses`.
            groups: Which examples belong together; a group's share is the sum over its examples.
            scales: Factor that turns a group's share into the gradient that is meant.
        """
        calls, self._calls = self._calls, []
        return self._engine.measure(calls, losses, coefficients, groups, scales)

    def measure_losses(
        self,
        losses: Float[Tensor, " examples"],
        coefficients: Float[Tensor, " examples"],
        groups: Groups,
        scales: Float[Tensor, " groups"],
        *,
        to_be_joined: bool,
    ) -> WeighedLosses:
        """As `measure`, but weights will multiply losses instead of shares.

        Args:
            losses: As for `measure`, as are the next three.
            coefficients: See there.
            groups: See there.
            scales: See there.
            to_be_joined: Keep shares, for inner products with those of another pass.
        """
        calls, self._calls = self._calls, []
        engine = self._engine
        if to_be_joined:
            kept = engine.measure(calls, losses, coefficients, groups, scales, keep_graph=True)
            shares, gram = list(kept.shares.values()), None
        else:
            shares, gram = [], engine.gram(calls, losses, coefficients, groups, scales)
        return WeighedLosses(
            shares, groups, scales, losses, coefficients, engine.parameters, gram=gram
        )


def _one_share_a_parameter(shares: Sequence[Share]) -> list[Share]:
    """Merge shares that speak for the same parameter: a module used twice, or tied weights."""
    merged: list[list[Share]] = []
    for share in shares:
        together = [group for group in merged if _overlap(group, share)]
        merged = [group for group in merged if group not in together]
        merged.append([*(member for group in together for member in group), share])
    return [group[0] if len(group) == 1 else add_up(group) for group in merged]


def _overlap(group: Sequence[Share], share: Share) -> bool:
    return any(not set(member.parameters).isdisjoint(share.parameters) for member in group)


def _close(found: Tensor | None, expected: Tensor) -> bool:
    if found is None:
        return not bool(expected.any())
    if not bool(torch.isfinite(expected).all()):
        return True  # the learner refuses non-finite gradients with its own message
    tolerance = 10 * torch.finfo(expected.dtype).eps ** 0.5
    distance = torch.linalg.vector_norm(found - expected)
    return bool(distance <= tolerance * (torch.linalg.vector_norm(expected) + tolerance))
