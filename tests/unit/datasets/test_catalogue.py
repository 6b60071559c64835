import subprocess
import sys
from pathlib import Path

import pytest

from recollect.datasets import CATALOGUE, fetch, load
from recollect.datasets.files.roots import cache_root, huggingface_hub
from recollect.errors import DataError

EMBEDDED = {"mnist-embedded": 10_000, "languages": 1410}


def test_an_unknown_name_lists_the_known_ones() -> None:
    for use in (load, fetch):
        with pytest.raises(
            ValueError, match="`name` is `mnits`; choose one of mnist-embedded, mnist"
        ):
            use("mnits")


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_entry_says_what_it_is_and_on_what_terms(name: str) -> None:
    about = CATALOGUE[name].about
    assert about.name == name
    assert about.title
    assert about.licence
    assert about.homepage.startswith("http")
    assert about.num_bytes > 0


@pytest.mark.parametrize("name", [name for name in CATALOGUE if name not in EMBEDDED])
def test_what_is_not_here_is_an_error_and_no_download(own_root: Path, name: str) -> None:
    with pytest.raises(DataError, match=f"recollect data fetch {name}"):
        load(name)
    assert not list(own_root.glob("*/*"))


@pytest.mark.parametrize("name", EMBEDDED)
def test_an_embedded_set_needs_no_folder_and_no_network(own_root: Path, name: str) -> None:
    assert len(load(name).test) == EMBEDDED[name]
    assert fetch(name).is_dir()
    assert not own_root.exists()


def test_our_folder_is_the_one_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECOLLECT_DATA", str(tmp_path))
    assert cache_root() == tmp_path
    monkeypatch.delenv("RECOLLECT_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_root() == tmp_path / "recollect"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_root() == Path.home() / ".cache" / "recollect"


def test_the_hub_is_found_as_its_client_finds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    assert huggingface_hub() == tmp_path
    monkeypatch.delenv("HF_HUB_CACHE")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    assert huggingface_hub() == tmp_path / "hub"
    monkeypatch.delenv("HF_HOME")
    assert huggingface_hub() == Path.home() / ".cache" / "huggingface" / "hub"


def test_importing_the_datasets_brings_in_no_picture_or_table_library() -> None:
    code = (
        "import recollect.datasets, sys; print([m for m in ('PIL', 'pyarrow') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
