"""The pages of a search: what was tried, how it went, what was chosen, and nothing from outside."""

import dataclasses
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from recollect.experiments.tuning.best import toml_text
from recollect.experiments.tuning.choose import Stage, Standing, chosen
from recollect.experiments.tuning.study import Budget, Study, Trial
from recollect.reports.tuning.charts import Point, chart, places
from recollect.reports.tuning.html import html_page
from recollect.reports.tuning.markdown import (
    gain_over_first,
    markdown_page,
    stage_in_words,
    write_markdown,
)

BUDGET = Budget(trials=4, seeds=2, finalists=2, fresh_seeds=2)
NOTHING = Stage({}, 0, 0, 2)


def row(number: int, first: Stage, fresh: Stage = NOTHING, *, mark: str = "") -> Standing:
    settings = {"lr": number / 10, "pick": "highest" if number % 2 else "<b>"}
    trial = Trial("er-c", number, settings, f"hash-{number}", "drawn")
    return Standing(trial, first, fresh, is_finalist=bool(mark), is_chosen=mark == "chosen")


def stage(seed: int, *accuracies: float) -> Stage:
    return Stage({seed + index: value for index, value in enumerate(accuracies)}, 0, 0, 0)


ROWS = [
    row(1, stage(1000, 0.5, 0.6), stage(2000, 0.5, 0.5), mark="finalist"),
    row(2, stage(1000, 0.7, 0.8), stage(2000, 0.7, 0.8), mark="chosen"),
    row(3, Stage({}, 0, 1, 1)),
    row(4, Stage({1000: 0.4}, 1, 0, 0)),
]
STUDY = Study(
    "small",
    "mnist-split",
    BUDGET,
    {"er-c": [standing.trial for standing in ROWS]},
    {"er-c": ["lr", "pick"]},
    importances={"er-c": {"lr": 0.75, "pick": 0.25}},
    command="recollect tune <small>",
)
FOUND = {"er-c": ROWS}


class _Tags(HTMLParser):
    """Sees that every element is closed, and notes what would be fetched."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.fetched += [v or "" for k, v in attrs if k in ("src", "href")]
        if tag not in ("meta", "link", "br", "line"):
            self.open.append(tag)

    def handle_startendtag(self, *_: object) -> None:
        return

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_needs_nothing_from_outside_and_shows_the_best() -> None:
    page = html_page(STUDY, FOUND, {}, spec="[methods.er-c]\nlr = 0.2\n")
    tags = _Tags()
    tags.feed(page)
    assert tags.open == []
    assert set(tags.fetched) == {"data:,", "#main"}
    assert "http" not in page.replace("http-equiv", "")
    assert "75.0 ± 7.1 (n=2)" in page
    assert "recollect tune &lt;small&gt;" in page
    assert "<b>," not in page  # a setting is text
    assert page == html_page(STUDY, FOUND, {}, spec="[methods.er-c]\nlr = 0.2\n")


def test_history_settings_and_importances_are_drawn() -> None:
    page = html_page(STUDY, FOUND, {}, spec=None)
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", page)
    assert captions == ["Trials in their order", "lr", "pick"]
    assert page.count('class="chosen"') == 3
    assert page.count('class="pruned"') == 6  # a pruned and a failed one, in three charts
    assert "<span>75 %</span>" in page
    assert "Importances" not in html_page(
        dataclasses.replace(STUDY, importances={}), FOUND, {}, spec=None
    )


def test_a_search_that_is_not_over_says_so() -> None:
    unfinished = {"er-c": [dataclasses.replace(r, is_chosen=False) for r in ROWS]}
    assert chosen(unfinished["er-c"]) is None
    assert "search not over" in html_page(STUDY, unfinished, {}, spec=None)
    assert "search not over" in markdown_page(STUDY, unfinished, {})


def test_the_markdown_page_has_every_trial_and_a_picture(tmp_path: Path) -> None:
    path = write_markdown(STUDY, FOUND, {}, tmp_path / "small")
    text = path.read_text()
    assert "Searched by `recollect tune <small>`." in text
    assert "| 2 | 0.2 | <b> | 75.0 ± 7.1 (n=2) | 75.0 ± 7.1 (n=2) | **chosen** |" in text
    assert "| 3 | 0.3 | highest | pruned |  |  |" in text
    assert "| 4 | 0.4 | <b> | 40.0 (n=1), 1 failed |  |  |" in text
    assert (tmp_path / "small.png").read_bytes().startswith(b"\x89PNG")


def test_stages_and_gains_are_told_in_words() -> None:
    assert stage_in_words(Stage({}, 0, 0, 2)) == "2 not run"
    assert stage_in_words(Stage({1000: 0.5}, 0, 1, 0)) == "50.0 (n=1), pruned"
    assert gain_over_first(ROWS) == "+20.0 on the first seeds"
    assert gain_over_first(ROWS[1:]) == "is it"


def test_places_are_by_size_or_by_ratio() -> None:
    assert places([1.0, 2.0, 3.0], is_log=False) == [0.0, 0.5, 1.0]
    assert places([1.0, 10.0, 100.0], is_log=True) == pytest.approx([0.0, 0.5, 1.0])
    assert places([2.0], is_log=False) == [0.5]


def test_the_best_so_far_never_falls() -> None:
    points = [Point(n / 4, a, "trial", "") for n, a in enumerate([0.5, 0.4, None, 0.8, 0.6])]
    drawn = chart(points, [], "history", is_history=True)
    (line,) = re.findall(r'polyline class="best" points="(.*?)"', drawn)
    heights = [float(pair.split(",")[1]) for pair in line.split()]
    assert heights == sorted(heights, reverse=True)  # downwards is larger
    assert "polyline" not in chart(points, [], "setting", is_history=False)


def test_toml_is_read_back_as_it_was() -> None:
    import tomllib

    content = {
        "benchmark": 'a "quoted" name\n',
        "memory": [500],
        "stream": {"sizes": [1, 2], "empty": {}},
        "learner": {"augment": [{"name": "crop", "padding": 4}], "lr": 1e-05},
        "methods": {"er-p": {"lr": 0.1, "groups": None, "odd key": True}},
    }
    back = tomllib.loads(toml_text(content))
    assert back["learner"] == content["learner"]
    assert back["benchmark"] == content["benchmark"]
    assert back["stream"] == {"sizes": [1, 2]}
    assert back["methods"] == {"er-p": {"lr": 0.1, "odd key": True}}
