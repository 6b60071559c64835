import pytest
from tests.unit.reports.runs import read_runs

from recollect.experiments.records.record import Record


@pytest.fixture(scope="session")
def runs() -> list[Record]:
    """Real runs on the embedded MNIST."""
    return read_runs()
