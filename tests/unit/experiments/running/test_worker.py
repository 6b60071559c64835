import json
import select
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from recollect.experiments.running import worker as working
from recollect.experiments.specs.request import Request

REST = {"checkpoints": "place", "checkpoint_share": 0.0, "parts": {}}

BUILD = """
import sys
import torch
from recollect.experiments.running.worker import leave_out_the_compiler
{first}
model = torch.nn.Linear(3, 2)
optimizer = torch.optim.{optimizer}(model.parameters(), lr=0.1)
optimizer.load_state_dict(optimizer.state_dict())
optimizer.zero_grad()
print("torch._dynamo" in sys.modules)
"""


def _imports_the_compiler(first: str, optimizer: str) -> bool:
    program = BUILD.format(first=first, optimizer=optimizer)
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return {"True": True, "False": False}[ended.stdout.strip()]


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_optimizers_of_a_worker_do_not_import_the_compiler(optimizer: str) -> None:
    assert not _imports_the_compiler("leave_out_the_compiler()", optimizer)


def test_torch_alone_would_import_it() -> None:
    """Once this fails, `leave_out_the_compiler` has nothing left to do: remove it."""
    assert _imports_the_compiler("", "SGD")


def test_what_a_worker_cannot_read_is_an_error_that_it_tells() -> None:
    unreadable = json.dumps({"request": "{}", **REST}).encode()
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "recollect.experiments.running.worker", "1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        assert json.loads(worker.stdout.readline()) == {"kind": "ready"}
        for assignment, reason in [
            (b"{", "JSONDecodeError"),
            (b"\xff", "UnicodeDecodeError"),
            (b"{}", "TypeError"),
            (unreadable, "KeyError: 'stop_below'"),
        ]:
            worker.stdin.write(assignment + b"\n")
            worker.stdin.flush()  # and stays open: it answers without being stopped
            if not select.select([worker.stdout], [], [], 30)[0]:
                worker.kill()
                pytest.fail(f"no answer to {assignment!r}")
            told = json.loads(worker.stdout.readline())
            assert told["kind"] == "store-error"
            assert "please report this" in told["message"]
            assert reason in told["message"]


class Here:
    """A data set that is on this machine or not."""

    def __init__(self) -> None:
        self.is_here, self.num_fetches = False, 0

    def locate(self) -> Path | None:
        return Path() if self.is_here else None

    def fetch(self, *_: object) -> None:
        self.is_here = True
        self.num_fetches += 1


def test_a_worker_fetches_what_a_run_needs_and_lacks(
    request_for: Callable[..., Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    sets = defaultdict[str, Here](Here)
    monkeypatch.setattr(working, "data_set", lambda name: sets[name])
    cell = request_for().cell
    named = replace(cell, stream={**cell.stream, "data": "cifar10"})
    own = replace(cell, stream={}, data={"kind": "set", "where": "cifar100"})
    folder = replace(cell, stream={}, data={"kind": "folder", "where": "mnist"})
    for asked in (named, own, folder, named):
        working._fetch(asked)
    assert {name: found.num_fetches for name, found in sets.items()} == {
        "cifar10": 1,
        "cifar100": 1,
    }
