"""A client of a dask scheduler, or a message that says why there is none."""

import logging
from collections.abc import Callable
from pathlib import Path

from distributed import Client

from recollect.errors import WorkerError


def connected(on: str) -> Client:
    """Return a client of the scheduler at an address, or of which a file tells.

    What dask is configured to (`DASK_DISTRIBUTED__COMM__TLS__CA_FILE` and its kin) holds.

    Raises:
        WorkerError: None answers.
    """
    where = {"scheduler_file": on} if Path(on).is_file() else {"address": on}
    try:
        return Client(**where, set_as_default=False, name="recollect")
    except (OSError, TimeoutError, ValueError, TypeError, KeyError, RuntimeError) as error:
        raise WorkerError(
            f"no dask scheduler answers at `{on}` ({error}). Start one with `dask scheduler`; "
            "docs/cluster.md says how."
        ) from error


def silence_dask() -> Callable[[], None]:
    """Keep dask from logging what we say in our own words; return what lets it speak again."""
    loggers = [
        logging.getLogger(name)
        for name in ("distributed", *logging.root.manager.loggerDict)
        if name.partition(".")[0] == "distributed"
    ]
    levels = [(logger, logger.level) for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)

    def restore() -> None:
        for logger, level in levels:
            logger.setLevel(level)

    return restore
