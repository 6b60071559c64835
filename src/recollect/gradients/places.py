"""Where parameters are measured and how examples lie there: what the first pass finds out."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from recollect.gradients.calls import Call, Unit, no_place_for_examples
from recollect.gradients.direct import has_formula
from recollect.gradients.layout import possible_layouts, reaches_only
from recollect.gradients.paths import ancestor_called, name_inside


def starting_places(
    owned: Mapping[str, Mapping[str, str]], called: set[str], wanted: set[str]
) -> dict[str, list[str]]:
    """Say for every wanted parameter where it may be measured: at its owners that were called.

    Args:
        owned: Parameters by owner: local name -> name in the model.
        called: Modules that the pass called.
        wanted: Parameters that have a gradient.
    """
    places: dict[str, list[str]] = {}
    for path, own in owned.items():
        for name in own.values():
            if name in wanted:
                # A parametrization works on weights, not on examples: its owner does.
                place = path.partition("parametrizations")[0].rstrip(".")
                if place not in called:
                    place = ancestor_called(place, called, name)
                places.setdefault(name, []).append(place)
    return places


def units_at(
    places: Mapping[str, Sequence[str]],
    owned: Mapping[str, Mapping[str, str]],
    modules: Mapping[str, nn.Module],
) -> dict[str, list[Unit]]:
    """Gather the parameters of each place, those with a formula apart from the others."""
    members: dict[tuple[str, bool], dict[str, str]] = {}
    for name, paths in places.items():
        for path in dict.fromkeys(paths):
            own = {full: local for local, full in owned.get(path, {}).items()}
            direct = name in own and has_formula(modules[path])
            local = own[name] if name in own else name_inside(name, path)
            members.setdefault((path, direct), {})[local] = name
    units: dict[str, list[Unit]] = {}
    for (path, direct), parameters in members.items():
        units.setdefault(path, []).append(Unit(path, parameters, direct))
    return units


def find_layouts(calls: Sequence[Call], losses: Tensor, *, examples_mix: bool) -> list[Call]:
    """Find where examples stand in every call's output; return the calls where they do not.

    Where examples do not mix, the loss of the first must reach its own part of the output alone.
    It reaches more if they do mix, but also if all examples share the output, as they share a row
    of positions: then it reaches its own part alone further out. The model itself has no further
    out, so it is refused.
    """
    without: list[Call] = []
    count = len(losses)
    apart = count > 1 and not examples_mix
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
        if layouts:
            call.layout = layouts[0]
        elif call.path:
            without.append(call)
        else:
            raise no_place_for_examples(call, count)
    return without


def move_out(places: dict[str, list[str]], paths: set[str], called: set[str]) -> None:
    """Let parameters measured at `paths` be measured one level further out instead."""
    for name, at in places.items():
        places[name] = [
            ancestor_called(path, called, name) if path in paths else path for path in at
        ]


def agree(found: Tensor | None, expected: Tensor, rounding: float) -> bool:
    """Whether a gradient that was put together from shares is autograd's own.

    Args:
        found: It, None if no share has one.
        expected: Autograd's.
        rounding: `eps` of the coarsest numbers that took part, as under autocast.
    """
    if found is None:
        return not bool(expected.any())
    if not bool(torch.isfinite(expected).all()):
        return True  # the learner refuses non-finite gradients with its own message
    tolerance = max(10 * torch.finfo(expected.dtype).eps ** 0.5, 8 * rounding)
    distance = torch.linalg.vector_norm(found - expected)
    return bool(distance <= tolerance * (torch.linalg.vector_norm(expected) + tolerance))
