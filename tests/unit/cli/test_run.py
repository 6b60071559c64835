import json
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from recollect.cli import main
from recollect.experiments.records.store import Store
from recollect.experiments.specs.cell import cells
from recollect.experiments.specs.request import Request, requests
from recollect.experiments.specs.spec import load_spec

SPEC = """
benchmark = "mnist-split"
memory = [20]
seeds = 2
compare = ["er", "van"]
[stream]
examples_per_segment = 20
validation_per_segment = 20
[evaluation]
on = "validation"
[methods.er]
[methods.van]
[methods.diverging]
base = "er"
lr = 1e30
"""


class Ended(NamedTuple):
    code: int
    out: str
    err: str


class Command:
    """Runs `recollect run ...` in this process, in a folder of its own."""

    def __init__(self, patch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]) -> None:
        self._patch = patch
        self._capture = capture

    def __call__(self, *arguments: str) -> Ended:
        self._patch.setattr(sys, "argv", ["recollect", "run", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return Ended(int(ended.value.code or 0), *self._capture.readouterr())


@pytest.fixture
def recollect_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(SPEC)
    return Command(monkeypatch, capsys)


def test_a_first_command_runs_and_a_second_one_prints_the_table_at_once(
    recollect_run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = recollect_run("--spec", "small.toml", "--workers", "1")
    assert first.code == 0
    assert [line.split(":")[0] for line in first.err.splitlines()] == [
        "1/4  mnist-split er seed 0",
        "2/4  mnist-split van seed 0",
        "3/4  mnist-split er seed 1",
        "4/4  mnist-split van seed 1",
    ]
    heading, er, van, *_ = first.out.splitlines()
    assert heading.split()[:4] == ["method", "memory", "n", "accuracy"]
    assert er.split()[:3] == ["er", "20", "2"]
    assert van.split()[:3] == ["van", "-", "2"]
    assert "less er (95 % interval)" in heading
    monkeypatch.setattr(subprocess, "Popen", None)  # nothing may be run any more
    again = recollect_run("--spec", "small.toml", "--quiet")
    table = first.out.partition("\nreport:")[0]  # the quiet one writes the page, but says nothing
    assert (again.code, again.out, again.err) == (0, table, "")
    records = Store("runs").records()
    for record in records:  # the command of each record leads to it, and to nothing else
        same = recollect_run(*shlex.split(record.command)[2:], "--json")
        (row,) = json.loads(same.out)["rows"]
        assert (row["method"], row["accuracy"]["n"]) == (record.method, 1)
    assert len(Store("runs").records()) == 4
    (request,) = [r for r in wanted_in(Path("small.toml")) if r.key.startswith("er-")]
    Store("runs").add(request, replace(records[0], commit="another"))
    mixed = recollect_run("--spec", "small.toml", "--quiet")
    assert "these runs were made by 2 different states of the code" in mixed.out


def test_a_page_that_cannot_be_written_is_a_warning_and_the_table_is_shown(
    recollect_run: Command,
) -> None:
    asked = ["--spec", "small.toml", "--method", "van", "--seeds", "1", "--workers", "1"]
    assert recollect_run(*asked).code == 0
    Path("runs/report.html").unlink()
    Path("runs/report.html").mkdir()
    ended = recollect_run(*asked)
    assert ended.code == 0
    assert ended.out.split()[0] == "method"
    assert "report:" not in ended.out
    assert "`runs/report.html` cannot be written" in ended.err
    assert "`recollect report runs -o FILE`" in ended.err
    assert "Traceback" not in ended.err


def wanted_in(spec: Path) -> list[Request]:
    return requests(cells(load_spec(spec)), range(1))


def test_json_tells_every_event_and_a_failed_run_makes_the_exit_code(
    recollect_run: Command,
) -> None:
    ended = recollect_run(
        *["--spec", "small.toml", "--method", "diverging", "--method", "van"],
        *["--seeds", "3:4", "--workers", "1", "--json"],
    )
    assert ended.code == 1
    told = [json.loads(line) for line in ended.out.splitlines()]
    kinds = [
        (event["event"], event.get("method")) for event in told if event["event"] != "progress"
    ]
    assert kinds == [
        ("started", "diverging"),
        ("failed", "diverging"),
        ("started", "van"),
        ("done", "van"),
        ("summary", None),
    ]
    assert told[-1]["rows"][0]["accuracy"]["sd"] is None
    assert "NonFiniteError" in next(e["message"] for e in told if e["event"] == "failed")
    assert "again: recollect run mnist-split --spec small.toml --method diverging" in ended.err


def test_a_dry_run_says_what_is_missing_and_runs_nothing(
    recollect_run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ["--spec", "small.toml", "--method", "er", "--method", "van", "--dry-run"]
    recollect_run("--spec", "small.toml", "--method", "er", "--seeds", "1", "--workers", "1")
    monkeypatch.setattr(subprocess, "Popen", None)
    ended = recollect_run(*asked, "--seeds", "4", "--workers", "3")
    assert (ended.code, ended.err) == (0, "")
    heading, er, van, in_all = ended.out.splitlines()
    assert heading.split() == [
        *("benchmark", "method", "passes", "memory", "there", "missing"),
        *("CPU", "time", "per", "run", "in", "all", "seeds"),
    ]
    words = er.split()
    assert words[:6] == ["mnist-split", "er", "joint", "20", "1", "3"]
    assert words[-3:] == ["1", "to", "3"]
    assert van.split()[3:8] == ["-", "0", "4", "?", "?"]
    assert re.fullmatch(
        r"7 of 8 runs are missing: about \d+ s of CPU time, \d+ s with 3 workers\. "
        r"No record tells how long 4 of them take\.",
        in_all,
    )
    (told,) = recollect_run(*asked, "--seeds", "1", "--json").out.splitlines()
    assert [(row["method"], row["seeds"]) for row in json.loads(told)["rows"]] == [
        ("van", [[0, 0]])
    ]
    there = recollect_run("--spec", "small.toml", "--method", "er", "--seeds", "1", "--dry-run")
    assert there.out == "Nothing is missing: all 1 runs are there.\n"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("mnist-splt",), 1, "benchmark: is 'mnist-splt'; did you mean `mnist-split`?"),
        (("--method", "er-pcc"), 1, "did you mean `er-pc`?"),
        (("--memory", "5"), 1, "memory: is 5, but er replays 10 examples"),
        (("--set", "optimizer.lrr=1"), 1, "optimizer.lrr: unknown key; did you mean `lr`?"),
        (("--set", "benchmark=mnist-permuted"), 1, "name the benchmark as the argument"),
        (("--set", "protocol=mir-official"), 1, "choose the protocol with --protocol"),
        (("--protocol", "raptormai"), 1, "protocol: is 'raptormai'; mnist-split is defined for"),
        (("--spec", "absent.toml"), 1, "absent.toml has 1 problem:\n  cannot be read"),
        (("cifar10-split", "--spec", "small.toml"), 1, "the command says 'cifar10-split'"),
        (("--out", "small.toml"), 1, "is not a folder; choose another with --out"),
        (("--seeds", "none"), 2, "--seeds"),
        (("--seeds", "5:5"), 2, "--seeds"),
        (("--seeds", "-3"), 2, "--seeds"),
    ],
)
def test_a_mistake_is_answered_with_what_to_do_and_no_traceback(
    recollect_run: Command, arguments: tuple[str, ...], code: int, message: str
) -> None:
    ended = recollect_run(*arguments)
    assert ended.code == code
    assert message in ended.err
    assert "Traceback" not in ended.err
    assert ended.out == ""


def test_a_fresh_run_counts_what_other_code_made_as_missing(recollect_run: Command) -> None:
    Path("spec.toml").write_text(SPEC)
    words = ("--spec", "spec.toml", "--method", "van", "--seeds", "1", "--workers", "1")
    assert recollect_run(*words).code == 0
    store = Store("runs")
    (request,) = requests(cells(load_spec("spec.toml"), methods=["van"]), range(1))
    (record,) = store.records()
    store.add(request, replace(record, versions=record.versions | {"code": "yesterday's"}))
    assert "Nothing is missing" in recollect_run(*words, "--dry-run").out
    assert "1 of 1 runs are missing" in recollect_run(*words, "--fresh", "--dry-run").out
    ended = recollect_run(*words, "--fresh")
    assert ended.code == 0
    assert "1/1  mnist-split van seed 0" in ended.err
