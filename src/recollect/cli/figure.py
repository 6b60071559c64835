"""`recollect figure`: one static figure of a store."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from recollect.cli.terminal.output import FIGURES, check_output, write_explained
from recollect.errors import RecollectError
from recollect.experiments.records.record import Record
from recollect.reports.reading import read_store
from recollect.suggestions import nearest


class Kind(StrEnum):
    """What is drawn."""

    BARS = "bars"
    CURVES = "curves"
    MATRIX = "matrix"
    MEMORY = "memory"
    SIZES = "sizes"


def figure(
    kind: Annotated[Kind, typer.Argument(help="What to draw.")],
    store: Annotated[Path, typer.Argument(help="The folder of records.", metavar="STORE")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The .png, .svg or .pdf file to write.")
    ],
    benchmark: Annotated[
        list[str] | None, typer.Option("--benchmark", help="Only this one; may be repeated.")
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option("--method", help="Only this one; may be repeated.")
    ] = None,
) -> None:
    """Draw a store: accuracy bars, any-time curves, matrices, memories, or memory sizes."""
    # matplotlib takes its time to import; only this command needs it.
    from recollect.reports.figures import write_figure

    check_output(output, FIGURES)
    records = _chosen(read_store(store), store, benchmark or [], method or [])
    with write_explained(output):
        write_figure(records, kind.value, output)
    print(f"wrote {output}")


def _chosen(
    records: list[Record], store: Path, benchmarks: list[str], methods: list[str]
) -> list[Record]:
    """Keep the records asked for.

    Raises:
        RecollectError: The store has none of a benchmark or a method, or none of the two together.
    """
    held = {
        "--benchmark": (benchmarks, {record.benchmark for record in records}),
        "--method": (methods, {record.method for record in records}),
    }
    for option, (asked, known) in held.items():
        for name in asked:
            if name not in known:
                raise RecollectError(
                    f"`{option}` is {name!r}, of which `{store}` holds no run; "
                    f"{nearest(name, sorted(known))}"
                )
    chosen = [
        record
        for record in records
        if (not benchmarks or record.benchmark in benchmarks)
        and (not methods or record.method in methods)
    ]
    if not chosen:
        raise RecollectError(
            f"`{store}` holds no run of {' or '.join(methods)} on {' or '.join(benchmarks)}; "
            "leave one of the two out."
        )
    return chosen
