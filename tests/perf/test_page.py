"""The page comes from what was stored, without measuring."""

import argparse
import json
from pathlib import Path
from typing import Any

import pytest
from perf.asking.answer import Answer, Ratio, Table, ratio
from perf.asking.page import write_page
from perf.asking.questions import QUESTIONS
from perf.asking.targets import all_targets

from perf import __main__ as command

TIMES = {
    "bare ER, one pass": [1.0, 1.1, 1.0],
    "ER": [1.2, 1.2, 1.3],
    "ER-P": [1.3, 1.3, 1.4],
}


def section(answer: Answer, **facts: object) -> dict[str, Any]:
    around = {"commit": "c0ffee", "began": "2026-01-02T03:04:05+00:00", "load": 0.5, "seconds": 7}
    return {**around, "is_quick": False, "answer": answer.to_json(), **facts}


def stored() -> dict[str, Any]:
    steps = Answer(
        "A step of MLP",
        "python -m perf.step_cost mlp",
        {"batch": 10},
        "s of CPU a step",
        TIMES,
        [
            ratio("ER", "bare ER, one pass", "MLP", TIMES),
            ratio("ER-P", "ER", "MLP", TIMES),
        ],
    )
    points = [
        {"method": method, "slots": slots, "state": state, "median": 1.0, "low": 0.9, "high": 1.1}
        for method in ("ER", "ER-C")
        for state in ("just full", "10 x capacity seen")
        for slots in (500, 1_000)
    ]
    capacity = Answer("Capacity", "python -m perf.capacity", {}, points=points)
    memory = Answer(
        "Memory",
        "python -m perf.peak_memory",
        {},
        tables=[Table("MiB", ("", "a step"), [["ER", 31.25]])],
        remarks=["Counted: bytes."],
    )
    printed = Answer("Streams", "python -m perf.streams", {}, printed="50 us a batch")
    return {
        "date": "2026-01-02",
        "machine": {"cpu": "A Processor", "cores": "2", "L2 cache": "2048K"},
        "versions": {"torch": "2.13.0", "avalanche-lib": "0.6.0"},
        "sections": {
            "step-cost-mlp": section(steps),
            "capacity": section(capacity),
            "peak-memory": section(memory),
            "streams": section(printed),
        },
    }


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    path = tmp_path / "notes.md"
    path.write_text("## What bounds the rest\n\nBy hand.\n")
    return path


def test_the_page_says_what_was_measured(tmp_path: Path, notes: Path) -> None:
    kept = json.loads(json.dumps(stored()))
    page = write_page(kept, tmp_path, notes=notes).read_text()
    assert (
        "| ER | bare ER, one pass | MLP | **1.20** | 1.15 to 1.25 | 3 | ≤ 1.05 | **missed** |"
        in page
    )
    assert "| ER-P | ER | MLP | **1.08** | 1.08 to 1.08 | 3 | ≤ 1.2 | met |" in page
    assert "| ER-C | ER | MLP | not measured |" in page
    assert f"1 of {len(all_targets())} met." in page
    for words in ("A Processor", "avalanche-lib 0.6.0", "L2 cache 2048K", "By hand.", "c0ffee"):
        assert words in page
    for words in ("| ER | 31 |", "Counted: bytes.", "50 us a batch", "speed.json"):
        assert words in page
    assert str(tmp_path) not in page


def test_the_plots_are_drawn(tmp_path: Path, notes: Path) -> None:
    page = write_page(stored(), tmp_path, notes=notes).read_text()
    for name in ("targets", "steps", "capacity"):
        plot = tmp_path / f"{name}.png"
        assert plot.read_bytes().startswith(b"\x89PNG")
        assert f"({plot.name})" in page


def test_the_same_numbers_give_the_same_files(tmp_path: Path, notes: Path) -> None:
    for folder in ("once", "again"):
        write_page(stored(), tmp_path / folder, notes=notes)
    once, again = (sorted((tmp_path / folder).iterdir()) for folder in ("once", "again"))
    assert [path.read_bytes() for path in once] == [path.read_bytes() for path in again]


def test_a_page_without_answers_is_a_page(tmp_path: Path, notes: Path) -> None:
    around = {"commit": "c0ffee", "began": "", "load": 0.5, "seconds": 1, "is_quick": True}
    empty = stored() | {"sections": {"workers": around | {"error": "ended with code 1"}}}
    page = write_page(empty, tmp_path, notes=notes).read_text()
    assert "No answer: ended with code 1" in page
    assert f"0 of {len(all_targets())} met." in page
    assert "A quick trial" in page


def test_different_commits_are_pointed_out(tmp_path: Path, notes: Path) -> None:
    mixed = stored()
    mixed["sections"]["capacity"]["commit"] = "beef"
    assert "different commits" in write_page(mixed, tmp_path, notes=notes).read_text()


def chosen(*words: str) -> argparse.Namespace:
    return command.options().parse_args(words)


def test_questions_are_chosen_by_the_beginning_of_their_name() -> None:
    wanted = command.wanted_questions(chosen("--only", "step-cost", "capacity"), {"sections": {}})
    assert wanted == [
        "step-cost-mlp",
        "step-cost-cifar",
        "step-cost-mini",
        "step-cost-transformer",
        "capacity",
    ]


def test_an_unknown_question_is_refused() -> None:
    with pytest.raises(SystemExit, match="step-cost-mlp"):
        command.wanted_questions(chosen("--only", "nothing"), {"sections": {}})


def test_a_stopped_run_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "commit", lambda: "c0ffee")
    kept = stored()
    left = command.wanted_questions(chosen(), kept)
    assert left == [name for name in QUESTIONS if name not in kept["sections"]]
    assert command.wanted_questions(chosen("--again"), kept) == list(QUESTIONS)


def test_answers_of_another_commit_or_of_a_trial_are_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(command, "commit", lambda: "c0ffee")
    kept = stored()
    kept["sections"]["capacity"]["commit"] = "beef"
    kept["sections"]["streams"]["is_quick"] = True
    del kept["sections"]["peak-memory"]["answer"]
    left = command.wanted_questions(chosen(), kept)
    assert {"capacity", "streams", "peak-memory"} < set(left)
    assert "step-cost-mlp" not in left


def test_a_target_to_reach_is_drawn_like_the_others(tmp_path: Path, notes: Path) -> None:
    speed = Ratio(
        "speed of two workers", "one", "sweep of MNIST-S", 1.9, 1.85, 1.95, 3, 1.8, at_least=True
    )
    both = stored()
    both["sections"]["workers"] = section(Answer("Workers", "c", {}, ratios=[speed]))
    page = write_page(both, tmp_path, notes=notes).read_text()
    assert "≥ 1.8 | met |" in page
