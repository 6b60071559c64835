"""Parts from a file of the user: found, checked, hashed, run by a worker, and continued."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from recollect.cli import app
from recollect.errors import ConfigError
from recollect.experiments.records.compare_records import without_times
from recollect.experiments.records.store import Store
from recollect.experiments.running.execute import Stopped, execute
from recollect.experiments.specs.build import build
from recollect.experiments.specs.cell import Cell, cells
from recollect.experiments.specs.request import Request, requests
from recollect.experiments.specs.spec import load_spec

IDEA = """
from dataclasses import dataclass

import torch

from recollect.retrieval import Retrieval
from recollect.rules import Rule
from recollect.storage import Placement, Reservoir, Storage

print("a machine may be reading our output")


class Never(Storage):
    def place(self, labels, memory, evidence, rng):
        slots = torch.arange(len(memory), len(memory) + len(labels))
        return Placement(torch.where(slots < memory.capacity, slots, -1))


@dataclass(frozen=True)
class Oldest(Retrieval):
    replay: int
    skip: int = 0

    def select(self, memory, probe, rng):
        return torch.arange(len(memory))[: self.replay]


@dataclass(frozen=True)
class Half(Rule):
    share: float
    device: torch.device = torch.device("cpu")

    def __call__(self, gram):
        weights = gram.new_full((len(gram),), self.share / (len(gram) - 1))
        weights[0] = 1 - self.share
        return weights


class Unfinished(Storage):
    pass
"""
PREDICTOR = """
from dataclasses import dataclass
from typing import ClassVar

from recollect.predictors import Predictor


@dataclass(eq=False)
class Slow(Predictor):
    follows_weights: ClassVar[bool] = True

    share: float = 0.5

    def __post_init__(self):
        self.bias = {}

    def __call__(self, inputs, view):
        return view.outputs(inputs) + sum(self.bias.values())

    def prepared(self, weights):
        (name, last), old = list(weights.items())[-1], self.bias
        now = {name: self.share * old.get(name, last.detach()) + (1 - self.share) * last.detach()}
        return lambda: setattr(self, "bias", now)

    def state(self):
        return dict(self.bias)

    def restore(self, state):
        self.bias = dict(state)
