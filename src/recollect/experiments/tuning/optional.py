"""Optuna, imported when a search needs it: it is an extra, and takes half a second."""

import importlib
from functools import cache
from typing import Any

from recollect.errors import MissingExtraError


@cache
def optuna() -> Any:
    """Return the package, quiet.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        found = importlib.import_module("optuna")
    except ImportError as error:
        raise MissingExtraError(
            "a search for settings needs optuna, which is not installed; install it with "
            "`pip install optuna`."
        ) from error
    found.logging.set_verbosity(found.logging.WARNING)
    importlib.import_module("optuna.storages.journal")
    return found
