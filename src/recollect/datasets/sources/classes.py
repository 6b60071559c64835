"""Labels as people write them become class numbers."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from recollect.errors import DataError


def class_numbers(
    values: Sequence[Any], *, classes: Sequence[str] | None = None, origin: str
) -> tuple[Tensor, tuple[str, ...]]:
    """Return one class number per value, and the names of the classes by number.

    Args:
        values: Whole numbers from 0, which are taken as they are, or anything else, which is
            numbered in sorted order.
        classes: Names of the classes by number, where they are known already, as those of a test
            part are from the training part.
        origin: Where the values are from, for messages.

    Raises:
        DataError: A value is none of `classes`.

    Example:
        >>> class_numbers(["dog", "cat", "dog"], origin="pets.csv")
        (tensor([1, 0, 1]), ('cat', 'dog'))
    """
    numbers = _whole_numbers(values)
    if classes is None:
        if numbers is not None:
            names = tuple(map(str, range(max(numbers, default=-1) + 1)))
            return torch.tensor(numbers, dtype=torch.int64), names
        classes = sorted({str(value) for value in values})
    order = {name: label for label, name in enumerate(classes)}
    unknown = sorted({str(value) for value in values} - order.keys())
    if unknown:
        raise DataError(
            f"`{origin}` has the class `{unknown[0]}`, which is none of "
            f"{', '.join(classes)[:200]}; correct it, or name the class."
        )
    labels = torch.tensor([order[str(value)] for value in values], dtype=torch.int64)
    return labels, tuple(classes)


def _whole_numbers(values: Sequence[Any]) -> list[int] | None:
    try:
        numbers = [int(value) for value in values]
    except (TypeError, ValueError):
        return None
    # `int` also takes 1.5 and "-3" and True: only spellings of a class number count as one.
    if not numbers or min(numbers) < 0 or max(numbers) >= 2**63:
        return None
    is_spelt = all(str(n) == str(v) for n, v in zip(numbers, values, strict=True))
    return numbers if is_spelt else None
