"""What no command can do is answered at once, in words, whoever asks for it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from recollect.cli import main

SPEC = """
benchmark = "mnist-split"
memory = [20]
[stream]
examples_per_segment = 20
[methods.er]
[methods.van]
"""


class Ended(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def recollect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ended]:
    """Run the command in this process, in a folder with a small spec."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(SPEC)
    monkeypatch.setattr(subprocess, "Popen", None)  # nothing of this may start a worker

    def run(*words: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["recollect", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return Ended(int(ended.value.code or 0), *capsys.readouterr())

    return run


def test_a_named_pipe_in_place_of_a_checkpoint_is_told_as_what_it_is(
    recollect: Callable[..., Ended],
) -> None:
    os.mkfifo("learner.ckpt")
    ended = recollect("inspect", "learner.ckpt")
    assert (ended.code, ended.err) == (
        1,
        "error: `learner.ckpt` is not a file; nothing was loaded.\n",
    )


HUGE = "1" + "0" * 24


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "--seeds", "9" * 20), "the largest seed that a record holds is"),
        (("run", "--seeds", f"{2**63}:{2**63 + 1}"), "the largest seed that a record holds is"),
        (("run", "--seeds", str(2**63)), "the largest seed that a record holds is"),
        (("run", "--seeds", "9" * 20, "--dry-run"), "the largest seed that a record holds is"),
        (("run", "--seeds", "9" * 5000), "write a number such as 10"),
        (("run", "--seeds", str(10**8)), "one command makes at most 100,000"),
        (("paper", "table1", "--seeds", str(10**8)), "one command makes at most 100,000"),
        (("paper", "table1", "--seeds", "9" * 20), "--seeds"),
        (("run", "--memory", HUGE), "--memory"),
        (("run", "--workers", HUGE), "--workers"),
        (("run", "--threads", HUGE), "--threads"),
        (("run", "--set", f"memory=[{HUGE}]"), "less than or equal to 1000000000"),
        (("run", "--set", f"stream.batch_size={HUGE}"), "less than or equal to 1000000000"),
        (("run", "--set", f"evaluation.points={HUGE}"), "less than or equal to 1000000000"),
        (("run", "--set", f"methods.er.replay={HUGE}"), "it should be at most 1,000,000,000"),
        (("run", "--set", f"methods.er-mir.candidates={HUGE}"), "at most 1,000,000,000"),
        (("run", "--set", "seeds=" + "9" * 5000), "seeds: is '99999"),
        (("run", "--set", "seeds=0x" + "f" * 5000), "seeds: is a very large int"),
        (("run", "--set", "a=" + "[" * 5000), "a: unknown key"),
        (("run", "--set", "a=" + "[" * 50 + "]" * 50), "nests tables or lists too deeply"),
        (("run", "--set", ".".join("a" * 5000) + "=1"), "write it as path.to.key=value"),
        (("run", "--out", "x" * 300), "`" + "x" * 20),
        (("report", "x" * 300), "`" + "x" * 20),
        (("inspect", "x" * 300), "`" + "x" * 20),
        (("inspect", "/dev/zero"), "`/dev/zero` is not a file"),
        (("run", "--spec", "/dev/zero"), "cannot be read (it is a device, not a file)"),
    ],
)
def test_what_cannot_be_done_is_answered_with_its_limit(
    recollect: Callable[..., Ended], words: tuple[str, ...], message: str
) -> None:
    ended = recollect(*words, *(["--spec", "small.toml"] if words == ("run",) else []))
    told = " ".join(ended.err.replace("│", " ").split())
    assert ended.code in (1, 2)
    assert message in told
    assert "Traceback" not in told
    assert len(told) < 2000  # the value is not printed whole
    assert ended.out == ""


SPECS = {
    "lists in lists": ("a=" + "[" * 100_000, "nests tables or lists too deeply"),
    "closed lists in lists": ("a=" + "[" * 90 + "]" * 90, "nests tables or lists too deeply"),
    "tables in tables": ("[" + ".".join("a" * 20_000) + "]", "nests tables or lists too deeply"),
    "inline tables": ("a=" + "{a=" * 100_000, "nests tables or lists too deeply"),
    "a number of 5,000 digits": ("seeds=" + "9" * 5000, "is not TOML: Exceeds the limit"),
    "two megabytes": ("#" * 2_000_000, "it has 2,000,000 bytes; at most 1,000,000 are read"),
    "a name of 228 letters": (SPEC + f"[methods.{'m' * 228}]\nbase='er'", "at most 64"),
    "a name of 250 letters": (SPEC + f"[methods.{'m' * 250}]\nbase='er'", "at most 64"),
}


