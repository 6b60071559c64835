"""Data of one's own in a spec: found, checked, told apart by its digest, cut, run, continued."""

import os
import shutil
import sys
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.unit.experiments.own_data import (
    FUNCTION,
    NET,
    write_arrays,
    write_photos,
    write_table,
)
from typer.testing import CliRunner

from recollect.benchmarks import Benchmark
from recollect.cli import app
from recollect.errors import ConfigError, DataError, MissingExtraError
from recollect.experiments.records.compare_records import without_times
from recollect.experiments.records.store import Store
from recollect.experiments.running.execute import Stopped, execute
from recollect.experiments.specs.build import build
from recollect.experiments.specs.cell import Cell, cells
from recollect.experiments.specs.data import digest as digests
from recollect.experiments.specs.request import requests
from recollect.experiments.specs.spec import load_spec

REST = """
[evaluation]
points = 3
[methods.er]
replay = 4
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Call commands in a folder with a user's data."""
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(NET)
    Path("my_data.py").write_text(FUNCTION)
    return tmp_path


@pytest.fixture
def photos(here: Path) -> Path:
    return write_photos(here / "photos")


@pytest.fixture
def trees(here: Path) -> Path:
    return write_table(here / "trees.parquet")


@pytest.fixture
def arrays(here: Path) -> Path:
    return write_arrays(here / "arrays.npz")


def written(*lines: str, top: str = "", rest: str = REST) -> Path:
    path = Path("my.toml")
    path.write_text("\n".join([top, "[data]", *lines, rest]))
    return path


def cell_of(*lines: str, top: str = "", rest: str = REST) -> Cell:
    (cell,) = cells(load_spec(written(*lines, top=top, rest=rest)))
    return cell


def built(*lines: str, seed: int = 0) -> Benchmark:
    cell = cell_of(*lines)
    return build(Cell.from_json(cell.canonical_json), seed)[0]


def problems_of(*lines: str, top: str = "", rest: str = REST) -> dict[str, str]:
    with pytest.raises(ConfigError) as raised:
        load_spec(written(*lines, top=top, rest=rest))
    return dict(raised.value.problems)


PHOTOS = ('folder = "photos"', "classes_per_segment = 2")
TREES = ('table = "trees.parquet"', 'label = "kind"', 'inputs = ["width", "height", "weight"]')
ARRAYS = ('arrays = "arrays.npz"', 'inputs = "x"', 'label = "y"')


def test_a_folder_of_photos_is_cut_by_class(photos: Path) -> None:
    benchmark = built(*PHOTOS)
    assert [segment.name for segment in benchmark.segments] == ["cat, dog", "fox, owl"]
    assert [segment.classes for segment in benchmark.segments] == [(0, 1), (2, 3)]
    assert [len(segment.test) for segment in benchmark.segments] == [4, 4]
    assert benchmark.stream.num_examples == 32
    assert benchmark.stream.examples.inputs.shape[1:] == (3, 12, 12)
    assert (benchmark.name, benchmark.protocol) == ("photos", "own")
    _, labels = next(benchmark.stream)
    assert set(labels.tolist()) <= {0, 1}


def test_tests_are_the_same_for_every_seed_and_never_streamed(photos: Path) -> None:
    first, second = built(*PHOTOS), built(*PHOTOS, seed=1)
    for one, other in zip(first.segments, second.segments, strict=True):
        assert torch.equal(one.test.inputs, other.test.inputs)
    tested = {image.numpy().tobytes() for s in first.segments for image in s.test.inputs}
    streamed = {image.numpy().tobytes() for image in first.stream.examples.inputs}
    assert len(tested) == 8
    assert not tested & streamed
    assert not torch.equal(first.stream.plan.order, second.stream.plan.order)


def test_classes_are_grouped_as_they_are_named_or_as_the_seed_shuffles_them(photos: Path) -> None:
    named = built('folder = "photos"', 'classes = [["owl"], ["cat", "fox"]]')
    assert [segment.name for segment in named.segments] == ["owl", "cat, fox"]
    lines = (*PHOTOS, 'class_order = "shuffled"')
    orders = {tuple(s.name for s in built(*lines, seed=seed).segments) for seed in range(6)}
    assert len(orders) > 1


def test_a_test_part_of_its_own_has_the_classes_of_the_training_part(
    photos: Path, here: Path
) -> None:
    write_photos(here / "held", each=3)
    shutil.rmtree(here / "held" / "cat")
    shutil.rmtree(here / "held" / "dog")
    lines = (*PHOTOS, 'test = "held"', "classes_per_segment = 4")
    benchmark = built(PHOTOS[0], *lines[2:])
    (segment,) = benchmark.segments
    assert sorted(set(segment.test.labels.tolist())) == [2, 3]
    assert benchmark.stream.num_examples == 40


