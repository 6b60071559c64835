"""Ask for cells of the paper's tables by name."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, runtime_checkable

from recollect.experiments.specs.cell import Cell, cells
from recollect.experiments.specs.configs import config_path
from recollect.experiments.specs.request import Request, check_num_runs, requests
from recollect.experiments.specs.spec import Spec, load_spec


@runtime_checkable
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


def cells_for(wanted: Iterable[WantedCell]) -> list[Cell]:
    """Look up cells in the specs that come with the package, each once.

    Raises:
        ConfigError: A benchmark has no spec, or its spec has no such method.
    """
    return [cell for cell, _ in _looked_up(wanted)]


def requests_for(wanted: Iterable[WantedCell], seeds: Sequence[int]) -> list[Request]:
    """Look up cells in the specs that come with the package, and ask for them with each seed.

    Raises:
        ConfigError: A benchmark has no spec, its spec has no such method, or they are too many.
    """
    found = list(_looked_up(wanted))
    check_num_runs(len(found), len(seeds))
    asked = [
        request
        for cell, overrides in found
        for request in requests([cell], seeds, overrides=overrides)
    ]
    return sorted(asked, key=lambda request: request.seed)


def _looked_up(wanted: Iterable[WantedCell]) -> Iterator[tuple[Cell, list[str]]]:
    """Yield each cell once, and the overrides that made it."""
    specs: dict[tuple[str, str], Spec] = {}
    seen: set[str] = set()
    for place in wanted:
        overrides = [f"learner.passes={place.passes}"]
        key = (place.benchmark, place.passes)
        if key not in specs:
            specs[key] = load_spec(config_path(place.benchmark), overrides=overrides)
        sizes = [place.capacity] if place.capacity else None
        for cell in cells(specs[key], methods=[place.method], memory=sizes):
            if cell.spec_hash not in seen:
                seen.add(cell.spec_hash)
                yield cell, overrides
