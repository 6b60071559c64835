"""Hold a test part out of examples that come without one."""

from collections.abc import Sequence

import torch
from torch import Tensor

from recollect.datasets import Examples, LabelledData
from recollect.streams import derived_generator


def with_test_part(
    examples: Examples,
    *,
    share: float = 0.2,
    name: str = "own",
    class_names: Sequence[str] | None = None,
    seed: int = 0,
) -> LabelledData:
    """Return examples as a data set, a share of each class held out for tests.

    Args:
        examples: What a reader of `recollect.datasets` returned.
        share: Of each class; at least one example is held out of each that has two.
        name: Of the data set.
        class_names: By number. None names them by their numbers.
        seed: Decides which. Leave it as it is where runs of several seeds are compared: they are
            then tested on the same examples.

    Example:
        >>> data = with_test_part(Examples(torch.zeros(10, 2), torch.arange(10) % 2))
        >>> len(data.train), len(data.test), sorted(data.test.labels.tolist())
        (8, 2, [0, 1])
    """
    kept, held_out = split_off(examples.labels, share, seed=seed)
    num_classes = int(examples.labels.max()) + 1
    names = tuple(map(str, range(num_classes))) if class_names is None else tuple(class_names)
    return LabelledData(name, examples.take(kept), examples.take(held_out), names)


def split_off(strata: Tensor, share: float, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Cut indices into those that stay and those held out, both ascending.

    Args:
        strata: A whole number for each example; of each number the share is held out.
        share: Above 0 and below 1.
        seed: Decides which.

    Raises:
        ValueError: The share is none.
    """
    if not 0 < share < 1:
        raise ValueError(f"`share` is {share!r}; pass a number between 0 and 1, such as 0.2.")
    is_held_out = torch.zeros(len(strata), dtype=torch.bool)
    for stratum in sorted(set(strata.tolist())):
        members = (strata == stratum).nonzero().flatten()
        if len(members) < 2:
            continue
        num = min(len(members) - 1, max(1, round(share * len(members))))
        generator = derived_generator(seed, "test part", stratum)
        is_held_out[members[torch.randperm(len(members), generator=generator)[:num]]] = True
    return (~is_held_out).nonzero().flatten(), is_held_out.nonzero().flatten()
