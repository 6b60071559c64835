import io
from pathlib import Path

import pytest
from rich.console import Console

from recollect.cli.terminal.pace import Pace
from recollect.cli.terminal.progress import LiveDisplay, PlainDisplay, RunNames
from recollect.experiments.running.events import Event
from recollect.experiments.specs.cell import cells
from recollect.experiments.specs.configs import config_path
from recollect.experiments.specs.request import Request, requests
from recollect.experiments.specs.spec import load_spec


@pytest.fixture
def wanted() -> list[Request]:
    spec = load_spec(config_path("mnist-split"))
    return requests(cells(spec, methods=["er", "gss"]), range(1))


def terminal(*, is_terminal: bool) -> Console:
    return Console(file=io.StringIO(), force_terminal=is_terminal, width=100, color_system=None)


def shown(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def progress(request: Request, *, seen: int = 2000) -> Event:
    return Event(
        "progress",
        request,
        segment=2,
        num_segments=5,
        seen=seen,
        num_examples=5000,
        accuracy=0.9,
        examples_per_second=4321.0,
    )


def test_a_terminal_shows_each_run_and_the_means_so_far(wanted: list[Request]) -> None:
    console = terminal(is_terminal=True)
    with LiveDisplay(console, wanted, Pace(2)) as display:
        display.tick()
        display.note(Event("started", wanted[0]))
        display.note(Event("done", wanted[0], accuracy=0.8, forgetting=0.1, seconds=1.0))
        display.note(progress(wanted[1]))
        display.tick()
    text = shown(console)
    assert "starting workers" in text
    assert "1 of 2 runs" in text
    assert "2/5" in text
    assert "90.0%" in text
    assert "4,321" in text
    assert "er 80.0% (n=1)" in text
    assert "left" in text


def test_what_went_wrong_stays_on_the_screen(wanted: list[Request]) -> None:
    console = terminal(is_terminal=True)
    with LiveDisplay(console, wanted, Pace(2)) as display:
        display.note(Event("failed", wanted[0], message="Traceback\nValueError: [bad] value"))
        display.note(Event("died", wanted[1], message="its worker ended with SIGKILL"))
        display.note(progress(wanted[1]))
        display.note(Event("anew", wanted[1], message="it is damaged"))
        display.stopping()
        display.tick()
    text = shown(console)
    assert "failed: mnist-split er seed 0: ValueError: [bad] value" in text
    assert "lost a worker: mnist-split gss seed 0: its worker ended with SIGKILL" in text
    cannot = "starts anew, its checkpoint cannot be continued"
    assert f"{cannot}: mnist-split gss seed 0: it is damaged" in text
    assert "2/5" in text  # it goes on
    assert "1 failed" in text
    assert "each run saves its place" in text


def test_plain_lines_are_one_a_run(wanted: list[Request]) -> None:
    console = terminal(is_terminal=False)
    display = PlainDisplay(console, wanted, Pace(2))
    display.note(Event("started", wanted[0]))
    display.note(Event("anew", wanted[0], message="it is damaged"))
    display.note(progress(wanted[0]))
    display.note(Event("done", wanted[0], accuracy=0.8, forgetting=0.1, seconds=1.25))
    display.note(Event("elsewhere", wanted[1]))
    display.note(Event("done", wanted[1], is_new=False))
    assert shown(console).splitlines() == [
        "starts anew, its checkpoint cannot be continued: mnist-split er seed 0: it is damaged",
        "1/2  mnist-split er seed 0: accuracy 80.0%, forgetting 10.0%, 1.2 s",
        "mnist-split gss seed 0: another command is running it; waiting",
        "2/2  mnist-split gss seed 0: done by another command",
    ]


def test_a_file_is_told_where_long_runs_are_at_most_five_minutes_apart(
    wanted: list[Request],
) -> None:
    console = terminal(is_terminal=False)
    now = 0.0
    display = PlainDisplay(console, wanted, Pace(2, clock=lambda: now))
    display.note(Event("started", wanted[1]))
    display.note(progress(wanted[0], seen=0))
    told = []
    for minute in range(121):
        now = 60.0 * minute
        display.note(progress(wanted[0], seen=40 * minute))
        before = len(shown(console))
        display.tick()
        display.tick()
        if len(shown(console)) > before:
            told.append(minute)
    assert told[:6] == [1, 2, 3, 4, 5, 7]
    assert max(later - told[k] for k, later in enumerate(told[1:])) == 5
    assert 25 < len(told) < 35
    assert shown(console).splitlines()[4:6] == [
        "mnist-split er seed 0: segment 2/5, accuracy 90.0%, 4,321 examples/s",
        "1% done, about 4.1 h left",  # 120 of 5000 examples of one of two runs in 3 min
    ]


def test_a_file_is_told_nothing_more_once_runs_save_their_place(wanted: list[Request]) -> None:
    console = terminal(is_terminal=False)
    now = 0.0
    display = PlainDisplay(console, wanted, Pace(2, clock=lambda: now))
    display.note(progress(wanted[0]))
    display.stopping()
    now = 1000.0
    display.tick()
    assert shown(console).splitlines() == ["stopping: each run saves its place"]


def test_memory_sizes_are_named_only_if_there_are_several(wanted: list[Request]) -> None:
    spec = load_spec(Path(config_path("mnist-split")))
    several = requests(cells(spec, methods=["er"], memory=[100, 200]), [0])
    assert RunNames(wanted).short(wanted[0]) == "er"
    assert [RunNames(several).short(request) for request in several] == [
        "er, 100 slots",
        "er, 200 slots",
    ]