@pytest.mark.parametrize("name", SPECS)
def test_a_spec_that_no_one_could_have_meant_is_refused_in_words(
    recollect: Callable[..., Ended], name: str
) -> None:
    text, message = SPECS[name]
    Path("odd.toml").write_text(text)
    ended = recollect("run", "--spec", "odd.toml")
    assert ended.code == 1
    assert message in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.parametrize("option", ["--spec", "--set"])
def test_a_pipe_in_place_of_a_file_is_refused_and_not_waited_for(
    recollect: Callable[..., Ended], option: str
) -> None:
    os.mkfifo("pipe.py")
    asked = "pipe.py" if option == "--spec" else "methods.mine={storage='pipe.py:Mine'}"
    ended = recollect("run", option, asked)
    assert ended.code == 1
    assert "it is a named pipe, not a file" in ended.err


def test_a_part_file_without_end_is_refused(recollect: Callable[..., Ended]) -> None:
    Path("endless.py").symlink_to("/dev/zero")
    ended = recollect("run", "--set", "methods.mine={storage='endless.py:Mine'}")
    assert "it is a device, not a file" in ended.err


def test_counting_what_is_missing_makes_no_list_of_it(recollect: Callable[..., Ended]) -> None:
    asked = ["run", "--spec", "small.toml", "--dry-run", "--method", "er", "--method", "van"]
    ended = recollect(*asked, "--seeds", str(10**8))
    assert (ended.code, ended.err) == (0, "")
    assert "200,000,000 of 200,000,000 runs are missing" in ended.out
    assert "0 to 99999999" in ended.out
    told = json.loads(recollect(*asked, "--seeds", f"5:{2**62}", "--json").out)
    assert [row["seeds"] for row in told["rows"]] == [[[5, 2**62 - 1]]] * 2


def test_a_table_of_many_seeds_is_counted_too(recollect: Callable[..., Ended]) -> None:
    ended = recollect("paper", "figure1", "--seeds", str(10**8), "--dry-run")
    assert ended.code == 0
    assert "500,000,000 of 500,000,000 runs are missing" in ended.out


def in_plain_c(*words: str | bytes, cwd: Path, out: int = subprocess.PIPE) -> Ended:
    """Run the command where Python takes text for ASCII."""
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command: list[str | bytes] = [sys.executable, "-m", "recollect", *words]
    done = subprocess.run(
        command, env=os.environ | plain, cwd=cwd, stdout=out, stderr=subprocess.PIPE, check=False
    )
    said = (
        stream.decode("utf-8", "surrogateescape") for stream in (done.stdout or b"", done.stderr)
    )
    return Ended(done.returncode, *said)


def test_a_path_that_is_no_text_is_written_to_and_printed_as_it_was_given(tmp_path: Path) -> None:
    folder = b"l\xe4ufe"  # Latin-1; the next test has a path in UTF-8
    (tmp_path / "small.toml").write_text(SPEC)
    asked = ["run", "--spec", "small.toml", "--method", "van", "--seeds", "1", "--workers", "1"]
    ended = in_plain_c(*asked, "--out", folder, cwd=tmp_path)
    assert (ended.code, ended.err.count("Traceback")) == (0, 0), ended.err
    assert f"report: {os.fsdecode(folder)}/report.html" in ended.out
    assert (tmp_path / os.fsdecode(folder) / "report.html").is_file()


def test_a_spec_beyond_ascii_is_run_and_named_in_its_record(tmp_path: Path) -> None:
    (tmp_path / "klein-ä.toml").write_text(SPEC)
    asked = ["run", "--method", "van", "--seeds", "1", "--workers", "1", "--quiet"]
    ended = in_plain_c(*asked, "--spec", "klein-ä.toml".encode(), cwd=tmp_path)
    assert ended.code == 0, ended.err
    (record,) = (tmp_path / "runs" / "records").glob("*/*.parquet")
    assert "klein-ä.toml".encode() in record.read_bytes()
    ended = in_plain_c("report", "runs", "-o", "seite-ü.html".encode(), cwd=tmp_path)
    assert ended.code == 0, ended.err
    assert "klein-ä.toml" in (tmp_path / "seite-ü.html").read_text()


def test_a_full_disk_behind_the_output_is_an_error_in_words(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        ended = in_plain_c("data", "list", cwd=tmp_path, out=full.fileno())
    assert ended.code != 0
    assert "No space left on device" in ended.err
    assert "Traceback" not in ended.err