def test_photos_are_cut_by_time_in_the_order_of_their_names(photos: Path) -> None:
    benchmark = built('folder = "photos"', 'cut = "time"', "segments = 4")
    names = sorted(file.name for file in photos.rglob("*.png"))
    starts = [segment.name.split("from ")[1] for segment in benchmark.segments]
    assert starts == [names[k] for k in (0, 10, 20, 30)]
    # Within a segment nothing is shuffled.
    order = benchmark.stream.plan.order
    assert torch.equal(order, order.sort().values)


def test_a_table_is_cut_by_a_column(trees: Path) -> None:
    benchmark = built(*TREES, 'cut = "column"', 'column = "city"')
    assert [segment.name for segment in benchmark.segments] == ["Bern", "Oslo", "Rome"]
    assert [len(segment.test) for segment in benchmark.segments] == [8, 8, 8]
    assert benchmark.stream.examples.inputs.shape == (96, 3)
    assert all(segment.classes == (0, 1, 2) for segment in benchmark.segments)


def test_a_table_is_cut_by_time_and_standardised(trees: Path) -> None:
    lines = (*TREES, 'cut = "time"', 'column = "day"', "segments = 3", 'scaling = "standard"')
    benchmark = built(*lines)
    assert benchmark.segments[0].name == "1: from 1970-01-01 00:00:00"
    scaled = benchmark.transform(benchmark.stream.examples.inputs)
    assert torch.allclose(scaled.mean(0), torch.zeros(3), atol=1e-5)
    assert torch.allclose(scaled.std(0, correction=0), torch.ones(3), atol=1e-5)


def test_columns_that_no_key_names_are_inputs(trees: Path) -> None:
    with pytest.raises(DataError, match="column `city`"):
        built(*TREES[:2], 'cut = "time"', 'column = "day"', "segments = 3")


def test_a_test_table_is_cut_at_the_same_moments(trees: Path) -> None:
    write_table(Path("later.parquet"), rows=90)
    lines = (*TREES, 'cut = "time"', 'column = "day"', 'test = "later.parquet"')
    benchmark = built(*lines, "segments = 2")
    # Days 0 to 119 are cut after 59; the test table has days 0 to 89.
    assert [len(segment.test) for segment in benchmark.segments] == [60, 30]
    with pytest.raises(ValueError, match=r"segment `4: from .*` has no test examples"):
        built(*lines, "segments = 4")


def test_arrays_are_read_from_one_file_or_from_two(arrays: Path) -> None:
    one = built(*ARRAYS, "classes_per_segment = 2")
    content = np.load(arrays)
    np.save("x.npy", content["x"])
    np.save("y.npy", content["y"])
    two = built('arrays = "x.npy"', 'label = "y.npy"', "classes_per_segment = 2", 'name = "arrays"')
    assert one.stream.fingerprint == two.stream.fingerprint
    assert one.stream.examples.inputs.dtype == torch.float32
    by_time = built(*ARRAYS, 'cut = "time"', 'column = "when"', "segments = 2")
    assert by_time.stream.examples.labels[:4].tolist() == [3, 2, 1, 0]


def test_boundaries_are_blurred_as_wished(arrays: Path) -> None:
    sharp = built(*ARRAYS, "classes_per_segment = 2")
    blurred = built(*ARRAYS, "classes_per_segment = 2", "blur = 16")
    assert blurred.stream.plan.batching == "straight through"
    assert sorted(blurred.stream.plan.order.tolist()) == sorted(sharp.stream.plan.order.tolist())
    assert not torch.equal(blurred.stream.plan.order, sharp.stream.plan.order)


def test_a_set_of_the_catalogue_is_cut_by_class() -> None:
    benchmark = built('set = "mnist-embedded"', "classes_per_segment = 5", 'name = "digits"')
    assert [len(segment.classes) for segment in benchmark.segments] == [5, 5]
    assert sum(len(segment.test) for segment in benchmark.segments) == 10_000


