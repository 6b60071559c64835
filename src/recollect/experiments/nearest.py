"""What a mistyped key was probably meant to be."""

import difflib
from collections.abc import Iterable


def nearest(key: object, known: Iterable[str]) -> str:
    """Suggest the nearest known key, or list them all.

    Example:
        >>> nearest("momentun", ["lr", "momentum"])
        'did you mean `momentum`?'
    """
    known = list(known)
    close = difflib.get_close_matches(str(key), known, n=1)
    return f"did you mean `{close[0]}`?" if close else f"known are {', '.join(known)}."
