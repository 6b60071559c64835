"""`recollect data`: list, fetch, verify and show data sets."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, cast, get_args

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

from recollect.benchmarks.protocols import BenchmarkName
from recollect.cli.terminal.output import CONTACT_SHEETS, check_output, write_explained
from recollect.datasets.files.roots import cache_root
from recollect.datasets.sources.listing import LISTING, Listed

app = typer.Typer(help="List, fetch, verify and show data sets.", no_args_is_help=True)

Told = Callable[[str, int, int | None], None]
Name = Annotated[str, typer.Argument(help=f"One of {', '.join(LISTING)}.")]
Root = Annotated[
    Path | None,
    typer.Option(help="A folder (for mini-imagenet also a zip) that holds the data set already."),
]


@app.command("list")
def list_data_sets() -> None:
    """List the data sets, their terms, and whether they are on this machine."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("name", "train + test images", "size", "licence", "where"):
        table.add_column(heading, overflow="fold", justify="right" if heading == "size" else "left")
    for name, entry in LISTING.items():
        about = entry.about
        size = f"{about.num_bytes / 1e6:,.0f} MB"
        table.add_row(Text(name, style="bold"), about.title, size, about.licence, _where(entry))
    # Piped into a file or another command, a row stays a row.
    console = Console(markup=False)
    console = console if console.is_terminal else Console(width=200, markup=False)
    console.print(table)
    console.print(
        f"\nOur folder, the <data> above, is {_short(cache_root())} (set RECOLLECT_DATA to change "
        "it).\n`recollect data fetch NAME` brings a data set here.",
        highlight=False,
    )


@app.command("fetch")
def fetch_data_set(name: Name, root: Root = None) -> None:
    """Bring a data set to this machine, checked byte for byte."""
    _known(name)
    # Torch takes its time to import; the list does without it.
    from recollect.datasets import fetch

    with _shown_progress() as told:
        place = fetch(name, root=root, progress=told)
    print(f"{name} is in {place}")


@app.command("verify")
def verify_data_set(name: Name, root: Root = None) -> None:
    """Hash every byte again and compare."""
    _known(name)
    from recollect.datasets import CATALOGUE

    for file, digest in CATALOGUE[name].verify(root):
        print(f"ok  {file}  {digest}")


@app.command("show")
def show_data_set(
    name: Name,
    output: Annotated[Path, typer.Option("--output", "-o", help="The picture to write.")],
    root: Root = None,
    columns: Annotated[int, typer.Option(min=1, help="Images per row.")] = 16,
    rows: Annotated[int, typer.Option(min=1, help="Draw at most this many classes.")] = 100,
) -> None:
    """Draw a contact sheet: one row per class of a data set, or per segment of a benchmark.

    A benchmark (mnist-split, mnist-permuted, cifar10-split, mini-imagenet-split) shows what the
    learner will see: the first examples of each segment, in order of arrival.
    """
    check_output(output, CONTACT_SHEETS)
    is_benchmark = name in get_args(BenchmarkName)
    if not is_benchmark:
        _known(name)
    from recollect.benchmarks import benchmark
    from recollect.cli.terminal.first_images import first_of_each_class
    from recollect.datasets import contact_sheet, load

    if is_benchmark:
        groups = benchmark(cast("BenchmarkName", name), root=root).samples(columns)[:rows]
    else:
        groups = first_of_each_class(load(name, root=root), columns)[:rows]
    with write_explained(output):
        contact_sheet(groups, columns=columns).save(output)
    print(f"wrote {output}")


def _known(name: str) -> None:
    if name not in LISTING:
        raise typer.BadParameter(f"`name` is `{name}`; choose one of {', '.join(LISTING)}.")


def _where(entry: Listed) -> str:
    place = entry.locate()
    if place is None:
        return "[yellow]not here[/yellow]"
    if place.is_relative_to(cache_root()):
        return f"<data>/{place.relative_to(cache_root())}"
    return "in the package"


def _short(path: Path) -> str:
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


@contextmanager
def _shown_progress() -> Iterator[Told]:
    """Yield a callback that draws a bar on a terminal's error stream, and nothing elsewhere."""
    console = Console(stderr=True)
    described = TextColumn("{task.description}", markup=False)
    parts = (SpinnerColumn(), described, BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*parts, console=console, transient=True, disable=not console.is_terminal) as bars:
        bar = bars.add_task("", total=None)

        def told(what: str, done: int, total: int | None) -> None:
            bars.update(bar, description=what, completed=done, total=total)

        yield told
