"""Numbers as people read them. The only place of the library that rounds."""

from typing import Final

from recollect.reports.statistics import FEWEST_SEEDS, PairedDifference

_MINUS: Final = "\u2212"


def percent(share: float, *, digits: int = 1) -> str:
    """Return a share as a percentage without its sign.

    Example:
        >>> percent(0.8374)
        '83.7'
    """
    return _with_minus(f"{100 * share:.{digits}f}")


def points(share: float) -> str:
    """Return a difference of shares in percentage points, with its sign if it shows one.

    Example:
        >>> points(0.052), points(0.0), points(-0.0001)
        ('+5.2', '0.0', '0.0')
    """
    return _with_minus(f"{100 * share:+.1f}")


def probability(p_value: float) -> str:
    """Return a p-value with three digits, or as below 0.001.

    Example:
        >>> probability(0.0312), probability(0.00001)
        ('0.031', '< 0.001')
    """
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


def certainty(difference: PairedDifference) -> str:
    """Return the corrected p-value, or that there are too few seeds for one to mean anything."""
    if difference.adjusted is None:
        return ""
    if not difference.has_enough_seeds:
        return f"n < {FEWEST_SEEDS}"
    return probability(difference.adjusted)


def mebibytes(num_bytes: float) -> str:
    """Return bytes in MiB, whole.

    Example:
        >>> mebibytes(300 * 2**20)
        '300'
    """
    return f"{num_bytes / 2**20:,.0f}"


def seconds(duration: float) -> str:
    """Return a duration in the unit that suits it.

    Example:
        >>> seconds(0.00042), seconds(0.042), seconds(4.2), seconds(421)
        ('0.42 ms', '42 ms', '4.2 s', '7 min 1 s')
    """
    if duration < 0.001:
        return f"{1000 * duration:.2f} ms"
    if duration < 1:
        return f"{1000 * duration:.3g} ms"
    if duration < 120:
        return f"{duration:.1f} s"
    return f"{int(duration // 60)} min {int(duration % 60)} s"


def _with_minus(text: str) -> str:
    # "-0.0" and "+0.0" would claim a direction that the digits do not show.
    if not any(digit in text for digit in "123456789"):
        text = text.lstrip("+-")
    return text.replace("-", _MINUS)
