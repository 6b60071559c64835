import pytest
from tests.unit.experiments.conftest import request_for, small_spec
from tests.unit.reports.runs import read_runs

from recollect.experiments.records.record import Record

__all__ = ["request_for", "runs", "small_spec"]


@pytest.fixture(scope="session")
def runs() -> list[Record]:
    """Real runs on the embedded MNIST: see make_runs.py."""
    return read_runs()
