"""Files of trackers, read back by the libraries whose files they are."""

import csv
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator  # type: ignore[import-untyped]

import recollect
from recollect.models import mlp, seeded
from recollect.testing import check_tracker
from recollect.trackers import CSV, TensorBoard, Tracker

KINDS = (CSV, TensorBoard)
Read = Callable[[Path], dict[str, list[tuple[int, float]]]]


def read_csv(folder: Path) -> dict[str, list[tuple[int, float]]]:
    with (folder / "steps.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    names = [name for name in (rows[0] if rows else {}) if name != "step"]
    return {
        name: [(int(row["step"]), float(row[name])) for row in rows if row[name]] for name in names
    }


def read_tensorboard(folder: Path) -> dict[str, list[tuple[int, float]]]:
    events = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    events.Reload()
    return {
        name: [(event.step, event.value) for event in events.Scalars(name)]
        for name in events.Tags()["scalars"]
    }


READ: dict[type[Tracker], Read] = {CSV: read_csv, TensorBoard: read_tensorboard}


def file_of(folder: Path) -> Path:
    (file,) = (path for path in folder.iterdir() if path.name != "started")
    return file


@pytest.mark.parametrize("kind", KINDS)
def test_a_tracker_keeps_steps_over_the_end_of_a_process(kind: type[Tracker]) -> None:
    check_tracker(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_kept_is_read_back_by_the_library(kind: type[Tracker], tmp_path: Path) -> None:
    tracker = kind(tmp_path)
    tracker.keep(1, {"loss/incoming": 0.5})
    tracker.keep(4, {"loss/incoming": 0.25, "accuracy/classes 0, 1": 1.0})
    tracker.close()
    assert READ[kind](tmp_path) == {
        "loss/incoming": [(1, 0.5), (4, 0.25)],
        "accuracy/classes 0, 1": [(4, 1.0)],
    }


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_that_a_kill_cut_short_is_removed_and_written_again(
    kind: type[Tracker], tmp_path: Path
) -> None:
    whole = kind(tmp_path / "whole")
    for step in (1, 2, 3):
        whole.keep(step, {"loss": step / 4, "norm": 1.5})
    whole.close()
    content = file_of(tmp_path / "whole").read_bytes()
    for cut in range(len(content)):
        folder = tmp_path / str(cut)
        folder.mkdir()
        (folder / file_of(tmp_path / "whole").name).write_bytes(content[:cut])
        tracker = kind(folder)
        for step in range(tracker.last_step + 1, 4):
            tracker.keep(step, {"loss": step / 4, "norm": 1.5})
        tracker.close()
        if kind is CSV or cut % 10 == 0:  # TensorBoard's reader takes its time
            assert READ[kind](folder) == {
                "loss": [(1, 0.25), (2, 0.5), (3, 0.75)],
                "norm": [(1, 1.5), (2, 1.5), (3, 1.5)],
            }


def test_zeros_that_a_power_cut_left_are_no_record(tmp_path: Path) -> None:
    tracker = TensorBoard(tmp_path)
    tracker.keep(1, {"loss": 0.5})
    tracker.close()
    with file_of(tmp_path).open("ab") as file:
        file.write(bytes(64))
    again = TensorBoard(tmp_path)
    assert again.last_step == 1
    again.keep(2, {"loss": 0.25})
    again.close()
    assert read_tensorboard(tmp_path) == {"loss": [(1, 0.5), (2, 0.25)]}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["van", "er", "er-p"])
def test_ones_own_loop_writes_reports(kind: type[Tracker], method: str, tmp_path: Path) -> None:
    learner = new_learner(method)
    tracker = kind(tmp_path)
    rng = torch.Generator().manual_seed(0)
    reports = []
    for _ in range(3):
        inputs, labels = torch.randn(4, 6, generator=rng), torch.randint(3, (4,), generator=rng)
        reports.append(learner.observe(inputs, labels))
        tracker.write(reports[-1], memory=learner.memory, accuracy=0.5)
    tracker.close()
    found = READ[kind](tmp_path)
    assert [step for step, _ in found["loss/incoming"]] == [1, 2, 3]
    losses = [loss for _, loss in found["loss/incoming"]]
    assert losses == pytest.approx([report.loss for report in reports], rel=1e-6)
    assert found["accuracy"] == [(1, 0.5), (2, 0.5), (3, 0.5)]
    assert ("loss/replayed" in found) == (method != "van")
    assert ("weight/replayed" in found) == (method == "er-p")
    if method == "er-p":
        update = reports[-1].updates[-1]
        for name, norm in (("incoming", update.incoming_norm), ("target", update.target_norm)):
            assert found[f"norm/{name}"][-1][1] == pytest.approx(norm, rel=1e-6)
    if learner.memory is not None:
        counts = learner.memory.counts_by_class()
        last = {name: values[-1][1] for name, values in found.items()}
        assert {c: last[f"memory/class {c}"] for c in counts} == counts
        assert last["age/most"] == float(learner.memory.ages().max())


def new_learner(method: str = "er") -> recollect.Learner:
    model = seeded(lambda: mlp(6, 3), 0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return recollect.method(method, model, optimizer, capacity=8, replay=4)


def test_a_loop_that_continues_from_a_checkpoint_writes_no_step_twice(tmp_path: Path) -> None:
    batch = torch.ones(2, 6), torch.tensor([0, 1])
    learner, tracker = new_learner(), CSV(tmp_path)
    for step in range(1, 6):
        tracker.write(learner.observe(*batch))
        if step == 2:
            learner.save(tmp_path / "learner.ckpt")
    tracker.close()  # killed here: steps 3 to 5 are made again
    learner, tracker = new_learner(), CSV(tmp_path)
    learner.load(tmp_path / "learner.ckpt")
    for _ in range(5):
        tracker.write(learner.observe(*batch))
    tracker.close()
    assert [step for step, _ in read_csv(tmp_path)["loss/incoming"]] == [1, 2, 3, 4, 5, 6, 7]


def test_a_loop_that_begins_in_the_folder_of_another_is_refused(tmp_path: Path) -> None:
    batch = torch.ones(2, 6), torch.tensor([0, 1])
    tracker = CSV(tmp_path)
    tracker.write(new_learner().observe(*batch))
    with pytest.raises(ValueError, match=r"holds steps up to 1 of another run.*pass another fold"):
        tracker.write(new_learner().observe(*batch))
    tracker.close()


def test_labels_that_are_no_classes_have_ages_alone(tmp_path: Path) -> None:
    model = torch.nn.Linear(6, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    learner = recollect.method("er", model, optimizer, replay=2, loss=torch.nn.MSELoss())
    tracker = CSV(tmp_path)
    tracker.write(learner.observe(torch.ones(2, 6), torch.zeros(2, 1)), memory=learner.memory)
    tracker.close()
    found = read_csv(tmp_path)
    assert "age/median" in found
    assert not any(name.startswith("memory/class") for name in found)


def test_a_tracker_that_forgets_is_noticed(tmp_path: Path) -> None:
    class Forgetful(Tracker):
        last_step = 0

        def keep(self, step: int, _: object) -> None:
            self.last_step = step

    with pytest.raises(AssertionError, match="would write its steps twice"):
        check_tracker(Forgetful)


def test_naming_trackers_imports_neither_torch_nor_tensorboard() -> None:
    program = """
import sys
import recollect.trackers
print({"torch", "tensorboard", "numpy"} & set(sys.modules))
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ended.stdout.strip() == "set()"


def test_tensorboard_is_kept_without_torchs_writer_and_without_a_warning(tmp_path: Path) -> None:
    program = f"""
import sys
from recollect.trackers import TensorBoard
tracker = TensorBoard({str(tmp_path)!r})
tracker.keep(1, {{"loss": 0.5}})
tracker.close()
print({{"torch", "tensorflow"}} & set(sys.modules))
"""
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True
    )
    assert (ended.stdout.strip(), ended.stderr) == ("set()", "")
