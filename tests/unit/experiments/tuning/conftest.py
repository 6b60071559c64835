"""A search of tiny runs, made in this process."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from recollect.experiments.running.events import Event
from recollect.experiments.running.execute import execute
from recollect.experiments.specs.request import Request
from recollect.experiments.tuning.plan import Plan, Wanted, make_plan
from recollect.experiments.tuning.search import Search

SPEC = """
benchmark = "mnist-split"
memory = [20]

[stream]
examples_per_segment = 40
validation_per_segment = 20

[evaluation]
examples = 100

[tune]
trials = 8
seeds = 2
finalists = 2
fresh_seeds = 2
ahead = 2
set = ["evaluation.points=10"]

[methods.er]
[methods.er-c]
"""
MakePlan = Callable[..., Plan]


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SPEC)
    return path


@pytest.fixture
def plan_of(spec: Path) -> MakePlan:
    def make(*methods: str, overrides: tuple[str, ...] = (), **budget: Any) -> Plan:
        names = methods or ("er",)
        wanted = Wanted(spec, str(spec), overrides, methods=names, budget=budget)
        return make_plan(wanted)

    return make


_opened: list[Search] = []


@pytest.fixture(autouse=True)
def _close_searches() -> Iterator[None]:
    yield
    while _opened:
        _opened.pop().close()


def search_in(folder: Path, plan: Plan) -> Search:
    search = Search(plan, folder, name="small", command="recollect tune small.toml")
    _opened.append(search)
    return search


def make(search: Search, request: Request) -> None:
    """Make one run and tell the search."""
    record = execute(request)
    search.store.add(request, record)
    search.note(Event(record.status, request))  # type: ignore[arg-type]


def drive(search: Search, *, most: int = 10_000) -> int:
    """Make runs until there are no more, or so many; return how many were made."""
    made = 0
    while made < most:
        requests = search.more()
        if requests is None:
            break
        assert requests, "one process never waits for itself"
        for request in requests:
            make(search, request)
            made += 1
    return made
