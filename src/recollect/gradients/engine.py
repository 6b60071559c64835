"""Measure the gradients of many examples in one backward pass.

A layer's input and the gradient at its output determine every example's parameter gradient there.
The engine records both (forward hooks, and one `autograd.grad` with respect to layer outputs, which
never computes a weight gradient) and hands them to a formula per kind of layer.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from recollect.errors import UnsupportedModuleError
from recollect.gradients.backward import run_backward
from recollect.gradients.calls import Call, Unit, no_place_for_examples, refused_further_out
from recollect.gradients.direct import direct_share, has_formula
from recollect.gradients.fallback import ModuleCall, fallback_share
from recollect.gradients.groups import Groups
from recollect.gradients.layout import Layout, possible_layouts
from recollect.gradients.measurement import GramSum, Measurement
from recollect.gradients.normalization import mixes_examples
from recollect.gradients.objective import Objective
from recollect.gradients.paths import ancestor_called, is_inside, owned_parameters
from recollect.gradients.places import agree, find_layouts, move_out, starting_places, units_at
from recollect.gradients.precision import as_precise_as, coarsest
from recollect.gradients.room import Room
from recollect.gradients.share import Share, one_share_a_parameter
from recollect.gradients.tape import Tape

_LIMIT_BYTES = 64 * 2**20
# Before a head or a gate that starts at zero every gradient is zero, and a plan has nothing to
# compare. Each step wakes the next layer and takes a few passes at most, so this is enough for
# several such layers inside each other. What is zero for longer may be dead, and a plan costs as
# much as several passes.
_MOST_PLANS = 20


class GradientEngine:
    """Per-example gradients of a model's parameters, never written out unless that is cheaper.

    The first pass makes a plan and checks it: the shares must add up to autograd's own gradient,
    and the loss of one example must not reach others (except through BatchNorm, note P8). A pass
    that shows too little to check (one example, zero gradients) leaves the plan to the next.

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
        self._each_parameter_once = False  # wherever it is measured, if every layer is used once
        self._plans = 0
        self._rounding = 0.0  # of the coarsest numbers in the pass that made the plan

    @contextmanager
    def record(self) -> Iterator[Tape]:
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
        self, calls: list[Call], objective: Objective, *, keep_graph: bool = False
    ) -> Measurement:
        """Run the backward pass of the objective and collect every layer's share."""
        groups, scales = objective.groups, objective.scales
        if self._units is None:
            return self._plan(calls, objective, keep_graph=keep_graph)
        used = self._used(calls, self._units, groups)
        each_parameter_once = self._each_parameter_once and _each_once(used)
        total = objective.total()
        shares = self._shares(self._units, used, total, groups, keep_graph=keep_graph)
        if not each_parameter_once:
            shares = one_share_a_parameter(shares)
        return Measurement(shares, groups, scales)

    def gram(self, calls: list[Call], objective: Objective) -> Float[Tensor, "groups groups"]:
        """Run the backward pass, keep its graph and nothing else: a share is let go once seen."""
        groups, scales = objective.groups, objective.scales
        if self._units is None or not self._each_parameter_once:
            return self.measure(calls, objective, keep_graph=True).gram()
        used = self._used(calls, self._units, groups)
        if not _each_once(used):  # a layer used twice has inner products with itself
            return self.measure(used, objective, keep_graph=True).gram()
        found = GramSum(groups, like=scales)
        self._hand_over(self._units, used, objective.total(), groups, found.add, keep_graph=True)
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
        total: Tensor,
        groups: Groups,
        *,
        keep_graph: bool,
        at_the_end: bool = False,
    ) -> list[Share]:
        shares: list[Share] = []
        self._hand_over(
            *(units, calls, total, groups, shares.append),
            keep_graph=keep_graph,
            at_the_end=at_the_end,
        )
        return shares

    def _hand_over(
        self,
        units: Mapping[str, Sequence[Unit]],
        calls: list[Call],
        total: Tensor,
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

        run_backward(total, calls, arrived, keep_graph=keep_graph, at_the_end=at_the_end)

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
            activations = given[0]
            dtype = self.parameters[next(iter(unit.parameters.values()))].dtype
            if cotangent.dtype != dtype or activations.dtype != dtype:
                activations, cotangent = as_precise_as(dtype, activations, cotangent)
            return direct_share(
                call.module,
                unit.parameters,
                activations,
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
            call.autocast,
            self._rounding,
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

    def _plan(self, calls: list[Call], objective: Objective, *, keep_graph: bool) -> Measurement:
        groups, scales, total = objective.groups, objective.scales, objective.total()
        expected = dict(
            zip(
                self.parameters,
                torch.autograd.grad(
                    total, list(self.parameters.values()), retain_graph=True, allow_unused=True
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
        self._rounding = coarsest(output for call in calls for output in call.outputs or ())
        units, used = self._settle(calls, objective, expected)
        gradients = [gradient for gradient in expected.values() if gradient is not None]
        finite = all(bool(torch.isfinite(gradient).all()) for gradient in gradients)
        if groups.num_examples > 1 and finite:  # else the checks have shown nothing
            self._plans += 1
            if self._plans == _MOST_PLANS or all(bool(gradient.any()) for gradient in gradients):
                self._keep(units, used)
        # Once more, as any later pass is measured: a resumed run plans in mid-stream, and must find
        # the same to the bit.
        calls.clear()
        shares = self._shares(units, used, total, groups, keep_graph=keep_graph)
        return Measurement(one_share_a_parameter(shares), groups, scales)

    def _settle(
        self, calls: list[Call], objective: Objective, expected: Mapping[str, Tensor | None]
    ) -> tuple[dict[str, list[Unit]], list[Call]]:
        """Find the innermost modules where shares add up to the expected gradients."""
        called = {call.path for call in calls}
        wanted = {name for name, gradient in expected.items() if gradient is not None}
        places = starting_places(self._owned, called, wanted)
        examples_mix = mixes_examples(self.model)
        without: list[Call] = []  # a place for examples in what they returned
        try:
            while True:
                units = units_at(places, self._owned, self._modules)
                used = [call for call in calls if call.path in units]
                if found := find_layouts(used, objective.losses, examples_mix=examples_mix):
                    without += found
                    move_out(places, {call.path for call in found}, called)
                    continue
                wrong = self._wrong(units, used, objective, expected)
                if not wrong:
                    return units, used
                for name in wrong:  # used outside its owner's forward: look further out
                    places[name] = [ancestor_called(places[name][0], called, name)]
        except Exception as error:  # of any kind: modules further out are run again, by example
            if without:
                raise refused_further_out(without[0], len(objective.losses), error) from error
            raise

    def _wrong(
        self,
        units: Mapping[str, Sequence[Unit]],
        used: Sequence[Call],
        objective: Objective,
        expected: Mapping[str, Tensor | None],
    ) -> list[str]:
        """List the parameters whose shares do not add up to the expected gradient."""
        groups, scales, total = objective.groups, objective.scales, objective.total()
        shares = self._shares(units, list(used), total, groups, keep_graph=True, at_the_end=True)
        measured = Measurement(one_share_a_parameter(shares), groups, scales)
        added_up = measured.combine(1 / scales)
        return [
            name
            for name, gradient in expected.items()
            if gradient is not None and not agree(added_up.get(name), gradient, self._rounding)
        ]

    def _keep(self, units: dict[str, list[Unit]], used: Sequence[Call]) -> None:
        """Measure every later pass by this plan."""
        self._units = units
        self._layouts = {call.path: call.layout for call in used}
        paths = dict.fromkeys([*self._owned, *units])
        self._watched = [(path, self._modules[path]) for path in paths]
        names = [name for at in units.values() for unit in at for name in unit.parameters.values()]
        self._each_parameter_once = len(names) == len(set(names))


def _each_once(calls: Sequence[Call]) -> bool:
    return len({call.path for call in calls}) == len(calls)
