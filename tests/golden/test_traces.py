"""Fifty steps of every method stay what they were; `make golden` rewrites them on purpose."""

import json
from typing import Any

import pytest
from tests.golden.rewrite import as_text
from tests.golden.traces import FOLDER, STEPS, trace

from recollect import METHODS

# Other processors add in another order; what is learnt stays within this.
WITHIN = 1e-5


def golden(name: str) -> dict[str, Any]:
    return json.loads((FOLDER / f"{name}.json").read_text())


@pytest.mark.parametrize("name", METHODS)
def test_every_step_chooses_the_slots_it_chose(name: str) -> None:
    found, kept = trace(name), golden(name)
    for key in ("replayed", "written", "held"):
        assert found[key] == kept[key], key


@pytest.mark.parametrize("name", METHODS)
def test_every_step_has_the_loss_it_had(name: str) -> None:
    found, kept = trace(name), golden(name)
    assert found["losses"] == pytest.approx(kept["losses"], rel=WITHIN, abs=WITHIN)
    assert found["weights"] == pytest.approx(kept["weights"], rel=WITHIN)


@pytest.mark.parametrize("name", METHODS)
def test_a_trace_is_written_as_it_is_kept(name: str) -> None:
    assert as_text(golden(name)) == (FOLDER / f"{name}.json").read_text()


def test_every_method_has_a_trace_and_no_other_file_is_left() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(METHODS)


def test_the_traces_show_something() -> None:
    for name in METHODS:
        kept = golden(name)
        assert len(kept["losses"]) == STEPS
        if name != "van":
            assert sum(map(len, kept["replayed"][10:])) == 5 * (STEPS - 10)
            replacements = sum(map(len, kept["written"][5:]))
            assert replacements > (0 if name == "gss" else 10), name
