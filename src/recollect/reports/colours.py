"""Colours and strokes: the same method looks the same in every chart, page and figure.

That is true of the methods that come with the library and its specs. A method of the user's own
takes what is left over, by its place among others like it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from recollect.reports.cells import CellRuns
from recollect.reports.names import method_order


class Colour(NamedTuple):
    """A colour on white and its counterpart on black."""

    light: str
    dark: str


# By search over lightness, chroma and nearby hues: the eight methods of the paper are as far apart
# as we could get them in OKLab for full colour vision, deuteranopia and protanopia at once, with
# 3 to 1 against the page (2.4 to 1 for the lines of ER-P and ER-C). The others, from ER-P-CB on and
# the spare ones, were then put as far from all before them as there was room. A test keeps it so.
_METHODS: Final[Mapping[str, Colour]] = {
    "van": Colour("#5d5d5d", "#bcbcbc"),
    "er": Colour("#476dc9", "#3768de"),
    "er-p": Colour("#2faafb", "#05aafe"),
    "er-c": Colour("#d79d0f", "#eb891c"),
    "er-pc": Colour("#682500", "#a35e21"),
    "er-mir": Colour("#1da590", "#a8ffc8"),
    "er-p-mir": Colour("#9a6ae0", "#b79bff"),
    "er-pc-mir": Colour("#6c0160", "#c372a1"),
    "gss": Colour("#8a7c01", "#fece02"),
    "a-gem": Colour("#00595f", "#2e9aa0"),
    "er-cb": Colour("#e0679b", "#ff9ec4"),
    "er-w": Colour("#5f7d8c", "#84c0ec"),
    "er-w-mir": Colour("#4b6b3a", "#a3c78e"),
    "er-clip": Colour("#c0392b", "#ff8a7d"),
    "er-clip-mir": Colour("#8c1c13", "#e0665c"),
    "er-p-cb": Colour("#6c24b4", "#b460e4"),
    "er-p-converged": Colour("#003078", "#486c90"),
    "er-c-equal": Colour("#00a818", "#00a818"),
    "er-c-replay": Colour("#b4846c", "#fccca8"),
    "er-pc-equal": Colour("#fc5454", "#cc1854"),
    "er-pc-mir-equal": Colour("#b42490", "#a8309c"),
}
_SPARE: Final = (
    Colour("#004800", "#007848"),
    Colour("#8490c0", "#6c84cc"),
    Colour("#544884", "#d8ccfc"),
    Colour("#902460", "#90546c"),
)
# Dark violet to yellow (viridis): in order also to the colour-blind, and in grey.
_RAMP: Final = (
    (68, 1, 84),
    (72, 40, 120),
    (62, 73, 137),
    (49, 104, 142),
    (38, 130, 142),
    (31, 158, 137),
    (53, 183, 121),
    (110, 206, 88),
    (181, 222, 43),
    (253, 231, 37),
)
_DASHES: Final = ("", "7 4", "2 3", "9 3 2 3")
# Which stroke a method begins with, where not with a full one: twenty colours are too many to be
# told apart by themselves.
_FIRST_DASH: Final[Mapping[str, int]] = {
    "er-p-cb": 1,
    "er-c-equal": 1,
    "er-pc-equal": 1,
    "er-pc-mir-equal": 1,
    "er-p-converged": 2,
    "er-w": 2,
    "er-w-mir": 2,
    "er-clip": 3,
    "er-clip-mir": 3,
    "er-c-replay": 3,
}


def method_colours(methods: Iterable[str]) -> dict[str, Colour]:
    """Return a colour for each method: its own if it is one of ours, else a spare one."""
    methods = sorted(set(methods), key=method_order)
    places = _places_of_unknown(methods)
    return {
        method: _SPARE[places[method] % len(_SPARE)] if method in places else _METHODS[method]
        for method in methods
    }


def ramp(share: float) -> str:
    """Return a colour between dark violet (0) and yellow (1), also in order to the colour-blind.

    Example:
        >>> ramp(0.0), ramp(1.0)
        ('#440154', '#fde725')
    """
    place = min(max(share, 0.0), 1.0) * (len(_RAMP) - 1)
    below = min(int(place), len(_RAMP) - 2)
    part = place - below
    mixed = (
        round(low + part * (high - low))
        for low, high in zip(_RAMP[below], _RAMP[below + 1], strict=True)
    )
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def dashes_of(cells: Sequence[CellRuns]) -> dict[str, str]:
    """Give cells of the same method, which share a colour, different strokes, by name."""
    return dict(zip([c.name for c in cells], dashes([c.method for c in cells]), strict=True))


def dashes(methods: Iterable[str]) -> list[str]:
    """Return a stroke for each: its own for the first of a method, another for the next.

    Example:
        >>> dashes(["er", "er-mir", "er"])
        ['', '', '7 4']
    """
    methods = list(methods)
    # Methods that we do not know change their stroke when there are no more spare colours.
    first = {m: place // len(_SPARE) for m, place in _places_of_unknown(methods).items()}
    seen: dict[str, int] = {}
    found = []
    for method in methods:
        seen[method] = seen.get(method, _FIRST_DASH.get(method, first.get(method, 0)) - 1) + 1
        found.append(_DASHES[seen[method] % len(_DASHES)])
    return found


def _places_of_unknown(methods: Iterable[str]) -> dict[str, int]:
    unknown = sorted({method for method in methods if method not in _METHODS})
    return {method: place for place, method in enumerate(unknown)}


def matplotlib_stroke(dash: str) -> str | tuple[int, tuple[float, ...]]:
    """Return a stroke as matplotlib wants it."""
    return (0, tuple(float(part) / 2 for part in dash.split())) if dash else "-"