"""
OBJECTIVE = Path(__file__).parents[4] / "examples" / "custom_objective.py"

CellOf = Callable[..., Cell]


@pytest.fixture
def idea(tmp_path: Path) -> Path:
    path = tmp_path / "idea.py"
    path.write_text(IDEA)
    path.with_name("slow.py").write_text(PREDICTOR)
    return path


@pytest.fixture
def cell_of(small_spec: Path, idea: Path) -> CellOf:
    def resolve(*settings: str, method: str = "mine") -> Cell:
        overrides = [
            f"methods.{method}.{setting}".replace("IDEA", str(idea)) for setting in settings
        ]
        overrides = [text.replace("SLOW", str(idea.with_name("slow.py"))) for text in overrides]
        (cell,) = cells(load_spec(small_spec, overrides=overrides), methods=[method])
        return cell

    return resolve


def problems_of(cell_of: CellOf, *settings: str, method: str = "mine") -> dict[str, str]:
    with pytest.raises(ConfigError) as raised:
        cell_of(*settings, method=method)
    return dict(raised.value.problems)


def test_all_three_parts_reach_the_learner_with_their_options(cell_of: CellOf) -> None:
    cell = cell_of(
        "storage=IDEA:Never", "retrieval=IDEA:Oldest", "rule=IDEA:Half", "share=0.25", "skip=3"
    )
    _, learner = build(Cell.from_json(cell.canonical_json), 0)
    assert type(learner.storage).__name__ == "Never"
    assert type(learner.retrieval).__name__ == "Oldest"
    assert vars(learner.retrieval) == {"replay": 10, "skip": 3}
    assert vars(learner.rule)["share"] == 0.25
    assert cell.options == {"share": 0.25, "skip": 3}  # a device is nothing a spec can say


def test_a_part_can_be_one_of_the_librarys(cell_of: CellOf) -> None:
    _, learner = build(cell_of("storage=IDEA:Reservoir"), 0)
    assert type(learner.storage).__module__ == "recollect.storage.reservoir"


def test_the_rest_is_the_bases_with_the_settings_the_spec_gives_it(
    small_spec: Path, idea: Path
) -> None:
    with small_spec.open("a") as spec:
        spec.write("[methods.er-pc]\nlr = 0.3\nstep_size = 7.0\npick = 'proportional'\n")
        spec.write(f"[methods.mine]\nbase = 'er-pc'\nstorage = '{idea}:Never'\nnorm_floor = 2.0\n")
    (cell,) = cells(load_spec(small_spec), methods=["mine"])
    assert cell.optimizer["lr"] == 0.3
    assert (cell.options["step_size"], cell.options["norm_floor"]) == (7.0, 2.0)
    assert "pick" not in cell.options  # of the storage that was replaced


def test_the_hash_follows_the_file_and_not_where_it_lies(
    cell_of: CellOf, idea: Path, tmp_path: Path
) -> None:
    first = cell_of("storage=IDEA:Never")
    (tmp_path / "elsewhere").mkdir()
    copy = tmp_path / "elsewhere" / "idea.py"
    copy.write_text(IDEA)
    assert cell_of(f"storage={copy}:Never").spec_hash == first.spec_hash
    assert cell_of("storage=IDEA:Reservoir").spec_hash != first.spec_hash
    idea.write_text(IDEA.replace("-1", "-1 "))
    assert cell_of("storage=IDEA:Never").spec_hash != first.spec_hash


def test_a_file_changed_since_is_not_run_for_what_it_was(cell_of: CellOf, idea: Path) -> None:
    cell = cell_of("storage=IDEA:Never")
    idea.write_text(IDEA.replace("-1", "-2"))
    record = execute(Request(cell, 0, "again"))
    assert record.status == "failed"
    assert "was changed meanwhile; run the command again" in str(record.error)


def test_what_was_hashed_is_what_runs(cell_of: CellOf, idea: Path) -> None:
    build(cell_of("storage=IDEA:Never"), 0)
    before = idea.stat()
    idea.write_text(IDEA.replace("class Never", "class Nevah"))
    os.utime(idea, ns=(before.st_atime_ns, before.st_mtime_ns))  # as old and as long as it was
    told = problems_of(cell_of, "storage=IDEA:Never")
    assert "has no class Never; did you mean `Nevah`?" in told["methods.mine.storage"]


def test_a_file_may_import_its_neighbours(cell_of: CellOf, idea: Path) -> None:
    (idea.parent / "neighbour_of_idea.py").write_text("from recollect.storage import Reservoir")
    idea.write_text("from neighbour_of_idea import Reservoir")
    assert build(cell_of("storage=IDEA:Reservoir"), 0)[1].storage is not None


def test_neighbours_of_the_same_name_are_not_mixed_up(tmp_path: Path, cell_of: CellOf) -> None:
    found = []
    for number in (1, 2):
        folder = tmp_path / f"v{number}"
        folder.mkdir()
        (folder / "shared_helper.py").write_text(f"SHARE = 0.{number}")
        text = IDEA.replace("share: float", "share: float = shared_helper.SHARE")
        (folder / "idea.py").write_text(f"import shared_helper\n{text}")
        found.append(cell_of(f"rule={folder}/idea.py:Half").options["share"])
    assert found == [0.1, 0.2]


def test_a_rule_without_a_memory_is_still_the_users(cell_of: CellOf) -> None:
    _, learner = build(cell_of("base=van", "rule=IDEA:Half", "share=0.7"), 0)
    assert vars(learner.rule)["share"] == 0.7


def test_saying_a_default_changes_nothing(cell_of: CellOf, idea: Path) -> None:
    idea.write_text(IDEA.replace("share: float", "share: float = 1"))
    silent, said = cell_of("rule=IDEA:Half"), cell_of("rule=IDEA:Half", "share=1")
    assert silent.spec_hash == said.spec_hash


def test_tuned_options_of_a_part_that_was_replaced_are_not_yours(
    small_spec: Path, idea: Path
) -> None:
    idea.write_text(IDEA.replace("share: float", "step_size: float = 2.0\n    share: float = 0.5"))
    with small_spec.open("a") as spec:
        spec.write("[methods.er-p]\nstep_size = 9.0\nlr = 0.3\n")
        spec.write(f"[methods.mine]\nbase = 'er-p'\nrule = '{idea}:Half'\n")
    (cell,) = cells(load_spec(small_spec), methods=["mine"])
    assert (cell.options["step_size"], cell.optimizer["lr"]) == (2.0, 0.3)


@pytest.mark.parametrize(
    ("field", "told"),
    [
        ("lr: float = 0.1", "has a field `lr`, which means another thing here"),
        ("seed: int = 0", "has a field `seed`, which means another thing here"),
        ("pick: str = 'a'", "has a field `pick`, and so has another part"),
    ],
)
def test_an_option_that_could_mean_two_things_is_refused(
    cell_of: CellOf, idea: Path, field: str, told: str
) -> None:
    idea.write_text(IDEA.replace("share: float", f"{field}\n    share: float = 0.5"))
    assert told in problems_of(cell_of, "base=er-c", "rule=IDEA:Half")["methods.mine.rule"]


@pytest.mark.parametrize(
    ("text", "where", "told"),
    [
        ("def __post_init__(self): assert self.share < 1", ".share", "AssertionError"),
        ("def __init__(self): pass", ".share", "unexpected keyword argument"),
    ],
)
def test_a_part_may_complain_as_it_likes(
    cell_of: CellOf, idea: Path, text: str, where: str, told: str
) -> None:
    idea.write_text(IDEA.replace("    def __call__", f"    {text}\n\n    def __call__"))
    problems = problems_of(cell_of, "rule=IDEA:Half", "share=2.0")
    assert told in problems[f"methods.mine{where}"]


def test_annotations_that_cannot_be_read_are_told(cell_of: CellOf, idea: Path) -> None:
    text = "from __future__ import annotations\n" + IDEA.replace("share: float", "share: Nowhere")
    idea.write_text(text)
    problems = problems_of(cell_of, "rule=IDEA:Half", "share=2.0")
    assert "name 'Nowhere' is not defined" in problems["methods.mine"]


def test_fields_that_no_spec_can_say_are_left_alone(cell_of: CellOf, idea: Path) -> None:
    field = (
        "kept: torch.Tensor | None = None\n    most: float = float('inf')\n    share: float = 0.5"
    )
    idea.write_text(IDEA.replace("share: float", field))
    cell = cell_of("rule=IDEA:Half")
    assert vars(build(cell, 0)[1].rule)["most"] == float("inf")
    told = problems_of(cell_of, "rule=IDEA:Half", "kept=3")["methods.mine.kept"]
    assert "which no spec can say" in told


@pytest.mark.parametrize(
    ("settings", "where", "told"),
    [
        (["storage=Never"], ".storage", "is 'Never'; write it as path/to/file.py:Name."),
        (["storage=gone.py:Never"], ".storage", "gone.py cannot be read (No such file"),
        (["storage=IDEA:Nevr"], ".storage", "has no class Nevr; did you mean `Never`?"),
        (["storage=IDEA:Half"], ".storage", "which is no storage; derive it from Storage."),
        (["storage=IDEA:Unfinished"], ".storage", "which lacks place; write it."),
        (["rule=IDEA:Half"], ".share", "is missing; Half needs it."),
        (["rule=IDEA:Half", "share='a'"], ".share", "it should be a number."),
        (["rule=IDEA:Half", "share=0.5", "shar=1"], ".shar", "did you mean `share`?"),
        (["base=van", "storage=IDEA:Never"], ".storage", "van has no memory"),
        (["base=err", "storage=IDEA:Never"], ".base", "'err' is no method"),
        (["storage=IDEA:Never", "rule=IDEA:Never"], ".rule", "which is no rule"),
        (["storage=3"], ".storage", "is '3'; write it as"),
    ],
)
def test_a_mistake_is_told_with_its_place_and_its_cure(
    cell_of: CellOf, settings: list[str], where: str, told: str
) -> None:
    assert told in problems_of(cell_of, *settings)[f"methods.mine{where}"]


@pytest.mark.parametrize("line", ["1 / 0", "raise SystemExit(3)", "def"])
def test_a_file_that_cannot_be_run_is_told(cell_of: CellOf, idea: Path, line: str) -> None:
    idea.write_text(line)
    told = problems_of(cell_of, "storage=IDEA:Never")["methods.mine.storage"]
    assert "cannot be imported from idea.py" in told


@pytest.mark.parametrize("setting", ["storage=IDEA:Never", "base=er-p"])
def test_a_method_of_the_library_is_what_it_is_called(cell_of: CellOf, setting: str) -> None:
    told = problems_of(cell_of, setting, method="er")
    assert told == {"methods.er": "er is a method of the library; give yours a name of its own."}


def test_an_objective_and_a_predictor_reach_the_learner_with_their_options(cell_of: CellOf) -> None:
    said = [f"objective={OBJECTIVE}:NoLessSure", "weight=0.25", "predictor=SLOW:Slow", "share=0.1"]
    _, learner = build(cell_of(*said), 0)
    assert vars(learner.objective) == {"weight": 0.25}
    assert vars(learner.predictor)["share"] == 0.1
    told = problems_of(cell_of, f"objective={OBJECTIVE}:NoLessSure", "wieght=0.25")
    assert "did you mean `weight`?" in told["methods.mine.wieght"]


@pytest.mark.parametrize(
    "said",
    [
        ["storage=IDEA:Never", "rule=IDEA:Half", "share=0.5"],
        [f"objective={OBJECTIVE}:NoLessSure", "predictor=SLOW:Slow"],
    ],
)
def test_a_run_is_continued_to_the_same_bits(
    cell_of: CellOf, said: list[str], tmp_path: Path
) -> None:
    request = requests([cell_of(*said)], [0])[0]
    steps = iter(range(10_000))
    with pytest.raises(Stopped):
        execute(request, checkpoints=tmp_path / "place", should_stop=lambda: next(steps) > 9)
    continued = execute(request, checkpoints=tmp_path / "place")
    assert continued.num_resumes == 1
    assert without_times(continued) == without_times(execute(request))


def test_the_command_compares_an_idea_with_er(
    small_spec: Path, idea: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["run", "--spec", str(small_spec), "-m", "er", "-m", "mine", "--out", str(tmp_path)]
    words += ["--set", f"methods.mine.retrieval={idea}:Oldest", "--workers", "1", "--json"]
    ended = CliRunner().invoke(app, words)
    assert ended.exit_code == 0, ended.output
    records = Store(tmp_path).records()
    assert {(record.method, record.seed) for record in records} == {
        (method, seed) for method in ("er", "mine") for seed in (0, 1)
    }
    assert all(record.status == "done" for record in records)
    command = next(record.command for record in records if record.method == "mine")
    assert f"--set methods.mine.retrieval={idea}:Oldest" in command
    assert "a machine may be" not in ended.stdout