def test_a_function_of_a_file_makes_the_benchmark() -> None:
    top = 'benchmark = "my_data.py:make"'
    cell = cell_of("spread = 0.5", top=top)
    assert (cell.benchmark, cell.data) == ("my-data-make", {"spread": 0.5})
    benchmark, _ = build(cell, 3)
    assert benchmark.seed == 3
    assert benchmark.stream.batch_size == 10
    small = cell_of(top=top, rest="[stream]\nbatch_size = 3\n" + REST)
    assert build(small, 3)[0].stream.batch_size == 3
    wrong = cell_of(top='benchmark = "my_data.py:nothing"')
    with pytest.raises(TypeError, match="returned a NoneType; return what"):
        build(wrong, 0)


def test_a_model_of_a_file_is_told_of_the_data_and_seeded(photos: Path) -> None:
    rest = '[model]\nname = "net.py:Net"\nwidth = 6\n' + REST
    cell = cell_of(*PHOTOS, rest=rest)
    assert cell.model == {"name": "net.py:Net", "width": 6}
    model = build(cell, 5)[1].model
    assert [tuple(p.shape) for p in model.parameters()] == [(6, 3, 3, 3), (6,), (4, 24), (4,)]
    twin, other = build(cell, 5)[1].model, build(cell, 6)[1].model
    assert torch.equal(next(model.parameters()), next(twin.parameters()))
    assert not torch.equal(next(model.parameters()), next(other.parameters()))
    number = cell_of(*PHOTOS, rest='[model]\nname = "net.py:number"\n' + REST)
    with pytest.raises(TypeError, match="made a int"):
        build(number, 0)


def test_the_hash_follows_the_data_and_the_files_and_not_where_they_lie(
    photos: Path, here: Path
) -> None:
    rest = '[model]\nname = "net.py:Net"\n' + REST
    first = cell_of(*PHOTOS, rest=rest).spec_hash
    elsewhere = here / "elsewhere"
    elsewhere.mkdir()
    shutil.move(photos, elsewhere / "photos")
    shutil.move("net.py", elsewhere / "net.py")
    moved = [line.replace('"photos"', '"elsewhere/photos"') for line in PHOTOS]
    rest = rest.replace("net.py", "elsewhere/net.py")
    assert cell_of(*moved, rest=rest).spec_hash == first
    (elsewhere / "photos" / "README").write_text("no image")
    assert cell_of(*moved, rest=rest).spec_hash == first
    image = next((elsewhere / "photos" / "cat").glob("*.png"))
    content = image.read_bytes()
    image.write_bytes(content + b"\0")
    assert cell_of(*moved, rest=rest).spec_hash != first
    image.write_bytes(content)
    (elsewhere / "net.py").write_text(NET + "\n")
    assert cell_of(*moved, rest=rest).spec_hash != first


def test_of_very_much_data_sizes_and_ends_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digests, "_WHOLE_BYTES", 10)
    monkeypatch.setattr(digests, "_END_BYTES", 4)
    file = tmp_path / "large"
    found = set()
    for content in (b"0123456789ab", b"0123X56789ab", b"X123456789ab", b"0123456789aX"):
        file.write_bytes(content)
        found.add(digests.digest_of_files([file], root=tmp_path))
    assert len(found) == 3  # the change in the middle is the one that is not seen


def test_data_that_changed_since_the_command_was_given_is_refused(arrays: Path) -> None:
    cell = cell_of(*ARRAYS, "classes_per_segment = 2")
    write_arrays(arrays, rows=40)
    with pytest.raises(DataError, match="was changed since the command was given"):
        build(cell, 0)


