import os
import sys
from pathlib import Path

from recollect.experiments.machine import commit, machine, peak_memory, usable_cores, versions


def test_versions_are_those_that_decide_the_numbers() -> None:
    assert versions().keys() == {"recollect", "torch", "numpy", "python"}
    assert versions()["python"] == sys.version.split()[0]


def test_the_commit_is_known_in_a_checkout_and_nowhere_else() -> None:
    is_checkout = (Path(__file__).parents[3] / ".git").exists()
    assert len(commit().rstrip("+")) == (40 if is_checkout else 0)


def test_the_machine_is_described_without_its_name() -> None:
    assert machine()["cores"] == str(os.cpu_count())
    assert os.uname().nodename not in machine().values()
    assert 1 <= usable_cores() <= (os.cpu_count() or 1)
    assert peak_memory() > 10_000_000
