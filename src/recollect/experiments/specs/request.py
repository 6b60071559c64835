"""A requested run: a cell and a seed."""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from recollect.errors import ConfigError
from recollect.experiments.specs.cell import Cell

MOST_RUNS: Final = 100_000
MOST_SEED: Final = 2**63 - 2  # a record's column of seeds holds one more, a range of Python not


@dataclass(frozen=True)
class Request:
    """One cell with one seed.

    Attributes:
        cell: What to run.
        seed: Seed of stream, model and learner.
        command: A command that runs it again.
        stop_below: Stream positions, in examples, with accuracies: the run is pruned if its
            `recent_accuracy` at such a position is lower. A whole run has none.
        is_tracked: Whether it tells points along its way, for trackers. They change no number.
    """

    cell: Cell
    seed: int
    command: str
    stop_below: tuple[tuple[int, float], ...] = ()
    is_tracked: bool = False

    @property
    def key(self) -> str:
        """A name for files: method, hash and seed."""
        return f"{self.cell.method}-{self.cell.spec_hash[:8]}-s{self.seed}"

    def relocated(self, folders: Mapping[str, str]) -> "Request":
        """Return the same run with the files that its cell names in other folders.

        Args:
            folders: Where each is, by its SHA-256.
        """
        return replace(self, cell=self.cell.relocated(folders))

    def to_json(self) -> str:
        """Describe it on one line, for a worker."""
        content = {"cell": self.cell.canonical_json, "seed": self.seed, "command": self.command}
        more = {"stop_below": self.stop_below, "is_tracked": self.is_tracked}
        return json.dumps(content | more)

    @classmethod
    def from_json(cls, text: str) -> "Request":
        """Build what `to_json` described."""
        content = json.loads(text)
        stop_below = tuple((seen, accuracy) for seen, accuracy in content["stop_below"])
        cell, is_tracked = Cell.from_json(content["cell"]), content["is_tracked"]
        return cls(cell, content["seed"], content["command"], stop_below, is_tracked)


def requests(
    cells: Sequence[Cell],
    seeds: Sequence[int],
    *,
    spec: str | None = None,
    overrides: Sequence[str] = (),
    threads: int = 1,
    are_tracked: bool = False,
) -> list[Request]:
    """Ask for every cell with every seed, all cells of one seed before the next seed.

    In this order what is there at any time compares methods on the same seeds.

    Args:
        cells: What to run.
        seeds: With which seeds.
        spec: Path of the spec, if it is not the one that comes with the package.
        overrides: The `--set` options that made the cells.
        threads: Of each process: another number adds up in another order.
        are_tracked: Whether the runs tell points along their way.

    Raises:
        ConfigError: They are more runs than one command makes.
    """
    check_num_runs(len(cells), len(seeds))
    return [
        Request(cell, seed, _command(cell, seed, spec, overrides, threads), is_tracked=are_tracked)
        for seed in seeds
        for cell in cells
    ]


def check_num_runs(num_cells: int, num_seeds: int) -> None:
    """Refuse more runs than one command can hold in memory and go through.

    Raises:
        ConfigError: They are more than `MOST_RUNS`.
    """
    if num_cells * num_seeds > MOST_RUNS:
        told = f"{num_seeds:,} of {num_cells:,} cells are {num_cells * num_seeds:,} runs"
        raise ConfigError(
            "the command",
            [
                (
                    "seeds",
                    f"{told}; one command makes at most {MOST_RUNS:,}. Give fewer seeds at a "
                    "time; `--dry-run` counts any number.",
                )
            ],
        )


def _command(
    cell: Cell, seed: int, spec: str | None, overrides: Sequence[str], threads: int
) -> str:
    words = ["recollect", "run", cell.benchmark]
    words += ["--spec", spec] if spec is not None else []
    words += ["--method", cell.method, "--seeds", f"{seed}:{seed + 1}"]
    words += ["--memory", str(cell.capacity)] if cell.capacity else []
    words += ["--protocol", cell.protocol]
    words += ["--threads", str(threads)] if threads != 1 else []
    for override in overrides:
        words += ["--set", override]
    return shlex.join(words)
