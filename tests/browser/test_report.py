"""Click through the report in a real browser; any word on its console is a failure."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.browser.devtools import CHROMIUM, Page, opened_page
from tests.unit.reports.runs import many, read_runs

from recollect.reports.html import write_report

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine"),
    pytest.mark.slow,
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Page, str]]:
    folder = tmp_path_factory.mktemp("report")
    report = write_report(read_runs(), folder / "report.html")
    with opened_page(folder / "profile") as page:
        yield page, report.as_uri()


@pytest.fixture
def page(browser: tuple[Page, str]) -> Iterator[Page]:
    """The report, freshly opened; nothing on the console when the test is over."""
    tab, address = browser
    tab.resize(1280, 900)
    tab.complaints.clear()
    tab.requests.clear()
    tab.open("about:blank")
    tab.open(address)
    yield tab
    tab.evaluate("1")  # let late events arrive
    assert tab.complaints == []
    assert {url.split(":")[0] for url in tab.requests} <= {"file", "data", "about"}


def shown(page: Page, selector: str) -> int:
    """How many elements a person could see, however deep what hides them is."""
    return int(
        page.evaluate(
            f"[...document.querySelectorAll({selector!r})].filter(e => e.getClientRects().length)"
            ".length"
        )
    )


def test_a_method_can_be_hidden_everywhere_and_shown_again(page: Page) -> None:
    before = shown(page, "main [data-method='van']")
    assert before > 3
    page.click("[data-toggle-method='van']")
    assert shown(page, "main [data-method='van']") == 0
    assert page.evaluate("document.querySelector(\"[data-toggle-method='van']\").ariaPressed") == (
        "false"
    )
    page.click("#show-all")
    assert shown(page, "main [data-method='van']") == before


def test_charts_use_their_room_when_a_method_is_hidden(page: Page) -> None:
    window = "document.querySelector('.plot[data-top] svg').getAttribute('viewBox')"
    length = "parseFloat(document.querySelector(\".bars li[data-method='er'] em\").style.width)"
    forgetting = length.replace("querySelector(", "querySelectorAll('.bars')[1].querySelector(")
    forgetting = forgetting.replace(".bars li", "li")
    whole, short = page.evaluate(window), page.evaluate(forgetting)
    page.click("[data-toggle-method='van']")
    assert page.evaluate(window) != whole
    assert page.evaluate(forgetting) > short
    page.click("[data-toggle-method='van']")
    assert page.evaluate(window) == whole
    assert page.evaluate(forgetting) == pytest.approx(short)


def test_a_benchmark_can_be_hidden(page: Page) -> None:
    assert shown(page, "[data-benchmark='mnist-permuted']") == 1
    page.click("[data-toggle-benchmark='mnist-permuted']")
    assert shown(page, "[data-benchmark='mnist-permuted']") == 0
    assert shown(page, "[data-of='mnist-permuted']") == 0
    assert shown(page, "[data-benchmark='mnist-split']") == 1


def test_differences_can_be_taken_against_another_method(page: Page) -> None:
    first = "[data-benchmark='mnist-split'] .comparison"
    cells = f"document.querySelector(\"{first} tr[data-method='er'] td:nth-of-type(3)\").innerText"
    assert page.evaluate(cells) == "reference"
    page.evaluate(
        "(s => { s.value = '0'; s.dispatchEvent(new Event('change')); })"
        "(document.querySelector(\"select[data-reference='mnist-split']\"))"
    )
    assert "to" in page.evaluate(cells)
    assert page.evaluate(cells.replace("'er'", "'van'")) == "reference"


def test_pointing_at_a_curve_tells_every_visible_method(page: Page) -> None:
    page.point_at(".plot[data-top]")
    told = page.evaluate("document.getElementById('tip').innerText")
    assert "examples seen" in told
    assert "ER-PC-MIR: " in told
    assert "VAN: " in told
    page.click("[data-toggle-method='van']")
    page.point_at(".plot[data-top]")
    assert "VAN: " not in page.evaluate("document.getElementById('tip').innerText")


def test_pointing_at_bars_cells_and_memories_tells_their_numbers(page: Page) -> None:
    for selector, word in (
        (".bars li", "seed 0"),
        (".heat td[style]", "% on"),
        (".small-charts .plot", "slots"),
        (".evictions .plot", "left"),
    ):
        page.point_at(selector)
        assert word in page.evaluate("document.getElementById('tip').innerText"), selector


def test_a_chart_can_be_read_with_the_keyboard_alone(page: Page) -> None:
    page.evaluate("document.querySelector('.plot[data-top]').focus({preventScroll: true})")
    page.press("Home")
    first = page.evaluate("document.getElementById('tip').innerText")
    page.press("ArrowRight")
    second = page.evaluate("document.getElementById('tip').innerText")
    assert first.startswith("500 examples seen")
    assert second.startswith("1,000 examples seen")
    page.press("Escape")
    assert page.evaluate("document.getElementById('tip').hidden")


def test_a_methods_name_leads_to_its_spec_and_command(page: Page) -> None:
    page.click(".comparison tr[data-method='er'] a")
    page.evaluate("new Promise(done => setTimeout(done, 200))")  # following a link takes a moment
    opened = "document.querySelector('details.origin[open]')"
    assert "recollect run mnist-split --method er " in page.evaluate(f"{opened}.innerText")
    assert '"lr": 0.05' in page.evaluate(f"{opened}.innerText")
    page.click("details.origin[open] .copy")
    said = page.evaluate(
        "new Promise(r => setTimeout(() => "
        "r(document.querySelector('details.origin[open] .copy').innerText), 200))"
    )
    assert said in ("Copied", "Selected")


def test_every_folding_opens(page: Page) -> None:
    num = page.evaluate(
        "(() => { const all = [...document.querySelectorAll('details')];"
        "for (const d of all) d.querySelector('summary').click();"
        "return all.filter(d => d.open).length; })()"
    )
    assert num == page.evaluate("document.querySelectorAll('details').length") > 30


def test_every_control_is_reachable_by_tab_in_reading_order(page: Page) -> None:
    page.evaluate("document.body.focus()")
    places = []
    for _ in range(14):
        page.press("Tab")
        places.append(page.evaluate("document.activeElement.innerText || ''"))
    assert places[0] == "Skip to the results"
    assert places[1:5] == [
        "The same with intervals and tests",
        "MNIST-S",
        "MNIST-P",
        "VAN",
    ]
    assert "Show all" in places


@pytest.mark.parametrize("width", [390, 768, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_sticks_out_at_any_width(page: Page, width: int, scheme: str) -> None:
    page.resize(width, 900)
    page.prefer(scheme)
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") == (scheme == "light")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(page: Page, scheme: str) -> None:
    page.prefer(scheme)
    # WCAG AA: 4.5 to 1 for text, measured on what is computed, grounds included.
    worst = page.evaluate(_CONTRAST)
    assert worst[0] >= 4.5, worst


def test_what_is_said_of_images_and_tables_is_there(page: Page) -> None:
    assert page.evaluate("document.querySelectorAll('[role=img]:not([aria-label])').length") == 0
    assert page.evaluate("document.querySelectorAll('table:not(:has(caption))').length") == 0
    assert page.evaluate("document.querySelectorAll('h1').length") == 1
    ids = "[...document.querySelectorAll('[id]')].map(e => e.id)"
    assert page.evaluate(f"new Set({ids}).size === {ids}.length")
    links = "[...document.querySelectorAll('a[href^=\"#\"]')]"
    dead = f"{links}.filter(a => !document.getElementById(a.hash.slice(1))).length"
    assert page.evaluate(dead) == 0


@pytest.fixture
def large(browser: tuple[Page, str], tmp_path: Path) -> Iterator[Page]:
    """A report of 1,000 runs, freshly opened."""
    tab, _ = browser
    report = write_report(many(read_runs(), 1000), tmp_path / "large.html")
    tab.resize(1280, 900)
    tab.complaints.clear()
    tab.open("about:blank")
    tab.open(report.as_uri())
    yield tab
    assert tab.complaints == []


def wait_for(page: Page, expression: str) -> None:
    """Wait until an expression is true: unpacking takes a moment."""
    page.evaluate(
        "new Promise(done => { const look = () => "
        f"({expression}) ? done() : setTimeout(look, 20); look(); }})"
    )


def test_a_large_page_opens_with_its_memories_packed_and_unpacks_what_comes_near(
    large: Page,
) -> None:
    packed, plots = (
        f"document.querySelectorAll({selector!r}).length"
        for selector in ("[data-when=seen][data-packed]", ".small-charts .plot")
    )
    before, drawn = large.evaluate(packed), large.evaluate(plots)
    assert before > 0
    large.evaluate("[...document.querySelectorAll('[data-when=seen]')].at(-1).scrollIntoView()")
    wait_for(large, f"{packed} < {before} && {plots} > {drawn}")
    large.point_at(".evictions .plot")
    assert "left" in large.evaluate("document.getElementById('tip').innerText")


def test_a_packed_comparison_and_a_packed_origin_open_when_asked_for(large: Page) -> None:
    large.evaluate(
        "(s => { s.value = '0'; s.dispatchEvent(new Event('change')); })"
        "(document.querySelector(\"select[data-reference='mnist-split']\"))"
    )
    other = "[data-benchmark='mnist-split'] .chart [data-against='0']"
    wait_for(large, f'document.querySelector("{other}")?.getClientRects().length > 0')
    large.click(".comparison tr[data-method='er'] a")
    opened = "document.querySelector('details.origin[open]')"
    wait_for(large, f"{opened}?.innerText.includes('recollect run mnist-split --method er ')")
    large.click("details.origin[open] .copy")


_CONTRAST = """
(() => {
  const numbers = (c) => c.startsWith('color(')
    ? c.match(/[\\d.]+/g).slice(0, 3).map((v) => 255 * v).concat(1)
    : (c.match(/[\\d.]+/g) || []).map(Number).concat(1).slice(0, 4);
  const light = ([r, g, b]) => {
    const part = (v) => ((v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if (colour !== 'rgba(0, 0, 0, 0)') return numbers(colour);
    }
    return [255, 255, 255, 1];
  };
  let worst = [99, ''];
  for (const e of document.querySelectorAll('body *')) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.getClientRects().length || ['SCRIPT', 'STYLE'].includes(e.tagName)) continue;
    const [a, b] = [light(numbers(getComputedStyle(e).color)), light(ground(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < worst[0]) worst = [ratio, e.outerHTML.slice(0, 120)];
  }
  return worst;
})()
"""
