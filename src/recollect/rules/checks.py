"""Checks that several rules share."""

import math


def is_whole_from_1(value: object) -> bool:
    """Whether `value` is a whole number from 1."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def check_positive(**values: float) -> None:
    """Refuse values that are not finite and above zero."""
    for name, value in values.items():
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"`{name}` is {value!r}; pass a finite number above 0.")


def check_proximal(*, step_size: float, steps: int, pull: float) -> None:
    """Refuse settings under which Eq. 10 is not a descent step towards g."""
    if not (math.isfinite(step_size) and step_size >= 0):
        raise ValueError(f"`step_size` is {step_size!r}; pass a finite number, 0 or above.")
    if not is_whole_from_1(steps):
        raise ValueError(f"`steps` is {steps!r}; pass a whole number from 1.")
    if not 0 <= pull <= 1:
        raise ValueError(f"`pull` is {pull!r}; pass a number between 0 and 1.")


def check_groups(groups: int | None) -> None:
    """Refuse a number of groups that is none."""
    if groups is not None and not is_whole_from_1(groups):
        raise ValueError(f"`groups` is {groups!r}; pass a whole number from 1, or None.")
