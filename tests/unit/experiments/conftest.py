from collections.abc import Callable
from pathlib import Path

import pytest

from recollect.experiments.specs.cell import cells
from recollect.experiments.specs.request import Request, requests
from recollect.experiments.specs.spec import load_spec

SMALL = """
benchmark = "mnist-split"
memory = [20]
seeds = 2

[stream]
examples_per_segment = 40
validation_per_segment = 20

[evaluation]
on = "validation"
points = 7
examples = 50

[methods.van]
[methods.er]
[methods.er-pc-mir]
[methods.gss]
[methods.diverging]
base = "er"
lr = 1e30
"""


@pytest.fixture
def small_spec(tmp_path: Path) -> Path:
    """A spec whose runs take a tenth of a second."""
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


@pytest.fixture
def request_for(small_spec: Path) -> Callable[..., Request]:
    def build(method: str = "er", seed: int = 0) -> Request:
        return requests(cells(load_spec(small_spec), methods=[method]), [seed])[0]

    return build
