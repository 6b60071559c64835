"""`recollect cost`: what a step of each method costs, for streams that do not wait."""

import dataclasses
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.experiments.running.machine import MOST_WORKERS
from recollect.experiments.specs.arrival_checks import without_budget
from recollect.experiments.specs.cell import cells
from recollect.experiments.specs.configs import config_path
from recollect.experiments.specs.spec import MOST, load_spec

if TYPE_CHECKING:
    from recollect.experiments.running.costs import StepCost


def cost(
    target: Annotated[
        str,
        typer.Argument(
            metavar="BENCHMARK|FILE", help="Such as mnist-split, or a spec of your own: my.toml."
        ),
    ],
    method: Annotated[
        list[str] | None,
        typer.Option("--method", "-m", metavar="NAME", help="A method of the spec, or `all`."),
    ] = None,
    memory: Annotated[
        int | None, typer.Option(min=1, max=MOST, metavar="SLOTS", help="Slots of the memory.")
    ] = None,
    steps: Annotated[
        int, typer.Option(min=2, max=100_000, metavar="N", help="Steps of each that count.")
    ] = 50,
    threads: Annotated[
        int, typer.Option(min=1, max=MOST_WORKERS, metavar="N", help="Threads of a step.")
    ] = 1,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override, such as optimizer.lr=0.1."),
    ] = None,
    protocol: Annotated[
        str | None, typer.Option(metavar="NAME", help="paper, mir-official or raptormai.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure what a step of each method costs, in steps of ER, as a table for a spec.

    All methods step side by side on the same batches. Put what is printed into
    a spec that says `stream.budget = 1.0`: its stream does not wait, and a method
    that costs n steps of ER sees one in n batches.
    """
    file = Path(target) if target.endswith(".toml") else config_path(target)
    spec = load_spec(file, overrides=settings or (), protocol=protocol, methods=method or ())
    names = list(spec.methods) if method and "all" in method else method
    cells(without_budget(spec), methods=names)
    # What follows takes its time to import; a mistake is told without it.
    import torch

    from recollect.experiments.running.costs import step_costs
    from recollect.experiments.running.machine import machine, versions

    torch.set_num_threads(threads)
    found = step_costs(spec, methods=names, memory=memory, steps=steps)
    where = f"{machine()['cpu']}, {threads} thread{'s' * (threads > 1)}"
    how = f"recollect cost: median of {steps} steps beside er; {where}, torch {versions()['torch']}"
    if as_json:
        told = {"event": "cost", "found": how, "rows": [dataclasses.asdict(row) for row in found]}
        print(json.dumps(told))
        return
    print(_fragment(spec.benchmark, found, how))


def _fragment(benchmark: str, found: Sequence["StepCost"], how: str) -> str:
    """Write costs as the table that a spec takes."""
    slots = max(row.capacity for row in found)
    lines = [f"# {benchmark}, {slots} slots; in brackets where half of the steps are."]
    unfilled = {row.filled for row in found if 0 < row.filled < row.capacity}
    if unfilled:
        lines.append(f"# The memory held {max(unfilled):,} examples; a full one may cost more.")
    lines += ["[stream.cost]", f"found = {json.dumps(how)}"]
    for row in found:
        told = f"{_key(row.method)} = {1.0 if row.is_unit else round(row.cost, 3)}"
        spread = "the unit" if row.is_unit else f"[{row.low:.3g}, {row.high:.3g}]"
        lines.append(f"{told}  # {1e3 * row.seconds:.3g} ms, {spread}")
    return "\n".join(lines)


def _key(name: str) -> str:
    """Write a name as a key of TOML.

    Example:
        >>> _key("er-p"), _key("der++")
        ('er-p', '"der++"')
    """
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else f'"{name}"'
