"""`recollect verify`: is a store still what was written?"""

from pathlib import Path
from typing import Annotated

import typer

from recollect.errors import RecollectError


def verify(
    store: Annotated[Path, typer.Argument(help="The folder of records.", metavar="STORE")],
) -> None:
    """Compare every record and every checkpoint of a store with its digest."""
    if not store.is_dir():
        raise RecollectError(f"`{store}` is not a folder; give one that `recollect run` wrote to.")
    # What reads checkpoints takes its time to import; help and a mistake are told without it.
    from recollect.experiments.records.verify import verify_store

    verdicts = list(verify_store(store))
    for verdict in verdicts:
        if verdict.state == "damaged":
            print(f"damaged         {verdict.reason}")
        elif verdict.state == "without digest":
            print(f"without digest  {verdict.path} ({_counted(verdict.num_records, 'record')})")
    sound = [verdict for verdict in verdicts if verdict.state == "sound"]
    checkpoints = sum(verdict.num_records == 0 for verdict in sound)
    unknown = sum(verdict.num_records for verdict in verdicts if verdict.state == "without digest")
    damaged = sum(verdict.state == "damaged" for verdict in verdicts)
    records = sum(verdict.num_records for verdict in sound)
    print(f"{_counted(records, 'record')} and {_counted(checkpoints, 'checkpoint')} as written")
    if unknown:
        print(
            f"{_counted(unknown, 'record')} without a digest, from before records had one: they "
            "can be read, but not checked for changes"
        )
    if damaged:
        raise RecollectError(
            f"`{store}`: {damaged} damaged, see above; move these away and give the command that "
            "made them again."
        )


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
