"""Find g and the g_i: by one joint pass, by two, or by one a group (paper note P12)."""

from dataclasses import dataclass
from functools import reduce
from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from recollect import nested
from recollect.gradients import Groups, Measurement, mixes_examples
from recollect.learner.batch import Batch
from recollect.learner.network import Gradients, Network, Pass, Weighs, leaving_no_trace
from recollect.rules import PrincipalDirection, Rule

Passes = Literal["joint", "separate", "grouped"]


@dataclass(slots=True)
class Found:
    """Losses and outputs of incoming, then replayed examples; gradients summed or one by one."""

    losses: Float[Tensor, " examples"]
    outputs: object
    gradients: Gradients | Measurement


class IncomingPass:
    """The pass over the incoming batch alone, run at most once and only if somebody needs it."""

    def __init__(
        self, network: Network, incoming: Batch, *, passes: Passes, measured: bool
    ) -> None:
        self._network, self._incoming = network, incoming
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
            self._trained = self._network.differentiate(self._incoming, (len(self._incoming),))
        found = self._trained
        return Found(found.losses, found.outputs, _written(found.gradients))

    def gradient(self) -> Gradients:
        """Return g, for a virtual step."""
        if self.passes == "joint" and mixes_examples(self._network.model):
            # The training pass will be joint, with other statistics; this one only looks.
            if self._looked is None:
                with leaving_no_trace(self._network.model):
                    self._looked = self._network.differentiate(
                        self._incoming, (len(self._incoming),)
                    )
            return _written(self._looked.gradients)
        # Without mixing the joint pass has the same gradients: this pass can be its first half.
        return _written(self.run().gradients)

    def _pass(self) -> Pass:
        if self._measured:
            return self._network.measure(self._incoming, incoming=len(self._incoming))
        return self._network.differentiate(self._incoming, (len(self._incoming),))


def find_gradients(
    network: Network, incoming: Batch, replayed: Batch, alone: IncomingPass, rule: Rule
) -> Found:
    """Pass both batches through the network and find the gradients the rule works on."""
    if alone.passes == "joint" and not alone.was_run:
        return _joint(network, incoming, replayed, measured=rule.needs_gram)
    one = alone.run()
    if alone.passes == "grouped":
        others = [network.differentiate(part, (len(part),)) for part in _parts(replayed, rule)]
        gradients = _stacked([_written(found.gradients) for found in (one, *others)])
        return _all_of([one, *others], gradients)
    if rule.needs_gram:
        two = network.measure(replayed, incoming=0)
        assert isinstance(one.gradients, Measurement)
        assert isinstance(two.gradients, Measurement)
        return _all_of([one, two], one.gradients.join(two.gradients))
    two = network.differentiate(replayed, (len(replayed),))
    return _all_of([one, two], _added(_written(one.gradients), _written(two.gradients)))


def _all_of(passes: list[Pass], gradients: Gradients | Measurement) -> Found:
    losses = torch.cat([found.losses for found in passes])
    return Found(losses, reduce(nested.concat, [found.outputs for found in passes]), gradients)


def _joint(network: Network, incoming: Batch, replayed: Batch, *, measured: bool) -> Found:
    count = len(incoming)
    both = incoming.followed_by(replayed)
    if measured:
        found = network.measure(both, incoming=count)
    else:
        found = network.differentiate(both, (count, len(replayed)))
    return Found(found.losses, found.outputs, found.gradients)


def _parts(replayed: Batch, rule: Rule) -> list[Batch]:
    assert isinstance(rule, PrincipalDirection)
    assert rule.groups is not None
    number = min(rule.groups, len(replayed))
    return [replayed.take(part) for part in torch.arange(len(replayed)).tensor_split(number)]


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
    if passes == "grouped" and getattr(rule, "groups", None) is None:
        raise ValueError(
            "`passes` is 'grouped', but the rule has no groups; use "
            "PrincipalDirection(groups=...), or passes 'joint' or 'separate'."
        )
