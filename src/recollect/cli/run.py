"""`recollect run`: methods on a benchmark, compared in one table."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from recollect.cli.terminal.output import path_in_words
from recollect.errors import ConfigError
from recollect.experiments.running.machine import CHECKPOINT_SHARE, MOST_WORKERS, usable_cores
from recollect.experiments.specs.cell import cells
from recollect.experiments.specs.configs import config_path
from recollect.experiments.specs.request import MOST_SEED, requests
from recollect.experiments.specs.spec import MOST, Spec, load_spec
from recollect.suggestions import shown

MAIN_JOB: Final = "mnist-split"
_USUAL_STORE: Final = Path("runs")


def run(
    benchmark: Annotated[
        str | None,
        typer.Argument(
            metavar="BENCHMARK|FILE",
            show_default=False,
            help=f"Such as {MAIN_JOB}, which is the default and needs no download; or a spec of "
            "your own, such as my.toml.",
        ),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            "-m",
            metavar="NAME",
            help="A method of the spec or of the library, or `all`. May be repeated.",
        ),
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(metavar="N|A:B", help="Seeds 0 to N-1, or A to B-1.")
    ] = None,
    memory: Annotated[
        list[int] | None,
        typer.Option(
            min=1, max=MOST, metavar="SLOTS", help="Slots of the memory. May be repeated."
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MOST_WORKERS,
            metavar="N",
            help="Processes. Default: as many as fill the cores.",
        ),
    ] = None,
    threads: Annotated[
        int,
        typer.Option(
            min=1,
            max=MOST_WORKERS,
            metavar="N",
            help="Threads per process. For fewer runs than cores.",
        ),
    ] = 1,
    on: Annotated[
        str | None,
        typer.Option(
            metavar="CLUSTER",
            help="dask, or the address or file of a dask scheduler. Default: processes here.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override, such as optimizer.lr=0.1."),
    ] = None,
    protocol: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="paper, mir-official or raptormai, with its defaults."),
    ] = None,
    spec: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A spec of your own instead of the benchmark's."),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The store: records and report.")
    ] = _USUAL_STORE,
    track: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME|FILE:CLASS",
            help="Losses, accuracy, norms, memory along each run: csv, tensorboard, or a class "
            "of your own. May be repeated.",
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only the table.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object per event; the last is the table.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be run and how long it takes.")
    ] = False,
    fresh: Annotated[
        bool,
        typer.Option("--fresh", help="Begin what is not done anew, with the source of today."),
    ] = False,
    checkpoint_share: Annotated[float, typer.Option(hidden=True)] = CHECKPOINT_SHARE,
) -> None:
    """Run methods on a benchmark and compare them over seeds.

    Without arguments: no memory (VAN), replay (ER) and the most accurate method
    so far (ER-CLIP-MIR) on Split MNIST, with data from the package, in about a
    minute. Runs that the store holds are not made again. Stop at any time; the
    same command continues.
    """
    overrides = settings or []
    if benchmark is not None and benchmark.endswith(".toml"):
        if spec is not None:
            told = f"is {benchmark!r}, and --spec {str(spec)!r} is given too; leave one out."
            raise ConfigError("the command", [("benchmark", told)])
        spec, benchmark = Path(benchmark), None
    chosen = _spec(benchmark, spec, overrides, protocol, method or ())
    names = list(chosen.methods) if method and "all" in method else method
    asked = cells(chosen, methods=names, memory=memory)
    asked_seeds = _seeds(seeds, chosen.seeds)
    workers = workers or max(1, usable_cores() // threads)
    # What follows takes its time to import; a mistake is told without it.
    if dry_run:
        from recollect.cli.terminal.missing import show_missing

        show_missing(
            asked, asked_seeds, out, workers=workers, on=on, is_fresh=fresh, is_json=as_json
        )
        return
    from recollect.cli.terminal.sweeping import Wishes, carry_out
    from recollect.experiments.executors.workforce import Workforce
    from recollect.experiments.tracking.named import named_trackers

    wanted = requests(
        asked,
        asked_seeds,
        spec=None if spec is None else path_in_words(spec),
        overrides=overrides,
        threads=threads,
        are_tracked=bool(track),
    )
    is_main_job = not (benchmark or method or memory or overrides or protocol or spec)
    wishes = Wishes(
        workforce=Workforce(workers, threads, on, checkpoint_share),
        is_fresh=fresh,
        is_quiet=quiet,
        is_json=as_json,
        trackers=named_trackers(track or ()),
    )
    carry_out(wanted, out, wishes, closes_for=_USUAL_STORE if is_main_job else None)


def _spec(
    benchmark: str | None,
    path: Path | None,
    overrides: Sequence[str],
    protocol: str | None,
    methods: Sequence[str],
) -> Spec:
    file = config_path(benchmark or MAIN_JOB) if path is None else path
    chosen = load_spec(file, overrides=overrides, protocol=protocol, methods=methods)
    if benchmark is not None and chosen.benchmark != benchmark:
        problem = f"is {chosen.benchmark!r}, the command says {benchmark!r}; leave one out."
        raise ConfigError(str(file), [("benchmark", problem)])
    return chosen


def _seeds(text: str | None, usual: int) -> range:
    """Read `N` as 0 to N-1 and `A:B` as A to B-1."""
    first, colon, last = (str(usual) if text is None else text).partition(":")
    try:
        seeds = range(int(first), int(last)) if colon else range(int(first))
    except ValueError:
        seeds = range(0)
    if seeds.stop > MOST_SEED + 1:
        raise typer.BadParameter(
            f"`--seeds` is {shown(text)}; the largest seed that a record holds is {MOST_SEED}."
        )
    if not seeds or seeds[0] < 0:
        raise typer.BadParameter(
            f"`--seeds` is {shown(text)}; write a number such as 10 for seeds 0 to 9, or 10:20 for "
            "seeds 10 to 19."
        )
    return seeds
