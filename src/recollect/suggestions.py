"""What a mistyped key was probably meant to be, and how a mistaken value is shown."""

import difflib
from collections.abc import Iterable
from typing import Final

_MOST_SHOWN: Final = 80


def shown(value: object) -> str:
    """Return a value as an error names it: on one short line, whatever it is.

    Example:
        >>> shown("x" * 1000)[-20:]
        'xxxx... (1002 signs)'
    """
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of 4,301 digits, lists in lists
        return f"a very large {type(value).__name__}"
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}... ({len(text)} signs)"


def near(key: object, known: Iterable[str]) -> str | None:
    """Return the known key nearest to a mistyped one, None if all are far.

    Example:
        >>> near("momentun", ["lr", "momentum"]), near("seed", ["lr", "momentum"])
        ('momentum', None)
    """
    close = difflib.get_close_matches(str(key), known, n=1)
    return close[0] if close else None


def nearest(key: object, known: Iterable[str]) -> str:
    """Suggest the nearest known key, or list them all.

    Example:
        >>> nearest("momentun", ["lr", "momentum"])
        'did you mean `momentum`?'
    """
    known = list(known)
    close = near(key, known)
    return f"did you mean `{close}`?" if close else f"known are {', '.join(known)}."
