"""`recollect report`: one page about a store."""

from pathlib import Path
from typing import Annotated

import typer

from recollect.cli.terminal.output import check_output, write_explained
from recollect.reports.reading import links_to_code, read_store


def report(
    store: Annotated[Path, typer.Argument(help="The folder of records.", metavar="STORE")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path(
        "report.html"
    ),
) -> None:
    """Write one page with everything a store holds. It needs no network and opens anywhere."""
    check_output(output)
    records = read_store(store)
    # What draws takes its time to import; help and a mistake are told without it.
    from recollect.reports.html import write_report

    with write_explained(output):
        write_report(records, output, code=links_to_code(store, output))
    print(f"wrote {output} ({output.stat().st_size / 1e6:.1f} MB, {len(records)} runs)")
