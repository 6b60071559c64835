import subprocess
import sys

import pytest

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
