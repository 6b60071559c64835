import pytest

from recollect.experiments.record import Record
from tests.unit.reports.runs import read_runs


@pytest.fixture(scope="session")
def runs() -> list[Record]:
    """Real runs on the embedded MNIST: see make_runs.py."""
    return read_runs()
