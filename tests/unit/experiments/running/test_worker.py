import json
import select
import subprocess
import sys

import pytest

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