@pytest.mark.parametrize(
    ("lines", "path", "rule"),
    [
        (("classes_per_segment = 1",), "data", "names no data; give one of folder, table, arrays"),
        (('folder = "photos"', 'set = "mnist"', "classes_per_segment = 1"), "data", "name one"),
        (('folder = "absent"', "classes_per_segment = 2"), "data.folder", "no folder"),
        ((PHOTOS[0],), "data.classes_per_segment", "is missing"),
        (
            (PHOTOS[0], "classes_per_segment = 3"),
            "data.classes_per_segment",
            "divide the 4 classes",
        ),
        ((PHOTOS[0], 'classes = [["dgo"]]'), "data.classes", "did you mean `dog`"),
        ((*TREES, 'classes = [["ahs"]]'), "data.classes", "did you mean `ash`"),
        ((*PHOTOS, 'label = "x"'), "data.label", "goes with table or arrays or huggingface"),
        ((*PHOTOS, 'column = "x"'), "data.column", 'goes with cut = "column" or cut = "time"'),
        ((*PHOTOS, "size = [3]"), "data.size", "at least 2 items"),
        ((*PHOTOS, "test = 1.5"), "data.test", "a share between 0 and 1"),
        ((*PHOTOS, 'test = "absent"'), "data.test", "no folder"),
        ((*PHOTOS, "blur = 3"), "data.blur", "even number"),
        ((*PHOTOS, 'name = "mnist-split"'), "data.name", "a benchmark of the library"),
        ((*PHOTOS, 'name = "My Photos"'), "data.name", "small letters"),
        ((*PHOTOS, "sise = [3, 3]"), "data.sise", "did you mean `size`"),
        ((*TREES, 'cut = "column"'), "data.column", "is missing"),
        ((*TREES, 'cut = "column"', 'column = "cty"'), "data.column", "did you mean `city`"),
        ((*TREES, 'cut = "time"', 'column = "day"'), "data.segments", "is missing"),
        ((TREES[0], "classes_per_segment = 1"), "data.label", "is missing"),
        (('arrays = "arrays.npz"', 'label = "y"', "classes_per_segment=1"), "data.inputs", "is mi"),
        (('set = "mnst"', "classes_per_segment = 1"), "data.set", "did you mean `mnist`"),
        (
            ('huggingface = "a/b"', 'label = "y"', 'inputs = "x"', "classes_per_segment = 1"),
            "data.huggingface",
            "a commit of 40 digits",
        ),
    ],
)
def test_each_mistake_in_the_data_is_said_at_its_key(
    lines: tuple[str, ...], path: str, rule: str, photos: Path, trees: Path, arrays: Path
) -> None:
    problems = problems_of(*lines)
    assert list(problems) == [path]
    assert rule in problems[path]


@pytest.mark.parametrize(
    ("top", "lines", "path", "rule"),
    [
        ('benchmark = "mnist-split"', PHOTOS, "benchmark", "leave one"),
        ('benchmark = "my_data.py:mak"', (), "benchmark", "did you mean `make`"),
        ('benchmark = "absent.py:make"', (), "benchmark", "cannot be read"),
        ('benchmark = "my_data.py"', (), "benchmark", "write it as path/to/file.py:Name"),
        ('benchmark = "my_data.py:make"', ("spred = 1.0",), "data.spred", "did you mean `spread`"),
        ('benchmark = "my_data.py:make"', ("spread = 'x'",), "data.spread", "a number"),
        ('protocol = "paper"', PHOTOS, "protocol", "no other than 'own'"),
    ],
)
def test_each_mistake_around_the_data_is_said(
    top: str, lines: tuple[str, ...], path: str, rule: str, photos: Path
) -> None:
    problems = problems_of(*lines, top=top)
    assert list(problems) == [path]
    assert rule in problems[path]


@pytest.mark.timeout(60)  # a pipe that nobody writes to is waited for without end
def test_a_named_pipe_among_the_data_is_told_and_not_waited_for(photos: Path) -> None:
    photo = next(photos.rglob("*.png"))
    photo.unlink()
    os.mkfifo(photo)
    os.mkfifo("pipe.npz")
    for lines in (PHOTOS, ('arrays = "pipe.npz"', *ARRAYS[1:], PHOTOS[1])):
        (told,) = problems_of(*lines).values()
        assert "it is a named pipe, not a file" in told


def test_five_mistakes_of_five_kinds_are_five_problems(photos: Path) -> None:
    rest = """
    [model]
    name = "net.py:Nte"
    [optimizer]
    name = "AdamV"
    [scheduler]
    name = "StepLR"
    [methods.er]
    replay = 0
    """
    problems = problems_of('folder = "photos"', "class_per_segment = 2", rest=rest)
    assert set(problems) == {
        "data.class_per_segment", "model.name", "optimizer.name", "scheduler.step_size",
        "methods.er.replay",
    }  # fmt: skip
    assert "did you mean `classes_per_segment`" in problems["data.class_per_segment"]
    assert "did you mean `Net`" in problems["model.name"]
    assert "did you mean `Adam" in problems["optimizer.name"]


WHOLE = """
[model]
name = "net.py:Net"
[optimizer]
name = "AdamW"
lr = 3e-3
[scheduler]
name = "OneCycleLR"
max_lr = 1e-2
total_steps = "stream"
[learner]
augment = ["RandomFlip"]
iterations = 2
[evaluation]
points = 3
[methods.van]
[methods.er]
replay = 4
"""


