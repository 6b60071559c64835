"""Ask for cells of the paper's tables by name."""

from collections.abc import Iterable
from typing import Protocol

from recollect.experiments.cell import cells
from recollect.experiments.configs import config_path
from recollect.experiments.request import Request, requests
from recollect.experiments.spec import load_spec


class WantedCell(Protocol):
    """A cell as a table names it."""

    @property
    def benchmark(self) -> str:
        """Name of the benchmark."""

    @property
    def method(self) -> str:
        """Name of the method in the benchmark's spec."""

    @property
    def capacity(self) -> int:
        """Slots of the memory."""

    @property
    def passes(self) -> str:
        """How examples pass the network."""


def requests_for(wanted: Iterable[WantedCell], seeds: Iterable[int]) -> list[Request]:
    """Look up cells in the specs that come with the package, and ask for them with each seed.

    Raises:
        ConfigError: A benchmark has no spec, or its spec has no such method.
    """
    seeds = list(seeds)
    asked: dict[tuple[str, int], Request] = {}
    for cell in wanted:
        overrides = [f"learner.passes={cell.passes}"]
        spec = load_spec(config_path(cell.benchmark), overrides=overrides)
        sizes = [cell.capacity] if cell.capacity else None
        resolved = cells(spec, methods=[cell.method], memory=sizes)
        for request in requests(resolved, seeds, overrides=overrides):
            asked.setdefault((request.key, request.seed), request)
    return sorted(asked.values(), key=lambda request: request.seed)
