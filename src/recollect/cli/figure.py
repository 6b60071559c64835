"""`recollect figure`: one static figure of a store."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from recollect.reports.reading import read_store


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

    records = [
        record
        for record in read_store(store)
        if (not benchmark or record.benchmark in benchmark)
        and (not method or record.method in method)
    ]
    write_figure(records, kind.value, output)
    print(f"wrote {output}")