def test_one_command_gives_table_and_page_from_a_folder_of_photos(photos: Path) -> None:
    path = written(*PHOTOS, top="seeds = 2", rest=WHOLE)
    dry = CliRunner().invoke(app, ["run", str(path), "--dry-run"])
    assert dry.exit_code == 0, dry.exception
    assert "4 of 4 runs are missing" in dry.output
    ended = CliRunner().invoke(app, ["run", str(path), "--workers", "1", "--quiet"])
    assert ended.exit_code == 0, ended.output
    assert "photos, protocol own" in ended.output
    records = Store("runs").records()
    assert [(r.benchmark, r.method, r.seed) for r in records] == [
        ("photos", method, seed) for method in ("er", "van") for seed in (0, 1)
    ]
    assert {record.status for record in records} == {"done"}
    assert records[0].segment_names == ("cat, dog", "fox, owl")
    assert "photos" in Path("runs/report.html").read_text()
    again = CliRunner().invoke(app, ["run", str(path), "--dry-run"])
    assert again.exit_code == 0, again.output
    assert "nothing" in again.output.lower()


def test_the_command_of_a_record_leads_to_it_again(trees: Path) -> None:
    lines = (*TREES, 'cut = "column"', 'column = "city"', 'scaling = "standard"')
    path = written(*lines, top="seeds = 1")
    ran = CliRunner().invoke(app, ["run", str(path), "--workers", "1", "--quiet"])
    assert ran.exit_code == 0, ran.output
    (record,) = Store("runs").records()
    words = record.command.split()[1:]
    assert words[:4] == ["run", "trees", "--spec", "my.toml"]
    again = CliRunner().invoke(app, [*words, "--dry-run"])
    assert again.exit_code == 0, again.output
    assert "nothing" in again.output.lower()


@pytest.mark.parametrize(
    "lines",
    [PHOTOS, ('folder = "photos"', 'cut = "time"', "segments = 2", "blur = 8")],
)
def test_a_run_on_ones_own_data_goes_on_to_the_bit(
    lines: tuple[str, ...], photos: Path, tmp_path: Path
) -> None:
    cell = cells(load_spec(written(*lines, rest=WHOLE)), methods=["er"])[0]
    (request,) = requests([cell], [0])
    asked = count(1)
    with pytest.raises(Stopped):
        execute(request, checkpoints=tmp_path / "place", should_stop=lambda: next(asked) >= 4)
    continued = execute(request, checkpoints=tmp_path / "place")
    assert continued.error is None
    assert continued.num_resumes == 1
    assert without_times(continued) == without_times(execute(request))


def test_classes_of_arrays_have_the_names_they_have(arrays: Path) -> None:
    cell = cell_of(*ARRAYS, 'classes = [["0", "9"]]')
    with pytest.raises(DataError, match=r"names '9'; the classes are 0, 1, 2, 3"):
        build(cell, 0)


def test_a_split_of_hugging_face_is_cut_by_class(photos: Path, here: Path) -> None:
    datasets = pytest.importorskip("datasets")
    files = sorted(photos.rglob("*.png"))
    classes = sorted({file.parent.name for file in files})
    split = datasets.Dataset.from_dict(  # and not `load_dataset`, which asks a server first
        {"image": [str(file) for file in files], "label": [file.parent.name for file in files]},
        features=datasets.Features(
            {"image": datasets.Image(), "label": datasets.ClassLabel(names=classes)}
        ),
    )
    split.train_test_split(0.25, seed=0).save_to_disk(str(here / "saved"))
    lines = ('huggingface = "saved"', 'inputs = "image"', 'label = "label"', 'test = "test"')
    benchmark = built(*lines, "classes_per_segment = 2")
    assert [segment.name for segment in benchmark.segments] == ["cat, dog", "fox, owl"]
    assert benchmark.stream.num_examples == 30


def test_a_missing_package_for_hugging_face_is_told(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    lines = ('huggingface = "a/b"', 'inputs = "x"', 'label = "y"', f'revision = "{"0" * 40}"')
    with pytest.raises(MissingExtraError, match=r"pip install datasets"):
        built(*lines, "classes_per_segment = 2")


def test_a_spec_is_given_once_and_by_a_name_that_ends_in_toml(photos: Path) -> None:
    path = written(*PHOTOS)
    twice = CliRunner().invoke(app, ["run", str(path), "--spec", str(path)])
    assert "leave one out" in str(twice.exception)
    absent = CliRunner().invoke(app, ["run", "absent.toml"])
    assert "absent.toml has 1 problem:\n  cannot be read" in str(absent.exception)
    other = CliRunner().invoke(app, ["run", str(path), "--protocol", "paper"])
    assert "data of your own has no other than 'own'" in str(other.exception)
