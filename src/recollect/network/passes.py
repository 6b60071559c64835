"""Find g and the g_i: by one joint pass, by two, or by one a group (paper note P12)."""

from dataclasses import dataclass
from functools import partial, reduce
from typing import get_args

import torch
from jaxtyping import Float
from torch import Tensor

from recollect import nested
from recollect.choices import Passes, Weighs
from recollect.gradients import Groups, Measurement, mixes_examples
from recollect.learner.checks import checked_weights
from recollect.network.batch import Batch
from recollect.network.network import (
    Gradients,
    Network,
    Numbers,
    Pass,
    mean_weights,
)
from recollect.rules import GradientSum, Rule


@dataclass(slots=True)
class Found:
    """Losses and outputs of incoming, then replayed examples; gradients summed or one by one."""

    losses: Float[Tensor, " examples"]
    outputs: object | None
    gradients: Gradients | Measurement


class IncomingPass:
    """The pass over the incoming batch alone, run at most once and only if somebody needs it."""

    def __init__(
        self, network: Network, incoming: Batch, *, passes: Passes, measured: bool
    ) -> None:
        self._network, self._incoming = network, incoming.training()
        self._measured = measured and passes != "grouped"
        self.passes = passes
        self._trained: Pass | None = None
        self._looked: Pass | None = None

    @property
    def was_run(self) -> bool:
        """Whether the pass was run in a way that can stand for the training pass."""
        return self._trained is not None

    def run(self) -> Pass:
        """Run the pass as a training pass, or return it."""
        if self._trained is None:
            self._trained = self._pass()
        return self._trained

    def only(self) -> Found:
        """With nothing to replay, w = g."""
        if self._trained is None:
            self._trained = self._differentiate()
        found = self._trained
        return Found(found.losses, found.outputs, _written(found.gradients))

    def gradient(self) -> Gradients:
        """Return g, for a virtual step."""
        if self.passes == "joint" and mixes_examples(self._network.model):
            # The training pass will be joint, with other statistics; this one only looks.
            if self._looked is None:
                with self._network.unseen():
                    self._looked = self._differentiate()
            return _written(self._looked.gradients)
        # Without mixing the joint pass has the same gradients: this pass can be its first half.
        return _written(self.run().gradients)

    def _pass(self) -> Pass:
        if self._measured:
            return self._network.measure(self._incoming, incoming=len(self._incoming))
        return self._differentiate()

    def _differentiate(self) -> Pass:
        return self._network.differentiate(self._incoming, _mean_of(self._incoming))


def find_gradients(
    network: Network, incoming: Batch, replayed: Batch, alone: IncomingPass, rule: Rule
) -> Found:
    """Pass both batches through the network and find the gradients the rule works on."""
    incoming, replayed = incoming.training(), replayed.training()
    if alone.passes == "joint" and not alone.was_run:
        return _joint(network, incoming, replayed, rule)
    one = alone.run()
    if alone.passes == "grouped":
        others = [network.differentiate(part, _mean_of(part)) for part in _parts(replayed, rule)]
        gradients = _stacked([_written(found.gradients) for found in (one, *others)])
        return _all_of([one, *others], gradients)
    if rule.needs_gram:
        two = network.measure(replayed, incoming=0)
        assert isinstance(one.gradients, Measurement)
        assert isinstance(two.gradients, Measurement)
        return _all_of([one, two], one.gradients.join(two.gradients))
    first = _written(one.gradients)
    if type(rule) is GradientSum:
        two = network.differentiate(replayed, _mean_of(replayed))
    else:
        weights = _fixed_weights(rule, network, len(replayed))
        two = network.differentiate(replayed, _coefficients(weights, incoming=0))
        first = {name: weights[0] * gradient for name, gradient in first.items()}
    return _all_of([one, two], _added(first, _written(two.gradients)))


def _all_of(passes: list[Pass], gradients: Gradients | Measurement) -> Found:
    losses, parts = torch.cat([found.losses for found in passes]), [f.outputs for f in passes]
    outputs = None if any(part is None for part in parts) else reduce(nested.concat, parts)
    return Found(losses, outputs, gradients)


