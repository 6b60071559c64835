import itertools
import math
import tomllib

import pytest

from recollect.experiments.records.record import Record
from recollect.experiments.specs.configs import config_root
from recollect.methods import METHODS
from recollect.reports.cells import group_cells
from recollect.reports.colours import dashes, dashes_of, method_colours, ramp
from recollect.reports.names import benchmark_order, method_order, method_title

# Machado, Oliveira and Fernandes 2009: what eyes without one kind of cone see, linear RGB.
BLIND = {
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413),
               (-0.011820, 0.042940, 0.968881)),
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216),
               (-0.003882, -0.048116, 1.051998)),
}  # fmt: skip


def linear(colour: str) -> list[float]:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]


def lab(rgb: list[float]) -> list[float]:
    """OKLab, in which equal distances look about equal."""
    red, green, blue = (max(0.0, channel) for channel in rgb)
    cones = [
        0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue,
        0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue,
        0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue,
    ]
    long, middle, short = (cone ** (1 / 3) for cone in cones)
    return [
        0.2104542553 * long + 0.7936177850 * middle - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * middle + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * middle - 0.8086757660 * short,
    ]


def seen_by(colour: str, eyes: str) -> list[float]:
    rgb = linear(colour)
    if eyes in BLIND:
        rgb = [sum(f * c for f, c in zip(row, rgb, strict=True)) for row in BLIND[eyes]]
    return lab(rgb)


@pytest.fixture(scope="module")
def configured() -> list[str]:
    """Every method of a spec that comes with the package for the paper's tables."""
    specs = (tomllib.loads(path.read_text()) for path in (config_root() / "paper").glob("*.toml"))
    return sorted({method for spec in specs for method in spec["methods"]}, key=method_order)


@pytest.mark.parametrize("eyes", ["all cones", "deutan", "protan"])
@pytest.mark.parametrize("ground", ["light", "dark"])
def test_the_papers_methods_are_told_apart_by_all_eyes(eyes: str, ground: str) -> None:
    papers = ("van", "er", "er-p", "er-c", "er-pc", "er-mir", "er-pc-mir", "gss")
    colours = method_colours(papers)
    for a, b in itertools.combinations(papers, 2):
        first, second = (seen_by(getattr(colours[m], ground), eyes) for m in (a, b))
        # 0.02 is about what one just notices between patches side by side.
        assert math.dist(first, second) > 0.1, (a, b)


def test_every_method_of_ours_has_a_name_and_a_place() -> None:
    unknown = method_order("unheard-of")
    assert all(method_order(method) < unknown for method in METHODS)
    assert all(method_title(method) == method.upper() for method in METHODS)


def test_a_colour_does_not_depend_on_who_else_is_shown() -> None:
    assert method_colours(["er"])["er"] == method_colours(METHODS)["er"]


def test_every_method_of_the_papers_configs_has_a_look_of_its_own(configured: list[str]) -> None:
    assert {"er-p-cb", "er-pc-equal", "er-p-converged", "er-c-replay"} <= set(configured)
    colours = method_colours(configured)
    for a, b in itertools.combinations(configured, 2):
        for ground in ("light", "dark"):
            first, second = (seen_by(getattr(colours[m], ground), "all cones") for m in (a, b))
            assert math.dist(first, second) > 0.07, (a, b, ground)
    strokes = dashes(configured)
    for method, stroke in zip(configured, strokes, strict=True):
        assert method_colours([method, "mine", "er"])[method] == colours[method]
        assert dashes(["er", method] if method != "er" else [method])[-1] == stroke


def test_variants_that_only_we_run_are_not_full_lines() -> None:
    """Twenty lines cannot be told apart by colour alone: the paper's are full, ours are not."""
    papers = ["van", "er", "er-p", "er-c", "er-pc", "er-mir", "er-pc-mir", "gss"]
    assert set(dashes(papers)) == {""}
    assert "" not in dashes(["er-c-equal", "er-pc-equal", "er-pc-mir-equal", "er-p-converged"])


def test_methods_we_do_not_know_never_share_colour_and_stroke() -> None:
    own = [f"mine-{index}" for index in range(9)]
    colours, strokes = method_colours(own), dashes(own)
    assert len({(colours[m], stroke) for m, stroke in zip(own, strokes, strict=True)}) == 9


def test_methods_we_do_not_know_get_spare_colours() -> None:
    colours = method_colours(["mine", "yours", "er"])
    assert len(set(colours.values())) == 3


def test_benchmarks_come_in_the_papers_order() -> None:
    names = ["zoo", "mini-imagenet-split", "mnist-permuted", "mnist-split", "cifar10-split"]
    assert sorted(names, key=benchmark_order) == [
        "mnist-split",
        "mnist-permuted",
        "cifar10-split",
        "mini-imagenet-split",
        "zoo",
    ]


def test_the_ramp_only_gets_lighter() -> None:
    lights = [lab(linear(ramp(i / 20)))[0] for i in range(21)]
    assert lights == sorted(lights)


def test_cells_of_one_colour_have_different_strokes(runs: list[Record]) -> None:
    permuted = [cell for cell in group_cells(runs) if cell.benchmark == "mnist-permuted"]
    strokes = dashes_of(permuted)
    mir = [strokes[cell.name] for cell in permuted if cell.method == "er-mir"]
    assert mir == ["", "7 4"]
