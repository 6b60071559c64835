"""Bytes on disk, in a package or from a registry become tensors, checked before use."""

from recollect.datasets.arrays import from_arrays, from_huggingface, from_torch_dataset
from recollect.datasets.catalogue import CATALOGUE, fetch, load
from recollect.datasets.contact_sheet import contact_sheet
from recollect.datasets.examples import Examples, LabelledData
from recollect.datasets.folders import image_folder
from recollect.datasets.tables import from_table

__all__ = [
    "CATALOGUE",
    "Examples",
    "LabelledData",
    "contact_sheet",
    "fetch",
    "from_arrays",
    "from_huggingface",
    "from_table",
    "from_torch_dataset",
    "image_folder",
    "load",
]
