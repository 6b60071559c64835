"""The examples run, say what they promise, and stay short enough to read."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
from tests.unit.learner.support import model, run, sgd, stream

from recollect import Learner, Memory
from recollect.objectives import Answers

FOLDER = Path(__file__).parents[2] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))
LONGEST = 100


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and spawned processes look there
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) < LONGEST


def test_every_example_is_run_here() -> None:
    expected = {
        *(
            "custom_formula",
            "custom_objective",
            "custom_retrieval",
            "custom_rule",
            "custom_storage",
        ),
        *("drop_in", "mlflow_tracker", "own_loop", "resume_after_crash", "text"),
    }
    assert {path.stem for path in EXAMPLES} == expected


def test_drop_in_forgets_less_with_replay(capsys: pytest.CaptureFixture[str]) -> None:
    with torch.random.fork_rng(devices=[]):
        load("drop_in").main()
    lines = capsys.readouterr().out.splitlines()[1:]
    means = {line.split()[0]: int(line.split()[-1].removesuffix("%")) for line in lines}
    assert means["van"] + 20 < min(means["er"], means["er-p"])


def test_languages_are_forgotten_without_replay(capsys: pytest.CaptureFixture[str]) -> None:
    with torch.random.fork_rng(devices=[]):
        load("text").main()
    lines = capsys.readouterr().out.splitlines()[1:]
    means = {line.split()[0]: int(line.split()[-1].removesuffix("%")) for line in lines}
    assert means["van"] < means["er"]


def test_the_custom_retrieval_passes_the_checks(capsys: pytest.CaptureFixture[str]) -> None:
    load("custom_retrieval").main()
    assert capsys.readouterr().out.startswith("stored examples were replayed 0 to ")


def test_the_custom_objective_passes_the_checks(capsys: pytest.CaptureFixture[str]) -> None:
    load("custom_objective").main()
    assert capsys.readouterr().out.startswith("loss of stored examples when they came: 0.")


def test_a_replayed_example_may_be_surer_than_it_was_and_not_less_sure() -> None:
    objective = load("custom_objective").NoLessSure(weight=3.0)
    logits = torch.zeros(3, 2)  # a loss of log 2 each
    kept = {"kept": torch.tensor([0.5, 1.0])}
    losses = objective(Answers(logits, torch.tensor([0, 1, 0]), [False, True, True], kept))
    two = torch.tensor(2.0).log()
    torch.testing.assert_close(losses, torch.stack([two, two + 3 * (two - 0.5), two]))


def test_the_own_loop_gives_the_bits_of_observe() -> None:
    own_loop = load("own_loop")
    assert own_loop.compare("er", None)
    assert own_loop.compare("er-p", own_loop.PrincipalDirection())


def test_the_comparison_of_the_own_loop_can_fail() -> None:
    own_loop = load("own_loop")
    assert not own_loop.compare("er", own_loop.PrincipalDirection())


def test_a_crash_changes_nothing() -> None:
    command = [sys.executable, str(FOLDER / "resume_after_crash.py")]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.stdout.splitlines() == [
        "the first process died with exit code 1",
        "it left a checkpoint of step 56",
        "step 100: same bits as a run that never stopped",
    ]


def test_the_custom_rule_passes_the_checks(capsys: pytest.CaptureFixture[str]) -> None:
    load("custom_rule").main()
    assert capsys.readouterr().out.startswith("weights of the last step: tensor([1.0")


def test_surgery_takes_the_conflict_out_and_leaves_agreement_alone() -> None:
    surgery = load("custom_rule").Surgery()
    incoming, replayed = torch.tensor([1.0, 0.0]), torch.tensor([[-1.0, 2.0], [-1.0, 0.0]])
    rows = torch.cat((incoming[None], replayed))
    # g loses its part along r = (-1, 1), r its part along g: (1/2, 1/2) + (0, 1).
    assert torch.allclose(surgery(rows @ rows.T) @ rows, torch.tensor([0.5, 1.5]))
    rows[1:] *= -1
    assert torch.allclose(surgery(rows @ rows.T), torch.tensor([1.0, 0.5, 0.5]))


def test_the_custom_storage_passes_the_checks(capsys: pytest.CaptureFixture[str]) -> None:
    load("custom_storage").main()
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("slots by class: {0: ")
    assert second.startswith("stored in the last")


def test_the_custom_storage_keeps_the_newest_of_each_class() -> None:
    net = model()
    storage = load("custom_storage").NewestOfEachClass()
    memory = Memory(12)
    batches = stream(12)
    run(Learner(net, sgd(net), memory=memory, storage=storage), batches)
    labels = torch.cat([labels for _, labels in batches])
    for label in memory.counts_by_class():
        mine = sorted(memory.arrived_at[memory.labels == label].tolist())
        arrived = (labels == label).nonzero().squeeze(1) + 1
        assert mine == arrived[-len(mine) :].tolist()


def test_a_formula_of_ones_own_is_checked_and_used(capsys: pytest.CaptureFixture[str]) -> None:
    with torch.random.fork_rng(devices=[]):
        load("custom_formula").main()
    assert capsys.readouterr().out.startswith("the formula is exact")
