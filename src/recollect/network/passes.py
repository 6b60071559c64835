"""Find g and the g_i: by one joint pass, by two, or by one per group (paper note P12).

Which passes an update makes follows from what retrieval left behind: `planned_passes` says which,
`find_gradients` makes them.
"""

from dataclasses import dataclass
from functools import lru_cache, partial, reduce
from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from recollect import nested
from recollect.choices import Passes, Weighs
from recollect.gradients import Groups, Measurement
from recollect.network.batch import Batch
from recollect.network.network import Network
from recollect.network.ways.contract import Gradients, Numbers, Pass
from recollect.rules import Rule

#: A pass over the incoming batch, over the replayed one, over both at once, or one over each group
#: of replayed examples.
Part = Literal["incoming", "replayed", "both", "groups"]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a rule asks of the passes.

    Attributes:
        weights: Of g and g_1..g_K if they are fixed; None if gradients must be measured.
        groups: How many groups of replayed examples pass apart under `passes="grouped"`.
    """

    weights: tuple[float, ...] | None
    groups: int | None = None

    @property
    def measures(self) -> bool:
        """Whether the gradients must be measured one by one."""
        return self.weights is None


@dataclass(slots=True)
class Found:
    """Losses and outputs of incoming, then replayed examples; gradients summed or one by one."""

    losses: Float[Tensor, " examples"]
    outputs: object | None
    gradients: Gradients | Measurement


def planned_passes(passes: Passes, *, replays: bool, is_incoming_passed: bool) -> tuple[Part, ...]:
    """Say which passes are still to be made.

    Args:
        passes: How the learner sends examples through the network.
        replays: Whether there is anything to replay.
        is_incoming_passed: Whether retrieval has made the incoming pass, for its virtual step.

    Example:
        >>> planned_passes("joint", replays=True, is_incoming_passed=False)
        ('both',)
        >>> planned_passes("joint", replays=True, is_incoming_passed=True)
        ('replayed',)
    """
    if passes == "joint" and replays and not is_incoming_passed:
        return ("both",)
    first: tuple[Part, ...] = () if is_incoming_passed else ("incoming",)
    if not replays:
        return first
    return (*first, "groups" if passes == "grouped" else "replayed")


def pass_incoming(network: Network, incoming: Batch, *, measures: bool) -> Pass:
    """Pass the incoming batch alone: its mean gradient is g."""
    incoming = incoming.training()
    if measures:
        return network.measure(incoming, incoming=len(incoming))
    return network.differentiate(incoming, mean_of(incoming))


def find_gradients(
    network: Network,
    plan: tuple[Part, ...],
    asked: Asked,
    incoming: Batch,
    replayed: Batch | None,
    passed: Pass | None,
) -> Found:
    """Make the planned passes and find the gradients that the rule works on.

    Args:
        network: The model.
        plan: From `planned_passes`.
        asked: What the rule needs.
        incoming: The batch that arrived.
        replayed: The batch from memory, None if there is none.
        passed: The incoming pass, if retrieval made it.
    """
    if "both" in plan:
        assert replayed is not None
        return _joint(network, incoming.training(), replayed.training(), asked)
    if passed is None:
        measures = asked.measures and replayed is not None and "groups" not in plan
        passed = pass_incoming(network, incoming, measures=measures)
    if replayed is None:  # w = g
        return Found(passed.losses, passed.outputs, summed(passed.gradients))
    if "groups" in plan:
        return _by_group(network, passed, replayed.training(), asked)
    return _separate(network, passed, replayed.training(), asked)


def _joint(network: Network, incoming: Batch, replayed: Batch, asked: Asked) -> Found:
    count, both = len(incoming), incoming.followed_by(replayed)
    if asked.weights is None:
        found = network.measure(both, incoming=count)
    else:
        found = network.differentiate(both, partial(_coefficients, asked.weights, count))
    return Found(found.losses, found.outputs, found.gradients)


def _separate(network: Network, one: Pass, replayed: Batch, asked: Asked) -> Found:
    if asked.weights is None:
        two = network.measure(replayed, incoming=0)
        assert isinstance(one.gradients, Measurement)
        assert isinstance(two.gradients, Measurement)
        return _all_of([one, two], one.gradients.join(two.gradients))
    two = network.differentiate(replayed, partial(_coefficients, asked.weights, 0))
    first, weight = summed(one.gradients), asked.weights[0]
    if weight != 1:
        first = {name: weight * gradient for name, gradient in first.items()}
    return _all_of([one, two], _added(first, summed(two.gradients)))


def _by_group(network: Network, one: Pass, replayed: Batch, asked: Asked) -> Found:
    assert asked.groups is not None  # `check_passes` saw them
    number = min(asked.groups, len(replayed))
    parts = [
        replayed.take(part).training() for part in torch.arange(len(replayed)).tensor_split(number)
    ]
    others = [network.differentiate(part, mean_of(part)) for part in parts]
    found = [summed(part.gradients) for part in (one, *others)]
    gradients = _stacked(found, network.measured)
    return _all_of([one, *others], gradients)


def _all_of(passes: list[Pass], gradients: Gradients | Measurement) -> Found:
    losses, parts = torch.cat([found.losses for found in passes]), [f.outputs for f in passes]
    outputs = None if any(part is None for part in parts) else reduce(nested.concat, parts)
    return Found(losses, outputs, gradients)


@lru_cache(maxsize=64)
def _coefficients(
    weights: tuple[float, ...], incoming: int, dtype: torch.dtype, device: torch.device
) -> Float[Tensor, " examples"]:
    """Turn weights of gradients into those of losses; g is the mean over incoming examples."""
    of_incoming = [weights[0] / incoming] * incoming if incoming else []
    return torch.tensor([*of_incoming, *weights[1:]], dtype=dtype, device=device)


def mean_of(batch: Batch) -> Numbers:
    """Return coefficients that make the mean of a batch's losses."""
    count = len(batch)
    return partial(_coefficients, (1.0, *(1 / count,) * count), 0)


def summed(gradients: Gradients | Measurement) -> Gradients:
    """Return the sum of what was measured, or what was summed already."""
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


def _stacked(gradients: list[Gradients], measured: frozenset[str] | None) -> Measurement:
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
        measured,
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
    groups: object = rule.groups
    if groups is not None and (type(groups) is not int or groups < 1):
        raise ValueError(
            f"`groups` of rule {type(rule).__name__} is {groups!r}; make it a whole number from 1, "
            "or None."
        )
    if passes == "grouped" and groups is None:
        raise ValueError(
            "`passes` is 'grouped', but the rule has no groups; use "
            "PrincipalDirection(groups=...), or passes 'joint' or 'separate'."
        )
