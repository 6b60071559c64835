"""`recollect tune`: settings searched for on validation data."""

import shlex
import signal
import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from recollect.cli.run import MAIN_JOB
from recollect.cli.terminal.output import path_in_words
from recollect.experiments.executors.workforce import Workforce
from recollect.experiments.running.machine import MOST_WORKERS, usable_cores
from recollect.experiments.specs.configs import config_path
from recollect.experiments.specs.spec import MOST
from recollect.experiments.tuning.optional import optuna
from recollect.experiments.tuning.plan import Wanted, make_plan
from recollect.experiments.tuning.table import MOST_SEEDS, MOST_TRIALS

_USUAL_FOLDER: Final = Path("runs") / "tune"


def tune(
    target: Annotated[
        str,
        typer.Argument(
            metavar="BENCHMARK|FILE",
            help=f"Such as {MAIN_JOB}, or a spec of your own that ends in .toml.",
        ),
    ],
    method: Annotated[
        list[str] | None,
        typer.Option("--method", "-m", metavar="NAME", help="A method of the spec, or `all`."),
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(min=1, max=MOST_TRIALS, metavar="N", help="Trials of each method."),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, max=MOST_SEEDS, metavar="N", help="Seeds of each trial.")
    ] = None,
    finalists: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Trials that run again on fresh seeds.")
    ] = None,
    fresh_seeds: Annotated[
        int | None,
        typer.Option(min=0, max=MOST_SEEDS, metavar="N", help="Fresh seeds, which alone choose."),
    ] = None,
    ahead: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Trials of one method that may run at once."),
    ] = None,
    prune: Annotated[
        bool | None,
        typer.Option("--prune/--no-prune", help="Stop runs early that are worse than others."),
    ] = None,
    memory: Annotated[
        int | None, typer.Option(min=1, max=MOST, metavar="SLOTS", help="Slots of the memory.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override, such as tune.space.lr=false."),
    ] = None,
    protocol: Annotated[
        str | None, typer.Option(metavar="NAME", help="paper, mir-official or raptormai.")
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, max=MOST_WORKERS, metavar="N", help="Processes of this command."),
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(
            metavar="CLUSTER",
            help="dask, or the address or file of a dask scheduler. Default: processes here.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the search, which several commands may share."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only the result.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per event.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be tried; run nothing.")
    ] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Go on with the source of today.")] = False,
) -> None:
    """Search settings on validation data, and write the best as a spec.

    Every method gets as many trials, each on the same seeds; the best ones run
    again on fresh seeds, which alone choose. Test data is not read. Stop at any
    time; the same command continues, and the same command given twice shares
    the trials. It needs `pip install optuna`.
    """
    is_file = target.endswith(".toml")
    file = Path(target) if is_file else config_path(target)
    said: dict[str, Any] = {
        "trials": trials,
        "seeds": seeds,
        "finalists": finalists,
        "fresh_seeds": fresh_seeds,
        "ahead": ahead,
        "prune": prune,
    }
    wanted = Wanted(
        file,
        spec=path_in_words(file) if is_file else None,
        overrides=tuple(settings or ()),
        protocol=protocol,
        memory=memory,
        methods=None if method is None else tuple(method),
        budget={key: value for key, value in said.items() if value is not None},
    )
    plan = make_plan(wanted)
    name = file.stem
    folder = out or _USUAL_FOLDER / name
    # What follows takes its time to import; a mistake is told without it.
    optuna()
    from recollect.cli.terminal.searching import Manner, carry_out_search
    from recollect.cli.terminal.tuning import show_plan

    if dry_run:
        show_plan(plan, folder, is_json=as_json)
        return
    command = shlex.join(["recollect", *sys.argv[1:]])
    workforce = Workforce(workers or usable_cores(), on=on)
    manner = Manner(workforce, is_fresh=fresh, is_quiet=quiet, is_json=as_json)
    stopped_by = carry_out_search(plan, folder, manner, name=name, command=command)
    if stopped_by is not None:
        print(f"Stopped; the same command continues:\n  {command}", file=sys.stderr)
        raise typer.Exit(128 + (stopped_by or signal.SIGINT))
