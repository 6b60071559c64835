"""From a `[data]` table to the settings of a cell: files found, columns checked, digests taken."""

from collections.abc import Mapping
from typing import Any

from recollect.errors import DataError, RecollectError
from recollect.experiments.specs.data.digest import digest_of_files
from recollect.experiments.specs.data.sources import SOURCES, Source
from recollect.experiments.specs.data.table import DataTable
from recollect.suggestions import nearest, shown

Problem = tuple[str, str]
Settings = dict[str, Any]

_READ_BY = ("label", "inputs", "image", "size", "mode", "split", "revision")
_CUT_BY = ("classes_per_segment", "class_order", "classes", "column", "segments", "blur")
_USUAL_SHARE = 0.2


def settings_of(table: DataTable) -> tuple[Settings, list[Problem]]:
    """Find the files of a table's data, and return all that decides the numbers; and what is wrong.

    The digest of the files is among it. `where` is for finding them only.
    """
    options = _said(table, _READ_BY)
    if table.kind == "table" and isinstance(options.get("inputs"), str):
        options["inputs"] = [options["inputs"]]
    if table.kind == "arrays" and table.where.endswith(".npy"):
        options["label"] = {"where": options["label"]}
    source = SOURCES[table.kind](table.where, options)
    problems = _problems_of(source, table.kind)
    if not problems:
        problems = _column_problems(source, table) or _class_problems(source, table)
    test, of_test = _test_part(table, options)
    problems += of_test
    if problems:
        return {}, problems
    settings: Settings = {"kind": table.kind, "where": table.where, **options}
    try:
        settings["sha256"] = digest(source)
    except DataError as error:
        return {}, [(table.kind, str(error))]
    settings["cut"] = {"by": table.cut, **_said(table, _CUT_BY)}
    if test is not None:
        settings["test"] = test
    if table.scaling not in (None, "usual"):
        settings["scaling"] = table.scaling
    return settings, []


def digest(source: Source) -> str:
    """Return what tells the source's data from other data."""
    return digest_of_files(source.files(), root=source.root)


def _said(table: DataTable, keys: tuple[str, ...]) -> Settings:
    return table.model_dump(include=set(keys), exclude_none=True)


def _problems_of(source: Source, key: str) -> list[Problem]:
    try:
        source.files()
    except (ValueError, OSError, RecollectError) as error:
        return [(key, str(error))]
    return []


def _column_problems(source: Source, table: DataTable) -> list[Problem]:
    names = source.columns()
    if names is None:
        return []
    wanted: Mapping[str, Any] = table.model_dump(include={"label", "image", "inputs", "column"})
    return [
        (key, f"is {shown(name)}; {nearest(name, names)}")
        for key, value in wanted.items()
        for name in (value if isinstance(value, list) else [value])
        if name is not None and name not in names
    ]


def _class_problems(source: Source, table: DataTable) -> list[Problem]:
    """Check the cut by class, where the classes can be told without reading everything."""
    names = source.classes() if table.cut == "class" else None
    if names is None:
        return []
    each = table.classes_per_segment
    if each is not None and len(names) % each:
        told = f"is {each}, which does not divide the {len(names)} classes; or name `classes`."
        return [("classes_per_segment", told)]
    named = [name for group in table.classes or () for name in group]
    return [
        ("classes", f"names {shown(name)}; {nearest(name, names)}")
        for name in named
        if name not in names
    ]


def _test_part(table: DataTable, options: Settings) -> tuple[Settings | None, list[Problem]]:
    """Return what is held out for tests; None for a set that has its own test part."""
    if table.kind == "set":
        return None, []
    if not isinstance(table.test, str):
        return {"share": table.test or _USUAL_SHARE}, []
    if table.kind == "huggingface":
        return {"split": table.test}, []
    if table.kind == "arrays" and not table.test.endswith(".npz"):
        return None, [("test", "is a file; with .npy files give a share such as 0.2.")]
    if table.cut == "time" and table.column is None:
        return None, [("test", "is a part of its own, whose time is unknown; give a share.")]
    source = SOURCES[table.kind](table.test, options)
    problems = _problems_of(source, "test")
    if problems:
        return None, problems
    try:
        return {"where": table.test, "sha256": digest(source)}, []
    except DataError as error:
        return None, [("test", str(error))]
