import os
import sys
from pathlib import Path

import pytest

from recollect.experiments.running import machine as of_machine
from recollect.experiments.running.machine import (
    code,
    commit,
    machine,
    peak_memory,
    usable_cores,
    versions,
)


def test_versions_are_those_that_decide_the_numbers() -> None:
    assert versions().keys() == {"recollect", "torch", "numpy", "python"}
    assert versions()["python"] == sys.version.split()[0]


def test_the_commit_is_known_in_a_checkout_and_nowhere_else() -> None:
    is_checkout = (Path(__file__).parents[4] / ".git").exists()
    assert len(commit().rstrip("+")) == (40 if is_checkout else 0)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of three files in the place of ours."""
    for name in ("rules/sum.py", "reports/html.py", "cli/run.py"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("x = 1\n")
    monkeypatch.setattr(of_machine, "_PACKAGE", tmp_path)
    return tmp_path


def fresh_code() -> str:
    code.cache_clear()
    try:
        return code()
    finally:
        code.cache_clear()


def test_the_code_is_other_code_once_a_run_could_be_another(package: Path) -> None:
    before = fresh_code()
    assert fresh_code() == before
    (package / "rules" / "sum.py").write_text("x = 2\n")
    changed = fresh_code()
    (package / "rules" / "sum.py").rename(package / "rules" / "add.py")
    assert len({before, changed, fresh_code()}) == 3


@pytest.mark.parametrize("name", ["reports/html.py", "cli/run.py", "rules/sum.md"])
def test_what_only_shows_numbers_is_not_part_of_the_code(package: Path, name: str) -> None:
    before = fresh_code()
    (package / name).write_text("x = 2\n")
    assert fresh_code() == before


def test_the_machine_is_described_without_its_name() -> None:
    assert machine()["cores"] == str(os.cpu_count())
    assert os.uname().nodename not in machine().values()
    assert 1 <= usable_cores() <= (os.cpu_count() or 1)
    assert peak_memory() > 10_000_000
