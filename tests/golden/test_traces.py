"""Scenarios do what they did when their traces were taken; `make golden` takes them anew."""

import pytest
import torch
from tests.golden import processor
from tests.golden.compare import differences
from tests.golden.files import EVERYWHERE, FOLDER, as_text, on, path_of, read
from tests.golden.scenarios import SCENARIOS
from tests.golden.traces import trace

from recollect import METHODS


@pytest.mark.parametrize("name", SCENARIOS)
def test_in_float64_every_choice_is_the_same_and_every_number_to_nine_places(name: str) -> None:
    assert differences(read(name)[EVERYWHERE], trace(SCENARIOS[name], torch.float64)) == []


@pytest.mark.parametrize("name", SCENARIOS)
def test_in_float32_every_bit_is_the_same_on_a_processor_that_was_met(name: str) -> None:
    kept = read(name).get(on(kind := processor.kind()))
    if kept is None:
        pytest.skip(f"no float32 traces were taken on this processor ({kind}); see `make golden`")
    assert trace(SCENARIOS[name], torch.float32) == kept


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_trace_is_written_as_it_is_kept(name: str) -> None:
    assert as_text(read(name)) == path_of(name).read_text()


def test_every_scenario_has_traces_and_no_other_file_is_left() -> None:
    assert set(FOLDER.iterdir()) == set(map(path_of, SCENARIOS))
    assert len(set(map(path_of, SCENARIOS))) == len(SCENARIOS)


def test_one_kind_of_processor_has_every_scenario() -> None:
    # A scenario that came later lacks the kinds that were met before and not since.
    assert len(set.intersection(*(set(read(name)) for name in SCENARIOS))) > 1


def test_every_method_is_a_scenario() -> None:
    assert set(METHODS) <= set(SCENARIOS)


@pytest.mark.parametrize("name", [name for name in SCENARIOS if name != "van"])
def test_a_scenario_replays_and_replaces(name: str) -> None:
    steps = read(name)[EVERYWHERE]["steps"]
    assert all(len(slots) == 5 for _, replayed, _ in steps[2:] for slots in replayed)
    once_it_is_full = steps[1 + len(steps) // 2 :]
    assert sum(len(written) for *_, written in once_it_is_full) > 0


def test_the_traces_are_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 2_000_000
