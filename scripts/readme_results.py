"""Write the results table of README.md from the committed records; a test runs it with --check.

python scripts/readme_results.py [--check]
"""

import argparse
import sys
from pathlib import Path

from recollect.reports.cells import CellRuns, final_accuracy, final_forgetting, group_cells
from recollect.reports.numbers import percent, points, probability
from recollect.reports.reading import read_store
from recollect.reports.statistics import Summary, corrected, paired_difference, summarise

ROOT = Path(__file__).parents[1]
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
PAPER = {"er": "79.8 ± 3.2", "er-p": "82.4 ± 2.1", "er-c": "81.5 ± 2.1", "er-pc": "84.0 ± 2.3"}


def table() -> str:
    cells = {cell.method: cell for cell in group_cells(read_store(ROOT / "results"))}
    baseline = cells["er"].by_seed(final_accuracy)
    others = [cell for cell in cells.values() if cell.method != "er"]
    differences = corrected(
        [paired_difference(cell.by_seed(final_accuracy), baseline) for cell in others]
    )
    against_er = {
        cell.method: difference for cell, difference in zip(others, differences, strict=True)
    }
    lines = [
        "| method | n | accuracy | forgetting | minus ER | p (Holm) | paper's accuracy |",
        "|---|---|---|---|---|---|---|",
    ]
    for cell in cells.values():
        gain, p_value = "", ""
        if cell.method in against_er:
            difference = against_er[cell.method]
            assert difference.summary is not None
            assert difference.adjusted is not None
            gain = interval(difference.summary)
            p_value = probability(difference.adjusted)
        numbers = of(cell, final_accuracy), of(cell, final_forgetting)
        row = (
            cell.label,
            str(len(cell.seeds)),
            *numbers,
            gain,
            p_value,
            PAPER.get(cell.method, ""),
        )
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)


def of(cell: CellRuns, number: object) -> str:
    assert callable(number)
    summary = summarise(list(cell.by_seed(number).values()))
    assert summary.sd is not None
    return f"{percent(summary.mean)} ± {percent(summary.sd)}"


def interval(summary: Summary) -> str:
    assert summary.low is not None
    assert summary.high is not None
    return f"{points(summary.mean)} [{points(summary.low)}, {points(summary.high)}]"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--check", action="store_true", help="fail instead of writing")
    check = options.parse_args().check
    path = ROOT / "README.md"
    text = path.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    wanted = f"{before}{BEGIN}\n{table()}\n{END}{after}"
    if check and wanted != text:
        sys.exit("README.md's results differ from results/; run scripts/readme_results.py")
    if not check:
        path.write_text(wanted)


if __name__ == "__main__":
    main()
