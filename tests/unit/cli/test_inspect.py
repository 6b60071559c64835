import json
import re
from pathlib import Path

import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

import recollect
from recollect.cli import app
from recollect.errors import RecollectError
from recollect.models import mlp, seeded


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A learner that scores its memory, after 600 examples of Split MNIST."""
    bench = recollect.benchmark("mnist-split", seed=0)
    model = bench.model()
    sgd = torch.optim.SGD(model.parameters(), lr=0.05)
    learner = recollect.method("er-c", model, sgd, capacity=100, transform=bench.transform)
    for _, (inputs, labels) in zip(range(60), bench.stream, strict=False):
        learner.observe(inputs, labels)
    path = tmp_path_factory.mktemp("saved") / "learner.ckpt"
    learner.save(path)
    return path


def test_counts_and_distributions_are_printed(checkpoint: Path) -> None:
    ended = CliRunner().invoke(app, ["inspect", str(checkpoint)])
    assert ended.exit_code == 0, ended.output
    assert "100 of 100 slots filled after 60 batches, 600 examples" in ended.output
    assert "ConfidenceReservoir(" in ended.output
    for title in ("Slots by class", "Age, in updates", "Times replayed", "Score"):
        assert title in ended.output


def test_a_monitor_gets_json(checkpoint: Path, tmp_path: Path) -> None:
    command = ["inspect", str(checkpoint), "--json", "-o", str(tmp_path / "memory.png")]
    told = json.loads(CliRunner().invoke(app, command).output)
    assert (told["filled"], told["capacity"], told["batches"], told["seen"]) == (100, 100, 60, 600)
    assert sum(told["slots_by_class"].values()) == 100
    assert told["slots_by_class"].keys() == {"0", "1"}
    assert set(told["quantiles"]) == {"age", "times_replayed", "score"}
    assert told["quantiles"]["age"] == sorted(told["quantiles"]["age"])
    assert "ConfidenceReservoir" in told["parts"]["storage"]
    assert (tmp_path / "memory.png").exists()


def test_extreme_images_are_drawn(checkpoint: Path, tmp_path: Path) -> None:
    picture = tmp_path / "memory.png"
    ended = CliRunner().invoke(app, ["inspect", str(checkpoint), "-o", str(picture)])
    assert ended.exit_code == 0, ended.output
    with Image.open(picture) as drawn:
        assert drawn.size[0] > 16 * 56


def test_inputs_that_are_no_images_are_not_drawn(tmp_path: Path) -> None:
    model = seeded(lambda: mlp(4, 2), 0)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    learner = recollect.method("er", model, sgd, capacity=20)
    learner.observe(torch.zeros(3, 4), torch.tensor([0, 1, 0]))
    learner.save(tmp_path / "flat.ckpt")
    command = ["inspect", str(tmp_path / "flat.ckpt"), "-o", str(tmp_path / "x.png")]
    with pytest.raises(RecollectError, match=r"\(\(4,\)\) do not look like images"):
        CliRunner().invoke(app, command, catch_exceptions=False)
    shown = CliRunner().invoke(app, command[:2])
    assert "This storage policy keeps no scores." in shown.output


@pytest.mark.parametrize("labels", [torch.ones(3, 2, dtype=torch.int64), torch.rand(3)])
def test_labels_that_are_no_classes_are_not_counted(tmp_path: Path, labels: torch.Tensor) -> None:
    model = seeded(lambda: mlp(4, 2), 0)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    learner = recollect.method("er", model, sgd, capacity=20, loss=lambda o, _: o.square().sum(1))
    learner.observe(torch.zeros(3, 4), labels)
    learner.save(tmp_path / "l.ckpt")
    shown = CliRunner().invoke(app, ["inspect", str(tmp_path / "l.ckpt")])
    assert "no classes to count" in shown.output
    told = CliRunner().invoke(app, ["inspect", str(tmp_path / "l.ckpt"), "--json"])
    assert json.loads(told.output)["slots_by_class"] is None


def test_a_file_that_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(RecollectError, match="not a checkpoint"):
        CliRunner().invoke(app, ["inspect", str(tmp_path / "notes.txt")], catch_exceptions=False)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("/proc/x.png", "`/proc/x.png` cannot be written"),
        ("/nowhere/x.png", "`/nowhere` is not a folder; create it"),
        ("x.foo", "`x.foo` ends in '.foo'; end it in .png"),
    ],
)
def test_images_that_cannot_be_written_are_an_error_in_words(
    checkpoint: Path, output: str, message: str
) -> None:
    ended = CliRunner().invoke(app, ["inspect", str(checkpoint), "-o", output])
    assert isinstance(ended.exception, RecollectError)
    assert message in str(ended.exception)


@pytest.mark.parametrize("method", ["er-c", "gss"])
def test_a_policy_that_scores_is_not_said_to_keep_none_before_it_has_any(
    method: str, tmp_path: Path
) -> None:
    model = seeded(lambda: mlp(4, 2), 0)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    learner = recollect.method(method, model, sgd, capacity=20)
    learner.observe(torch.zeros(3, 4), torch.tensor([0, 1, 0]))
    learner.save(tmp_path / "first.ckpt")
    shown = CliRunner().invoke(app, ["inspect", str(tmp_path / "first.ckpt")])
    assert "keeps no scores" not in shown.output
    assert "No scores yet that tell stored examples apart: all are 0" in shown.output


def test_classes_are_shown_by_the_names_that_the_stream_gave_them(tmp_path: Path) -> None:
    model = seeded(lambda: mlp(4, 3), 0)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    learner = recollect.method("er", model, sgd, capacity=20, label_map=recollect.LabelMap())
    learner.observe(torch.zeros(3, 4), ["[late] parcel", ("topic", 1), "[late] parcel"])
    learner.save(tmp_path / "named.ckpt")
    shown = CliRunner().invoke(app, ["inspect", str(tmp_path / "named.ckpt")])
    assert re.search(r"\[late\] parcel +2 ", shown.output)
    told = CliRunner().invoke(app, ["inspect", str(tmp_path / "named.ckpt"), "--json"])
    assert json.loads(told.output)["slots_by_class"] == {"[late] parcel": 2, "('topic', 1)": 1}
