"""No folder is so full that its listing no longer says what is where."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
MOST = 14
LISTED = ("src", "tests", "studies", "perf", "scripts", "examples")


def modules(folder: Path) -> list[Path]:
    return [path for path in folder.glob("*.py") if not path.name.startswith("__")]


def test_no_folder_has_more_modules_than_a_listing_can_explain() -> None:
    folders = {path.parent for part in LISTED for path in (ROOT / part).rglob("*.py")}
    full = {
        folder.relative_to(ROOT).as_posix(): len(modules(folder))
        for folder in folders
        if len(modules(folder)) > MOST
    }
    assert full == {}


def test_every_folder_of_the_source_says_what_it_is_for() -> None:
    silent = [
        folder
        for part in ("src/recollect", "studies", "perf")
        for folder in {path.parent for path in (ROOT / part).rglob("*.py")}
        if not (folder / "__init__.py").read_text().startswith('"""')
    ]
    assert silent == []
