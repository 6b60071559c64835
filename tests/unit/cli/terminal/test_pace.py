import pytest

from recollect.cli.terminal.pace import Pace
from recollect.experiments.running.events import Event
from recollect.experiments.specs.cell import cells
from recollect.experiments.specs.configs import config_path
from recollect.experiments.specs.request import Request, requests
from recollect.experiments.specs.spec import load_spec


@pytest.fixture
def wanted() -> list[Request]:
    spec = load_spec(config_path("mnist-split"))
    return requests(cells(spec, methods=["er", "gss"]), range(1))


def progress(request: Request, share: float) -> Event:
    return Event("progress", request, seen=round(share * 1000), num_examples=1000)


def test_time_left_is_that_of_the_rest_at_the_pace_so_far(wanted: list[Request]) -> None:
    now = 0.0
    pace = Pace(2, clock=lambda: now)
    assert pace.seconds_left is None
    pace.note(progress(wanted[0], 0.0))
    now = 30.0
    pace.note(progress(wanted[0], 0.5))
    assert pace.share_done == 0.25
    assert pace.seconds_left == pytest.approx(90)
    pace.note(Event("done", wanted[0]))
    now = 60.0
    assert pace.seconds_left == pytest.approx(60)


def test_what_an_earlier_command_did_tells_nothing_about_the_pace(wanted: list[Request]) -> None:
    now = 0.0
    pace = Pace(1, clock=lambda: now)
    pace.note(Event("started", wanted[0]))
    pace.note(progress(wanted[0], 0.8))  # continued from there
    assert pace.seconds_left is None
    now = 100.0
    pace.note(progress(wanted[0], 0.9))
    assert pace.share_done == 0.9
    assert pace.seconds_left == pytest.approx(100)


def test_a_run_that_lost_its_worker_is_not_in_progress(wanted: list[Request]) -> None:
    pace = Pace(2, clock=lambda: 0.0)
    pace.note(progress(wanted[0], 0.5))
    pace.note(Event("died", wanted[0]))
    pace.note(Event("failed", wanted[1]))
    assert (pace.running, pace.num_ended, pace.num_failed) == ({}, 1, 1)
    assert pace.share_done == 0.5


def test_a_run_in_another_command_counts_nothing_until_it_is_done(wanted: list[Request]) -> None:
    pace = Pace(2, clock=lambda: 0.0)
    pace.note(Event("elsewhere", wanted[0]))
    assert pace.share_done == 0
    pace.note(Event("done", wanted[0], is_new=False))
    assert pace.share_done == 0.5
