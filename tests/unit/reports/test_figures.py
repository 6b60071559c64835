import dataclasses
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

from recollect.errors import RecollectError
from recollect.experiments.records.record import Record
from recollect.paper.figures import draw_comparison
from recollect.paper.tables import compare, exhibit_named
from recollect.reports.figures import KINDS, write_figure


@pytest.fixture
def few(runs: list[Record]) -> list[Record]:
    return [r for r in runs if r.seed < 2 and r.method in ("van", "er", "er-mir")]


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_drawn(few: list[Record], kind: str, tmp_path: Path) -> None:
    with Image.open(write_figure(few, kind, tmp_path / "figure.png")) as picture:
        assert min(picture.size) > 200
        assert len(picture.convert("RGB").getcolors(1 << 20) or ()) > 20


@pytest.mark.parametrize(("ending", "start"), [("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_vector_formats_are_the_same_file_every_time(
    few: list[Record], ending: str, start: bytes, tmp_path: Path
) -> None:
    first = write_figure(few, "bars", tmp_path / f"a.{ending}").read_bytes()
    second = write_figure(few, "bars", tmp_path / f"b.{ending}").read_bytes()
    assert first.startswith(start)
    assert first == second


def test_the_papers_figure_is_drawn_with_both_sides(few: list[Record], tmp_path: Path) -> None:
    path = draw_comparison(compare(exhibit_named("figure1"), few), tmp_path / "figure1.svg")
    text = path.read_text()
    assert "ER (n=2)" in text
    assert "GSS (n=0)" in text
    assert "n = 10" in text


def test_the_title_of_curves_stays_clear_of_a_long_legend(
    few: list[Record], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty methods: the legend is taller than the panel used to be, the title wider."""
    like = [r for r in few if (r.benchmark, r.method) == ("mnist-split", "er")]
    many = [
        dataclasses.replace(record, method=f"a-method-of-mine-{index}", spec_hash=str(index))
        for index in range(20)
        for record in like
    ]
    drawn: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *_, **__: drawn.append(self))
    write_figure(many, "curves", tmp_path / "curves.png")
    (figure,) = drawn
    figure.draw_without_rendering()
    (panel,) = figure.axes
    legend = panel.get_legend()
    assert legend is not None
    (title,) = (text for text in panel.findobj(Text) if "MNIST-S" in text.get_text())
    assert not title.get_window_extent().overlaps(legend.get_window_extent())
    assert panel.get_window_extent().height >= 0.8 * legend.get_window_extent().height


def test_what_cannot_be_drawn_is_said(few: list[Record], tmp_path: Path) -> None:
    with pytest.raises(RecollectError, match=r"ends in '\.gif'; end it in \.png, \.svg, \.pdf"):
        write_figure(few, "bars", tmp_path / "figure.gif")
    with pytest.raises(RecollectError, match="`kind` is 'pie'; choose one of bars"):
        write_figure(few, "pie", tmp_path / "figure.png")
    with pytest.raises(RecollectError, match="0 finished runs"):
        write_figure([], "bars", tmp_path / "figure.png")
    van = [record for record in few if record.method == "van"]
    with pytest.raises(RecollectError, match="no run has a memory"):
        write_figure(van, "memory", tmp_path / "figure.png")
    with pytest.raises(RecollectError, match="is not a folder"):
        write_figure(few, "bars", tmp_path / "nowhere" / "figure.png")
