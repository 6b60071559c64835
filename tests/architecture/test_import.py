"""Importing recollect does no work and costs nothing it does not need."""

import importlib
import inspect
import json
import pkgutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import typer

import recollect
from recollect.cli import COMMANDS

LAZY = ("recollect.benchmarks", "recollect.datasets", "recollect.metrics")
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


LIGHT = """
import json, sys
from recollect.cli import main
sys.argv = ["recollect", *sys.argv[1:]]
try:
    main()
except SystemExit:
    pass
print(json.dumps(sorted(sys.modules)))
"""
QUICK = {
    "help": ("--help",),
    "version": ("--version",),
    "help on running": ("run", "--help"),
    "help on searching": ("tune", "--help"),
    "help on first specs": ("new", "--help"),
    "help on reports": ("report", "--help"),
    "help on figures": ("figure", "--help"),
    "help on memories": ("inspect", "--help"),
    "help on digests": ("verify", "--help"),
    "help on costs": ("cost", "--help"),
    "the data sets": ("data", "list"),
    "the methods": ("methods",),
    "an unknown benchmark": ("run", "mnist-splt"),
    "an unknown key": ("run", "--set", "optimizer.lrr=1"),
    "an unknown method": ("run", "--method", "er-pcc"),
    "an unknown method to measure": ("cost", "mnist-split", "--method", "er-pcc"),
    "a method without a cost": ("run", "--set", "stream.budget=1", "--method", "er-p"),
    "an unknown option": ("run", "--set", "methods.er-p.step_sizee=1"),
    "an option of the wrong type": ("run", "--set", "methods.er-p.steps=few"),
    "a spec that is not there": ("run", "--spec", "absent.toml"),
    "seeds that are no number": ("run", "--seeds", "none"),
    "an unknown benchmark to search on": ("tune", "mnist-splt"),
    "an unknown method to search": ("tune", "mnist-split", "--method", "er-pcc"),
    "an unknown key of a search": ("tune", "mnist-split", "--set", "tune.trils=3"),
    "a first spec of another ending": ("new", "my.yaml", "--data", "photos"),
    "a store that is not there": ("report", "absent"),
    "a store to check that is not there": ("verify", "absent"),
}


@pytest.mark.parametrize("name", QUICK)
def test_what_needs_no_array_imports_no_library_of_arrays(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", LIGHT, *QUICK[name]]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    modules = json.loads(done.stdout.splitlines()[-1])
    assert {"torch", "numpy", *HEAVY} & set(modules) == set()
    # Where the time goes that is left: 0.01 s for Python, 0.2 s for the command line and pydantic.
    assert len(modules) < 900
    assert "Traceback" not in done.stderr


def test_what_counts_runs_and_tells_of_records_imports_no_torch(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LIGHT, "run", "--dry-run", "--seeds", "100000000"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    modules = json.loads(done.stdout.splitlines()[-1])
    assert "runs are missing" in done.stdout
    assert {"torch", "scipy", "matplotlib"} & set(modules) == set()


@pytest.mark.parametrize("package", ["recollect", *LAZY])
def test_a_name_of_a_package_is_itself_whatever_was_imported_before(package: str) -> None:
    """Submodules are called like names: importing one must not put it in the name's place."""
    module = importlib.import_module(package)
    before = {name: getattr(module, name) for name in module.__all__}
    for submodule in pkgutil.iter_modules(module.__path__, f"{package}."):
        if not submodule.name.endswith("__main__"):
            importlib.import_module(submodule.name)
    assert {name: getattr(module, name) for name in module.__all__} == before
    assert not any(isinstance(found, ModuleType) for found in before.values())
    assert set(module.__all__) <= set(dir(module))


@pytest.mark.parametrize("package", ["recollect", *LAZY])
def test_an_unknown_name_of_a_package_is_an_ordinary_attribute_error(package: str) -> None:
    module = importlib.import_module(package)
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        _ = module.nothing


def test_each_subcommand_is_told_of_by_its_own_first_sentence() -> None:
    for name, (called, told) in COMMANDS.items():
        found = getattr(importlib.import_module(f"recollect.cli.{name}"), called)
        own = found.info.help if isinstance(found, typer.Typer) else inspect.getdoc(found)
        first = " ".join(str(own).split("\n\n")[0].split())
        assert first == told


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
