"""The first images of each class of a data set."""

from torch import Tensor

from recollect.datasets import LabelledData


def first_of_each_class(loaded: LabelledData, num: int) -> list[tuple[str, Tensor]]:
    """Return a caption and the first images of each class, in order of the classes."""
    groups = []
    for label, class_name in enumerate(loaded.class_names):
        own = (loaded.train.labels == label).nonzero().flatten()[:num]
        caption = class_name if class_name == str(label) else f"{label}  {class_name}"
        groups.append((caption, loaded.train.take(own).inputs))
    return groups
