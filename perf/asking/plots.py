"""Four plots. Colours are Okabe and Ito's, told apart also by marker and stroke."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from perf.asking.answer import Answer, Ratio

BLUE, VERMILLION, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#777777"
_FLOOR: Final = "bare ER, one pass"
_CURVES: Final = {  # colour, marker, stroke
    ("ER", "just full"): (BLUE, "o", "-"),
    ("ER", "10 x capacity seen"): (BLUE, "s", "--"),
    ("ER-C", "just full"): (VERMILLION, "^", "-"),
    ("ER-C", "10 x capacity seen"): (VERMILLION, "v", "--"),
}


def plot_targets(ratios: Sequence[Ratio], path: Path) -> Path | None:
    """Draw each ratio over its target; a ratio to reach is turned round, so left is good."""
    shown = [ratio for ratio in ratios if ratio.target is not None]
    if not shown:
        return None
    figure = Figure(figsize=(9, 1.2 + 0.3 * len(shown)), layout="constrained")
    axes = figure.add_subplot()
    for place, ratio in enumerate(shown):
        low, middle, high = sorted(_over_target(ratio))
        colour, marker = (BLUE, "o") if ratio.is_met else (VERMILLION, "D")
        axes.plot([low, high], [place, place], color=colour, linewidth=2, solid_capstyle="butt")
        axes.plot(middle, place, marker, color=colour, markersize=6)
        sign = "≥" if ratio.at_least else "≤"
        words = f"{ratio.median:.2f}  ({sign} {ratio.target:g})"
        _label(axes, words, (high, place))
    axes.axvline(1, color=GREY, linewidth=1)
    axes.set_yticks(
        range(len(shown)),
        [f"{r.what} ÷ {r.than}  [{r.shape}]" for r in shown],
        fontsize=8,
    )
    axes.set_ylim(len(shown) - 0.5, -0.5)
    _log_axis(axes, "x", [_over_target(ratio) for ratio in shown], room=1.9)
    axes.set_xlabel(
        "measured ÷ target: circles, left of the line, meet it; diamonds miss it", fontsize=9
    )
    _frame(axes)
    return _saved(figure, path)


def _over_target(ratio: Ratio) -> tuple[float, float, float]:
    assert ratio.target is not None
    values = (ratio.low, ratio.median, ratio.high)
    if ratio.at_least:
        return tuple(ratio.target / value for value in values)  # type: ignore[return-value]
    return tuple(value / ratio.target for value in values)  # type: ignore[return-value]


def plot_steps(answers: Mapping[str, Answer], path: Path) -> Path | None:
    """Draw every contestant's step over the bare loop's, a panel a model."""
    shown = {name: answer for name, answer in answers.items() if name.startswith("step-cost")}
    if not shown:
        return None
    figure = Figure(figsize=(2.2 + 2.3 * len(shown), 4), layout="constrained")
    panels = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    for axes, answer in zip(panels, shown.values(), strict=True):
        names = list(answer.times)
        values = [_over(answer.times[name], answer.times[_FLOOR]) for name in names]
        for place, (name, value) in enumerate(zip(names, values, strict=True)):
            is_bare = name.startswith("bare")
            colour, marker = (GREY, "s") if is_bare else (BLUE, "o")
            axes.plot([1, value], [place, place], color=colour, linewidth=1)
            axes.plot(value, place, marker, color=colour, markersize=6)
            _label(axes, f"{value:.2f}", (max(value, 1), place))
        axes.axvline(1, color=GREY, linewidth=1)
        axes.set_yticks(range(len(names)), names, fontsize=8)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_title(answer.title.removeprefix("A step of "), fontsize=10)
        _log_axis(axes, "x", [values], room=2.2)
        _frame(axes)
    figure.supxlabel("cost of a step ÷ bare ER in one pass (squares: bare, circles: ours)", size=9)
    return _saved(figure, path)


def plot_capacity(answer: Answer | None, path: Path) -> Path | None:
    """Draw the cost of a step against the number of slots."""
    if answer is None or not answer.points:
        return None
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    for (method, state), (colour, marker, stroke) in _CURVES.items():
        points = [p for p in answer.points if (p["method"], p["state"]) == (method, state)]
        slots = [point["slots"] for point in points]
        axes.plot(
            slots,
            [point["median"] for point in points],
            color=colour,
            marker=marker,
            linestyle=stroke,
            label=f"{method}, {state}",
        )
        axes.fill_between(
            slots,
            [point["low"] for point in points],
            [point["high"] for point in points],
            color=colour,
            alpha=0.15,
            linewidth=0,
        )
    axes.axhline(1.2, color=GREY, linewidth=1, linestyle=":", label="target of ER: 1.2")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    _log_axis(axes, "y", [[p["low"] for p in answer.points], [p["high"] for p in answer.points]])
    axes.set_xlabel("slots")
    axes.set_ylabel("cost of a step ÷ ER's with 500 slots")
    axes.legend(fontsize=8, frameon=False)
    _frame(axes)
    return _saved(figure, path)


def plot_growth(answer: Answer | None, path: Path) -> Path | None:
    """Draw each method's step over ER's, a panel per quantity that grows."""
    if answer is None or not answer.points:
        return None
    kinds = list(dict.fromkeys(point["grows"] for point in answer.points))
    methods = list(dict.fromkeys(point["method"] for point in answer.points))
    figure = Figure(figsize=(1 + 2.8 * len(kinds), 3.4), layout="constrained")
    panels = figure.subplots(1, len(kinds), sharey=True, squeeze=False)[0]
    styles = ((BLUE, "o", "-"), (VERMILLION, "^", "--"), (GREEN, "s", ":"))
    for axes, kind in zip(panels, kinds, strict=True):
        for method, (colour, marker, stroke) in zip(methods, styles, strict=False):
            points = [p for p in answer.points if (p["grows"], p["method"]) == (kind, method)]
            sizes = [point["size"] for point in points]
            style: Any = {"color": colour, "marker": marker, "linestyle": stroke}
            axes.plot(sizes, [point["median"] for point in points], **style, label=method)
            low, high = ([point[end] for point in points] for end in ("low", "high"))
            axes.fill_between(sizes, low, high, color=colour, alpha=0.15, linewidth=0)
        axes.axhline(1, color=GREY, linewidth=1)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.set_xlabel(kind, fontsize=9)
        _frame(axes)
    panels[0].set_ylabel("cost of a step ÷ ER's", fontsize=9)
    panels[0].legend(fontsize=8, frameon=False)
    return _saved(figure, path)


def _over(values: Sequence[float], floor: Sequence[float]) -> float:
    return median(a / b for a, b in zip(values, floor, strict=True))


def _log_axis(axes: Axes, which: str, values: Sequence[Sequence[float]], room: float = 1.1) -> None:
    """Use a logarithmic scale with plain numbers at 1, 2 and 5 times powers of ten."""
    low = min(1.0, *(value for row in values for value in row)) / 1.15
    high = max(1.0, *(value for row in values for value in row)) * room
    ticks = [m * 10.0**e for e in range(-3, 4) for m in (1, 2, 5) if low <= m * 10.0**e <= high]
    axis: Any = getattr(axes, f"{which}axis")
    getattr(axes, f"set_{which}scale")("log")
    getattr(axes, f"set_{which}lim")(low, high)
    axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks], fontsize=8)
    axis.set_minor_locator(NullLocator())


def _label(axes: Axes, words: str, at: tuple[float, float]) -> None:
    """Write beside a point, on white, so that no line crosses the words."""
    white = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
    axes.annotate(
        words, at, (6, 0), textcoords="offset points", va="center", fontsize=8, bbox=white
    )


def _frame(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="both", color="#e5e5e5", linewidth=0.6)
    axes.set_axisbelow(True)


def _saved(figure: Figure, path: Path) -> Path:
    FigureCanvasAgg(figure)
    # No date and no version in the file: the same numbers give the same bytes.
    figure.savefig(path, dpi=120, metadata={"Software": None})
    return path
