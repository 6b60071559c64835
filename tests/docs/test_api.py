"""The list of public names is what the code says."""

import importlib

from scripts import api_page


def test_the_page_is_made_from_the_code() -> None:
    made = api_page.page()
    assert api_page.PAGE.read_text() == made, "run python -m scripts.api_page"


def test_every_public_name_has_a_line_with_its_call() -> None:
    made = api_page.page()
    assert (
        "`.observe(inputs, labels, *, ids=None, weights=None)` | Learn from one incoming batch"
        in made
    )
    assert "`MaximallyInterfered(replay, candidates=50, beside='now')`" in made
    assert "| `MarginTiming` | one of `'never'`, " in made
    for name in api_page.MODULES:
        for public in getattr(importlib.import_module(name), "__all__", ()):
            assert f"`{public}" in made, f"{name}.{public}"
            assert f"`{public}` |  |" not in made  # nothing is said of it


def test_a_name_is_told_once() -> None:
    told = [line for line in api_page.page().splitlines() if "`Learner(" in line]
    assert len(told) == 1
