"""Bytes on disk, in a package or from a registry become tensors, checked before use."""

from typing import TYPE_CHECKING

from recollect.lazy import import_when_asked

if TYPE_CHECKING:
    from recollect.datasets.catalogue import CATALOGUE, fetch, load
    from recollect.datasets.contact_sheet import contact_sheet
    from recollect.datasets.examples import Examples, LabelledData
    from recollect.datasets.sources.arrays import from_arrays, from_huggingface, from_torch_dataset
    from recollect.datasets.sources.folders import image_folder
    from recollect.datasets.sources.tables import from_table

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

# What there is can be listed without importing what reads it.
import_when_asked(
    __name__,
    {
        "CATALOGUE": "recollect.datasets.catalogue",
        "Examples": "recollect.datasets.examples",
        "LabelledData": "recollect.datasets.examples",
        "contact_sheet": "recollect.datasets.contact_sheet",
        "fetch": "recollect.datasets.catalogue",
        "from_arrays": "recollect.datasets.sources.arrays",
        "from_huggingface": "recollect.datasets.sources.arrays",
        "from_table": "recollect.datasets.sources.tables",
        "from_torch_dataset": "recollect.datasets.sources.arrays",
        "image_folder": "recollect.datasets.sources.folders",
        "load": "recollect.datasets.catalogue",
    },
)
