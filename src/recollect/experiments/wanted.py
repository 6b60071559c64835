"""Ask for cells of the paper's tables by name."""

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from recollect.experiments.cell import cells
from recollect.experiments.configs import config_path, config_root
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
        usual, path = config_path(cell.benchmark), config_path(cell.benchmark, passes=cell.passes)
        spec = load_spec(path, overrides=overrides)
        sizes = [cell.capacity] if cell.capacity else None
        resolved = cells(spec, methods=[cell.method], memory=sizes)
        own = None if path == usual else _shown(path)
        for request in requests(resolved, seeds, spec=own, overrides=overrides):
            asked.setdefault((request.key, request.seed), request)
    return sorted(asked.values(), key=lambda request: request.seed)


def _shown(path: Path) -> str:
    """Return a spec's path as people type it in a checkout: a record names no machine's folders."""
    return str(Path("configs") / path.relative_to(config_root()))
