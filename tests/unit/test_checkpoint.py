"""A checkpoint goes on bit for bit, or is refused and changes nothing."""

import itertools
import json
import os
import pickle
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from tests.unit.learner.support import (
    CAPACITY,
    MODELS,
    contents,
    differences,
    fingerprint,
    learner,
    model,
    run,
    sgd,
    stream,
)
from tests.unit.learner.undo import interrupted
from torch import Tensor, nn
from typing_extensions import override

from recollect import METHODS, Learner, Memory
from recollect.errors import CheckpointError
from recollect.models import seeded
from recollect.rules import ProximalRule
from recollect.storage import Evidence, Placement, Storage

ROOT = Path(__file__).parents[2]


# --- going on -------------------------------------------------------------------------------------


def child(task: str, directory: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", interrupted.__name__, task, str(directory)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def left_behind(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return what a process left that saved every method and was killed while saving."""
    directory = tmp_path_factory.mktemp("left_behind")
    with child("train", directory) as process:
        assert process.stdout is not None
        for _ in range(3):
            assert process.stdout.readline() == "saved\n"
        process.send_signal(signal.SIGKILL)
    return directory


def test_after_a_kill_every_method_ends_with_the_bits_of_a_run_never_killed(
    left_behind: Path,
) -> None:
    with child("resume", left_behind) as process:
        out, _ = process.communicate()
    uninterrupted = {name: run(interrupted.build(name), interrupted.STREAM) for name in METHODS}
    expected = {name: interrupted.digest(world) for name, world in uninterrupted.items()}
    assert json.loads(out) == expected


def test_a_process_killed_while_saving_leaves_a_whole_file(left_behind: Path) -> None:
    world, twin = interrupted.build("er-cb"), interrupted.build("er-cb")
    world.load(left_behind / "endless")
    run(twin, list(itertools.islice(itertools.cycle(interrupted.STREAM), world.step)))
    assert world.step >= 3
    assert differences(fingerprint(world), fingerprint(twin)) == []


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", METHODS)
def test_saved_and_loaded_at_every_step_nothing_is_different(
    name: str, kind: str, tmp_path: Path
) -> None:
    world, twin = learner(name, kind), learner(name, kind)
    for batch in stream(6):
        world.save(tmp_path / "it")
        world = learner(name, kind, seed=99)
        world.load(tmp_path / "it")
        assert torch.equal(*(w.observe(*batch).updates[0].incoming_losses for w in (world, twin)))
    assert differences(fingerprint(world), fingerprint(twin)) == []


@pytest.mark.parametrize("capacity", [1, CAPACITY])
@pytest.mark.parametrize("name", ["er", "er-c", "er-cb", "er-pc-mir"])
def test_a_memory_of_one_example_goes_on_bit_for_bit(
    name: str, capacity: int, tmp_path: Path
) -> None:
    def build(seed: int = 0) -> Learner:
        return learner(name, capacity=capacity, replay=1, seed=seed)

    world, twin = build(), build()
    for step, batch in enumerate(stream(5, size=1)):
        assert world.memory is not None
        assert len(world.memory) == min(step, capacity)
        world.save(tmp_path / "it")
        world = build(seed=99)
        world.load(tmp_path / "it")
        world.observe(*batch)
        twin.observe(*batch)
    assert differences(fingerprint(world), fingerprint(twin)) == []


def test_a_buffer_that_is_one_number_of_a_larger_table_is_kept(tmp_path: Path) -> None:
    def build() -> Learner:
        net = model()
        net.register_buffer("rate", torch.tensor([[0.5, 0.25], [1.0, 2.0]])[:1, 1])
        return Learner(net, sgd(net))

    world, other = build(), build()
    world.model.get_buffer("rate").fill_(3)
    world.save(tmp_path / "it")
    other.load(tmp_path / "it")
    assert other.model.get_buffer("rate").tolist() == [3]


OPTIMIZERS: dict[str, Callable[[nn.Module], torch.optim.Optimizer]] = {
    "adam": lambda net: torch.optim.Adam(net.parameters(), lr=torch.tensor(0.01)),
    "adamw": lambda net: torch.optim.AdamW(net.parameters(), amsgrad=True),
    "adagrad": lambda net: torch.optim.Adagrad(net.parameters(), lr=0.05),
    "rmsprop": lambda net: torch.optim.RMSprop(net.parameters(), centered=True, momentum=0.5),
    "nadam": lambda net: torch.optim.NAdam(net.parameters()),
    "asgd": lambda net: torch.optim.ASGD(net.parameters(), t0=2),
    "rprop": lambda net: torch.optim.Rprop(net.parameters()),
    "adafactor": lambda net: torch.optim.Adafactor(net.parameters()),
    "two groups": lambda net: torch.optim.SGD(
        [{"params": [p], "lr": 0.1 / (i + 1)} for i, p in enumerate(net.parameters())], momentum=0.9
    ),
}


@pytest.mark.parametrize("which", OPTIMIZERS)
def test_every_optimizers_state_is_kept(which: str, tmp_path: Path) -> None:
    twin, world, other = (learner("er", optimizer=OPTIMIZERS[which]) for _ in range(3))
    batches = stream(6)
    run(twin, batches)
    run(world, batches[:3]).save(tmp_path / "it")
    other.load(tmp_path / "it")
    run(other, batches[3:])
    assert differences(fingerprint(other), fingerprint(twin)) == []


def test_loading_into_a_learner_that_went_elsewhere_forgets_where_it_was(tmp_path: Path) -> None:
    world, other = learner("er-cb", "batch norm"), learner("er-cb", "batch norm")
    run(world, stream(4)).save(tmp_path / "it")
    run(other, stream(9, seed=2)).load(tmp_path / "it")
    assert differences(fingerprint(world), fingerprint(other)) == []


def test_loading_fills_the_memory_the_caller_holds(tmp_path: Path) -> None:
    run(learner("er"), stream(4)).save(tmp_path / "it")
    world = learner("er")
    memory = world.memory
    world.load(tmp_path / "it")
    assert memory is not None
    assert len(memory) == CAPACITY


def test_loading_restores_a_learning_rate_that_was_changed(tmp_path: Path) -> None:
    world, other = learner("er"), learner("er")
    world.optimizer.param_groups[0]["lr"] = 0.025
    world.save(tmp_path / "it")
    other.load(tmp_path / "it")
    assert other.optimizer.param_groups[0]["lr"] == 0.025


@pytest.mark.parametrize("name", ["er", "er-p"])
def test_weights_in_another_memory_format_are_kept(name: str, tmp_path: Path) -> None:
    def build() -> Learner:
        net = model("batch norm").to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return Learner(
            net, sgd(net, momentum=0.9), memory=Memory(CAPACITY), rule=learner(name).rule
        )

    world, other, twin = build(), build(), build()
    batches = [(x.contiguous(memory_format=torch.channels_last), y) for x, y in stream(6)]
    run(twin, batches)
    run(world, batches[:3]).save(tmp_path / "it")
    other.load(tmp_path / "it")
    run(other, batches[3:])
    assert differences(fingerprint(other), fingerprint(twin)) == []


class Tied(nn.Module):
    """One weight under two names, and two buffers that look at one tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(16, 16)
        self.second = nn.Linear(16, 16)
        self.second.weight = self.first.weight
        table = torch.ones(2, 16)
        self.register_buffer("scale", table[0])
        self.register_buffer("shift", table[1], persistent=False)
        self.scale: Tensor
        self.shift: Tensor

    @override
    def forward(self, inputs: Tensor) -> Tensor:
        hidden = self.first(inputs.flatten(1)).tanh() * self.scale + self.shift
        return self.second(hidden)


def test_tied_weights_and_buffers_that_share_memory_are_kept(tmp_path: Path) -> None:
    def build(seed: int) -> Learner:
        net = seeded(Tied, seed)
        return Learner(net, sgd(net), memory=Memory(CAPACITY))

    world, other = build(0), build(1)
    run(world, stream(2)).save(tmp_path / "it")
    other.load(tmp_path / "it")
    assert differences(fingerprint(world), fingerprint(other)) == []


@pytest.mark.parametrize(
    "shape",
    [lambda x: (x, x + 1), lambda x: [x, x + 1], lambda x: {"a": x, "b": (x + 1)}],
    ids=["tuple", "list", "dict"],
)
def test_the_structure_of_inputs_is_kept(shape: Callable[[Tensor], Any], tmp_path: Path) -> None:
    class Sum(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = model()

        def forward(self, a: Tensor, b: Tensor) -> Tensor:
            return self.body(a + b)

    def build() -> Learner:
        net = Sum()
        return Learner(net, sgd(net), memory=Memory(CAPACITY))

    world, other = build(), build()
    run(world, [(shape(x), y) for x, y in stream(2)]).save(tmp_path / "it")
    other.load(tmp_path / "it")
    assert world.memory is not None
    assert other.memory is not None
    slots = torch.arange(len(world.memory))
    (kept, _), (loaded, _) = world.memory.read(slots), other.memory.read(slots)
    assert type(kept) is type(loaded)
    assert differences(fingerprint(world), fingerprint(other)) == []


class Scale:
    """An objective with a setting, as a user would write it."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, products: Tensor, *_: Tensor) -> Tensor:
        return -self.factor * products.mean()


def test_a_rule_around_an_object_that_can_be_called_can_be_loaded(tmp_path: Path) -> None:
    def build() -> Learner:
        net = model()
        return Learner(net, sgd(net), memory=Memory(CAPACITY), rule=ProximalRule(Scale(2.0)))

    world, other = build(), build()
    run(world, stream(2)).save(tmp_path / "it")
    other.load(tmp_path / "it")
    assert differences(fingerprint(world), fingerprint(other)) == []


class Newest(Storage):
    """Overwrites in turn, and remembers where it was."""

    def __init__(self) -> None:
        self.turn = 0

    @override
    def place(
        self, labels: Tensor, memory: Memory, evidence: Evidence, rng: torch.Generator
    ) -> Placement:
        slots = (self.turn + torch.arange(len(labels))) % memory.capacity
        self.turn = (self.turn + len(labels)) % memory.capacity
        return Placement(slots)

    @override
    def state(self) -> dict[str, Tensor]:
        return {"turn": torch.tensor(self.turn)}

    @override
    def restore(self, state: Any) -> None:
        self.turn = int(state["turn"])


def test_what_a_policy_of_ones_own_remembers_is_kept(tmp_path: Path) -> None:
    def build() -> Learner:
        net = model()
        return Learner(net, sgd(net), memory=Memory(CAPACITY), storage=Newest())

    world, other, twin = build(), build(), build()
    batches = stream(6)
    run(twin, batches)
    run(world, batches[:4]).save(tmp_path / "it")
    other.load(tmp_path / "it")
    run(other, batches[4:])
    assert all(map(torch.equal, contents(other), contents(twin)))


class Counts(nn.Module):
    """Keeps what it knows outside parameters and buffers, as `get_extra_state` is there for."""

    def __init__(self, known: Any = 0) -> None:
        super().__init__()
        self.body, self.known = model(), known

    @override
    def forward(self, inputs: Tensor) -> Tensor:
        if isinstance(self.known, int):
            self.known += self.training
            return self.body(inputs) / (1 + self.known)
        return self.body(inputs)

    @override
    def get_extra_state(self) -> Any:
        return self.known

    @override
    def set_extra_state(self, state: Any) -> None:
        self.known = state


def counting(known: Any = 0) -> Learner:
    net = nn.Sequential(Counts(known))
    return Learner(net, sgd(net), memory=Memory(CAPACITY))


def test_what_a_module_keeps_as_extra_state_goes_on_bit_for_bit(tmp_path: Path) -> None:
    world, other, twin = counting(), counting(), counting()
    batches = stream(5)
    run(twin, batches)
    run(world, batches[:3]).save(tmp_path / "it")
    other.load(tmp_path / "it")
    run(other, batches[3:])
    assert differences(fingerprint(other), fingerprint(twin)) == []


@pytest.mark.parametrize(
    "known", [{"table": torch.arange(3), "names": ["a", None]}, (1.5, "x"), torch.ones(2)]
)
def test_extra_state_of_any_structure_comes_back(known: Any, tmp_path: Path) -> None:
    counting(known).save(tmp_path / "it")
    other = counting(None)
    other.load(tmp_path / "it")
    assert repr(other.model[0].known) == repr(known)  # type: ignore[index]


def test_extra_state_that_needs_a_pickle_is_refused_when_saving(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"`extra state.0` is a object, which .* pickle"):
        counting(object()).save(tmp_path / "it")
    assert os.listdir(tmp_path) == []


def test_a_checkpoint_without_the_models_extra_state_is_refused(tmp_path: Path) -> None:
    class Plain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = model()

    net = nn.Sequential(Plain())
    Learner(net, sgd(net), memory=Memory(CAPACITY)).save(tmp_path / "it")
    world = counting()
    with refused(world, r"another model; nothing was loaded.*extra state of \['0'\]"):
        world.load(tmp_path / "it")


# --- being refused --------------------------------------------------------------------------------


@contextmanager
def refused(world: Learner, message: str) -> Iterator[None]:
    before = fingerprint(world)
    with pytest.raises(CheckpointError, match=message):
        yield
    assert differences(before, fingerprint(world)) == []


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """Return the checkpoint of an ER-CB with momentum after four steps."""
    world = learner("er-cb", "batch norm", optimizer=partial(sgd, momentum=0.9))
    run(world, stream(4)).save(tmp_path / "it")
    return tmp_path / "it"


@pytest.fixture
def elsewhere() -> Learner:
    """Return a learner the checkpoint would fit, six other steps into another stream."""
    world = learner("er-cb", "batch norm", optimizer=partial(sgd, momentum=0.9))
    return run(world, stream(6, seed=4))


def test_a_whole_checkpoint_is_taken(saved: Path, elsewhere: Learner) -> None:
    elsewhere.load(saved)
    assert elsewhere.step == 4


@pytest.mark.parametrize("share", [0.0, 0.0001, 0.001, 0.01, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_checkpoint_is_refused(share: float, saved: Path, elsewhere: Learner) -> None:
    whole = saved.read_bytes()
    saved.write_bytes(whole[: int(share * len(whole))])
    with refused(elsewhere, "truncated or not a checkpoint.*nothing was loaded"):
        elsewhere.load(saved)


def test_a_checkpoint_without_its_last_byte_is_refused(saved: Path, elsewhere: Learner) -> None:
    saved.write_bytes(saved.read_bytes()[:-1])
    with refused(elsewhere, "truncated or not a checkpoint"):
        elsewhere.load(saved)


def test_a_checkpoint_with_more_behind_it_is_refused(saved: Path, elsewhere: Learner) -> None:
    saved.write_bytes(saved.read_bytes() + b"\0")
    with refused(elsewhere, "truncated or not a checkpoint"):
        elsewhere.load(saved)


def test_one_flipped_bit_anywhere_is_noticed(saved: Path, elsewhere: Learner) -> None:
    whole = saved.read_bytes()
    header = int.from_bytes(whole[:8], "little")
    places = [*range(8), *range(8, 8 + header, 17), *range(8 + header, len(whole), 331)]
    before = fingerprint(elsewhere)
    for place in places:
        altered = bytearray(whole)
        altered[place] ^= 1 << (place % 7)
        saved.write_bytes(altered)
        with pytest.raises(CheckpointError, match="nothing was loaded"):
            elsewhere.load(saved)
    assert differences(before, fingerprint(elsewhere)) == []


def test_changed_facts_under_an_old_digest_are_noticed(saved: Path, elsewhere: Learner) -> None:
    with safe_open(saved, framework="pt") as opened:
        metadata = opened.metadata()
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    facts = json.loads(metadata["facts"]) | {"seen": 7}
    save_file(tensors, saved, metadata=metadata | {"facts": json.dumps(facts)})
    with refused(elsewhere, "was altered after it was written"):
        elsewhere.load(saved)


def test_a_newer_format_is_refused(saved: Path, elsewhere: Learner) -> None:
    with safe_open(saved, framework="pt") as opened:
        metadata = opened.metadata()
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    save_file(tensors, saved, metadata=metadata | {"version": "999"})
    with refused(elsewhere, "format version 999"):
        elsewhere.load(saved)


def test_a_safetensors_file_of_somebody_else_is_refused(tmp_path: Path, elsewhere: Learner) -> None:
    save_file(dict(elsewhere.model.state_dict()), tmp_path / "it")
    with refused(elsewhere, "not a learner's checkpoint"):
        elsewhere.load(tmp_path / "it")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        bytes(range(256)) * 40,
        b"\xff" * 5000,
        pickle.dumps({"weights": [1.0] * 100}),
        b'{"json": true}' * 100,
    ],
    ids=["nothing", "counting bytes", "ones", "a pickle", "json"],
)
def test_another_kind_of_file_is_refused(
    content: bytes, tmp_path: Path, elsewhere: Learner
) -> None:
    (tmp_path / "it").write_bytes(content)
    with refused(elsewhere, "truncated or not a checkpoint"):
        elsewhere.load(tmp_path / "it")


def test_a_torch_file_is_refused_and_not_unpickled(tmp_path: Path, elsewhere: Learner) -> None:
    torch.save(elsewhere.model.state_dict(), tmp_path / "it")
    with refused(elsewhere, "truncated or not a checkpoint"):
        elsewhere.load(tmp_path / "it")


def test_a_missing_checkpoint_is_an_ordinary_missing_file(
    tmp_path: Path, elsewhere: Learner
) -> None:
    before = fingerprint(elsewhere)
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(FileNotFoundError, match="is not a file; nothing was loaded"):
            elsewhere.load(path)
    assert differences(before, fingerprint(elsewhere)) == []


@pytest.mark.parametrize("name", [name for name in METHODS if name != "er-cb"])
def test_another_methods_checkpoint_is_refused(
    name: str, tmp_path: Path, elsewhere: Learner
) -> None:
    other = learner(name, "batch norm", optimizer=partial(sgd, momentum=0.9))
    run(other, stream(3)).save(tmp_path / "it")
    part = "rule" if name == "er-p-cb" else "storage"  # in what it differs from er-cb
    with refused(
        elsewhere, rf"another kind of learner; nothing was loaded.*{part}: the checkpoint"
    ):
        elsewhere.load(tmp_path / "it")


OTHERS: dict[str, tuple[dict[str, Any], str]] = {
    "another capacity": ({"capacity": 13}, "capacity: the checkpoint has 13, this learner has 12"),
    "another replay": ({"replay": 5}, r"retrieval: .*replay=5.*replay=4"),
    "other iterations": ({"iterations": 2}, "iterations: the checkpoint has 2"),
    "other passes": ({"passes": "separate"}, "passes: the checkpoint has separate"),
    "another optimizer": ({"optimizer": interrupted.adam}, "optimizer: the checkpoint has Adam"),
    "other groups": ({"optimizer": OPTIMIZERS["two groups"]}, "optimizer groups: the checkpoint"),
}


@pytest.mark.parametrize("what", OTHERS)
def test_a_checkpoint_of_other_settings_is_refused(
    what: str, tmp_path: Path, elsewhere: Learner
) -> None:
    options, message = OTHERS[what]
    optimizer = {"optimizer": partial(sgd, momentum=0.9)}
    other = learner("er-cb", "batch norm", **(optimizer | options))
    run(other, stream(3)).save(tmp_path / "it")
    with refused(elsewhere, message):
        elsewhere.load(tmp_path / "it")


@pytest.mark.parametrize(
    ("option", "value"), [("step_size", 3.0), ("steps", 2), ("groups", 2), ("norm_floor", 0.1)]
)
def test_a_checkpoint_of_a_rule_with_other_settings_is_refused(
    option: str, value: float, tmp_path: Path
) -> None:
    options: dict[str, Any] = {option: value}
    run(learner("er-p", **options), stream(3)).save(tmp_path / "it")
    world = run(learner("er-p"), stream(2))
    with refused(world, rf"rule: the checkpoint has .*{option}={value}"):
        world.load(tmp_path / "it")


def test_another_models_checkpoint_is_refused(tmp_path: Path) -> None:
    run(learner("er", "mlp"), stream(3)).save(tmp_path / "it")
    world = run(learner("er", "dropout"), stream(2))
    with refused(world, r"another model; nothing was loaded.*Not in the checkpoint: \['4.bias'"):
        world.load(tmp_path / "it")


def test_a_model_of_other_widths_is_refused(tmp_path: Path) -> None:
    def build(width: int) -> Learner:
        net = nn.Sequential(nn.Flatten(), nn.Linear(16, width), nn.Linear(width, 4))
        return Learner(net, sgd(net), memory=Memory(CAPACITY))

    run(build(5), stream(2)).save(tmp_path / "it")
    world = run(build(6), stream(2))
    with refused(world, r"1.weight: \(5, 16\) torch.float32 saved, \(6, 16\) torch.float32 here"):
        world.load(tmp_path / "it")


def test_a_model_of_another_dtype_is_refused(tmp_path: Path) -> None:
    run(learner("er"), stream(2)).save(tmp_path / "it")
    world = learner("er", dtype=torch.float64)
    with refused(world, r"torch.float32 saved, .* torch.float64 here"):
        world.load(tmp_path / "it")


# --- writing --------------------------------------------------------------------------------------


@contextmanager
def files_no_larger_than(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("size", [0, 100, 5000])
def test_a_write_that_fails_half_way_leaves_the_old_file(
    size: int, saved: Path, elsewhere: Learner
) -> None:
    old = saved.read_bytes()
    with files_no_larger_than(size), pytest.raises(Exception, match=r"(?i)file too large"):
        elsewhere.save(saved)
    assert saved.read_bytes() == old


def test_a_write_that_fails_half_way_leaves_nothing_else_behind(
    saved: Path, elsewhere: Learner
) -> None:
    with files_no_larger_than(5000), pytest.raises(Exception, match=r"(?i)file too large"):
        elsewhere.save(saved)
    assert os.listdir(saved.parent) == [saved.name]


def test_a_write_that_fails_is_an_os_error(saved: Path, elsewhere: Learner) -> None:
    with files_no_larger_than(5000), pytest.raises(OSError, match=r"(?i)file too large"):
        elsewhere.save(saved)


def test_saving_leaves_no_trace_in_the_learner(tmp_path: Path, elsewhere: Learner) -> None:
    before = fingerprint(elsewhere)
    elsewhere.save(tmp_path / "it")
    assert differences(before, fingerprint(elsewhere)) == []


def test_a_checkpoint_takes_the_place_of_an_older_one(saved: Path, elsewhere: Learner) -> None:
    elsewhere.save(saved)
    other = learner("er-cb", "batch norm", optimizer=partial(sgd, momentum=0.9))
    other.load(saved)
    assert (other.step, os.listdir(saved.parent)) == (6, [saved.name])


def test_who_reads_the_old_file_meanwhile_reads_it_whole(saved: Path, elsewhere: Learner) -> None:
    whole = saved.read_bytes()
    with open(saved, "rb") as reader:
        beginning = reader.read(100)
        elsewhere.save(saved)
        assert beginning + reader.read() == whole


def test_saving_through_a_link_replaces_the_file_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to("disk/it")
    world = learner("er")
    for _ in range(2):  # first there is no such file, then an older one
        world.save(tmp_path / "link")
        assert (tmp_path / "link").is_symlink()
        assert os.listdir(tmp_path / "disk") == ["it"]
    world.load(tmp_path / "link")


def test_saving_onto_a_device_or_a_pipe_is_refused_and_leaves_it(
    tmp_path: Path, terminal: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(terminal)
    for path in (terminal, tmp_path / "link", tmp_path / "pipe"):
        with pytest.raises(OSError, match="is a device or a pipe; name a file to save to"):
            learner("er").save(path)
    assert terminal.is_char_device()
    assert (tmp_path / "pipe").is_fifo()


def test_saving_under_the_longest_name_there_is_works(tmp_path: Path) -> None:
    learner("er").save(tmp_path / ("x" * 255))
    assert os.listdir(tmp_path) == ["x" * 255]


def test_saving_into_a_missing_directory_says_so(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"`.*missing` is not a directory; create it"):
        learner("er").save(tmp_path / "missing" / "it")


def test_paths_may_be_strings(tmp_path: Path) -> None:
    world = learner("er")
    world.save(str(tmp_path / "it"))
    world.load(str(tmp_path / "it"))
    assert world.step == 0


class Odd(torch.optim.SGD):
    """Keeps something in its state that JSON cannot say."""

    def __init__(self, parameters: Any) -> None:
        super().__init__(parameters, lr=0.1)
        self.param_groups[0]["schedule"] = object()


def test_state_that_needs_a_pickle_is_refused_when_saving(tmp_path: Path) -> None:
    net = model()
    world = Learner(net, Odd(net.parameters()))
    with pytest.raises(CheckpointError, match=r"`optimizer.*schedule` is a object, which"):
        world.save(tmp_path / "it")
    assert os.listdir(tmp_path) == []
