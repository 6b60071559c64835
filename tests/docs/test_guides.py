"""The code in the guides runs, from top to bottom of a page."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_code_of_the_benchmarks_page_runs() -> None:
    page = (DOCS / "benchmarks.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(blocks) >= 2
    exec(compile("\n".join(blocks), "benchmarks.md", "exec"), {})
