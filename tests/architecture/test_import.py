"""Importing recollect does no work and costs nothing it does not need."""

import json
import subprocess
import sys

import pytest

import recollect

HEAVY = ("torchvision", "matplotlib", "scipy", "pandas", "PIL", "pyarrow", "datasets")

LOOK = """
import json, random, sys, torch, numpy
torch.set_num_threads(2)
def state():
    return {
        "threads": torch.get_num_threads(),
        "torch": torch.get_rng_state().tolist(),
        "numpy": repr(numpy.random.get_state(legacy=False)),
        "python": repr(random.getstate()),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "gradients": torch.is_grad_enabled(),
        "dtype": str(torch.get_default_dtype()),
    }
before = state()
import recollect
changed = [key for key, value in state().items() if value != before[key]]
print(json.dumps({"changed": changed, "modules": sorted(sys.modules)}))
"""


@pytest.fixture(scope="module")
def looked() -> dict[str, list[str]]:
    """Return what a fresh process saw of the import."""
    command = [sys.executable, "-W", "error", "-c", LOOK]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_importing_changes_no_setting_and_no_generator(looked: dict[str, list[str]]) -> None:
    assert looked["changed"] == []


def test_importing_does_not_bring_what_only_some_need(looked: dict[str, list[str]]) -> None:
    assert [name for name in HEAVY if name in looked["modules"]] == []


def test_the_public_names_are_there() -> None:
    promised = {"Learner", "Memory", "StepReport", "method", "methods"}
    assert promised <= set(recollect.__all__)


def test_all_names_only_what_exists_once_and_in_order() -> None:
    assert all(hasattr(recollect, name) for name in recollect.__all__)
    assert len(set(recollect.__all__)) == len(recollect.__all__)


def test_the_methods_of_the_paper_are_there() -> None:
    promised = {"van", "er", "er-p", "er-c", "er-pc", "er-mir", "er-pc-mir", "gss", "a-gem"}
    assert promised <= set(recollect.methods())
    assert all(line and "\n" not in line for line in recollect.methods().values())