def _joint(network: Network, incoming: Batch, replayed: Batch, rule: Rule) -> Found:
    count = len(incoming)
    both = incoming.followed_by(replayed)
    if rule.needs_gram:
        found = network.measure(both, incoming=count)
    elif type(rule) is GradientSum:  # coefficients that are kept: the cheapest step of all
        found = network.differentiate(both, partial(mean_weights, (count, len(replayed))))
    else:
        weights = _fixed_weights(rule, network, len(replayed))
        found = network.differentiate(both, _coefficients(weights, incoming=count))
    return Found(found.losses, found.outputs, found.gradients)


def _fixed_weights(rule: Rule, network: Network, replayed: int) -> Float[Tensor, " gradients"]:
    """Ask a rule that needs no inner products for its weights."""
    like = next(iter(network.parameters.values()))
    meaningless = like.new_zeros(1 + replayed, 1 + replayed)
    return checked_weights(rule(meaningless), meaningless, rule)


def _coefficients(weights: Float[Tensor, " gradients"], *, incoming: int) -> Numbers:
    """Turn weights of gradients into those of losses; g is the mean over incoming examples."""
    of_losses = torch.cat((weights[:1].expand(incoming) / max(incoming, 1), weights[1:]))
    return lambda dtype, device: of_losses.to(device, dtype)


def _mean_of(batch: Batch) -> Numbers:
    return partial(mean_weights, (len(batch),))


def _parts(replayed: Batch, rule: Rule) -> list[Batch]:
    groups = _groups_of(rule)
    assert groups is not None  # `check_passes` saw them
    number = min(groups, len(replayed))
    return [
        replayed.take(part).training() for part in torch.arange(len(replayed)).tensor_split(number)
    ]


def _written(gradients: Gradients | Measurement) -> Gradients:
    if not isinstance(gradients, Measurement):
        return gradients
    with torch.no_grad():
        return gradients.combine(torch.ones_like(gradients.scales))


def _added(first: Gradients, second: Gradients) -> Gradients:
    both = [name for name in first if name in second]
    if not both:
        return {**second, **first}
    sums = torch._foreach_add([first[name] for name in both], [second[name] for name in both])
    return {**second, **first, **dict(zip(both, sums, strict=True))}


def _stacked(gradients: list[Gradients]) -> Measurement:
    """Make a measurement of gradients that are written out."""
    names = dict.fromkeys(name for found in gradients for name in found)
    return Measurement.of_rows(
        {
            name: torch.stack(
                [
                    found.get(name, torch.zeros_like(next(f[name] for f in gradients if name in f)))
                    for found in gradients
                ]
            )
            for name in names
        },
        Groups((1,) * len(gradients)),
    )


def check_weighs(weighs: str) -> None:
    """Refuse weights on something that does not exist."""
    if weighs not in get_args(Weighs):
        choices = " or ".join(map(repr, get_args(Weighs)))
        raise ValueError(f"`weighs` is {weighs!r}; choose {choices}.")


def check_passes(passes: str, rule: Rule) -> None:
    """Refuse a way through the network that does not exist or does not fit the rule."""
    if passes not in get_args(Passes):
        choices = ", ".join(map(repr, get_args(Passes)))
        raise ValueError(f"`passes` is {passes!r}; choose one of {choices}.")
    if passes == "grouped" and _groups_of(rule) is None:
        raise ValueError(
            "`passes` is 'grouped', but the rule has no groups; use "
            "PrincipalDirection(groups=...), or passes 'joint' or 'separate'."
        )


def _groups_of(rule: Rule) -> int | None:
    """In how many groups a rule wants replayed examples; most know of none."""
    groups: object = getattr(rule, "groups", None)
    if groups is None or (type(groups) is int and groups > 0):
        return groups
    raise ValueError(
        f"`groups` of rule {type(rule).__name__} is {groups!r}; make it a whole number from 1, or "
        "None."
    )
