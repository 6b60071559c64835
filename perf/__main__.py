"""Ask every question and write the page: `make perf`.

    python -m perf                            # whatever this commit has not answered
    python -m perf --only step-cost capacity  # these, by name or beginning of a name, measured anew
    python -m perf --page                     # write page and plots again from what was measured

Every answer is kept as soon as it is there, so a run that was stopped continues.
"""

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from perf.asking.page import NUMBERS, write_page
from perf.asking.questions import QUESTIONS, ROOT
from perf.asking.surroundings import load, surroundings
from recollect.experiments.running.machine import commit

Stored = dict[str, Any]


def main() -> int:
    chosen = options().parse_args()
    if chosen.list:
        print("\n".join(QUESTIONS))
        return 0
    path = chosen.out / NUMBERS
    stored: Stored = json.loads(path.read_text()) if path.exists() else {"sections": {}}
    if not chosen.page:
        stored |= {"date": chosen.date, **surroundings()}
        wanted = wanted_questions(chosen, stored)
        for number, name in enumerate(wanted, 1):
            print(f"\n[{number} of {len(wanted)}] {name}", flush=True)
            stored["sections"][name] = asked(name, is_quick=chosen.quick)
            write_whole(path, json.dumps(stored, indent=1) + "\n")
    print(f"\n{write_page(stored, chosen.out)}")
    failed = [name for name, section in stored["sections"].items() if "error" in section]
    if failed:
        print(f"no answer: {', '.join(failed)}")
    return 1 if failed else 0


def options() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(
        prog="python -m perf", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    found.add_argument("--only", nargs="+", default=[], metavar="NAME", help="measure these anew")
    found.add_argument("--again", action="store_true", help="measure all anew")
    found.add_argument("--page", action="store_true", help="measure nothing")
    found.add_argument("--list", action="store_true", help="name the questions")
    found.add_argument("--quick", action="store_true", help="few repetitions: a trial")
    found.add_argument("--date", default=datetime.datetime.now(datetime.UTC).date().isoformat())
    found.add_argument("--out", type=Path, default=ROOT / "docs" / "performance")
    return found


def wanted_questions(chosen: argparse.Namespace, stored: Stored) -> list[str]:
    """Name the questions to ask: the chosen ones, or those this commit has not answered yet."""
    if chosen.only:
        unknown = [word for word in chosen.only if not any(n.startswith(word) for n in QUESTIONS)]
        if unknown:
            raise SystemExit(f"`--only` has {unknown}; choose from {', '.join(QUESTIONS)}.")
        return [name for name in QUESTIONS if name.startswith(tuple(chosen.only))]
    if chosen.again:
        return list(QUESTIONS)
    left = [name for name in QUESTIONS if not is_answered(stored, name, is_quick=chosen.quick)]
    if kept := len(QUESTIONS) - len(left):
        print(f"{kept} answers of this commit are kept; `--again` measures them anew.")
    return left


def is_answered(stored: Stored, name: str, *, is_quick: bool) -> bool:
    section = stored["sections"].get(name, {})
    same = section.get("commit") == commit() and section.get("is_quick") == is_quick
    return same and "answer" in section


def asked(name: str, *, is_quick: bool) -> Stored:
    """Ask in a fresh process: a question neither inherits nor leaves anything."""
    section: Stored = {
        "commit": commit(),
        "began": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "load": round(load(), 2),
        "is_quick": is_quick,
    }
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answer.json"
        command = [
            sys.executable,
            "-m",
            "perf.asking.ask",
            name,
            str(path),
            *["--quick"] * is_quick,
        ]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        ended = subprocess.run(command, cwd=ROOT, env=environment, check=False)
        section["seconds"] = round(time.perf_counter() - start, 1)
        if ended.returncode or not path.exists():
            return section | {"error": f"ended with code {ended.returncode}"}
        return section | {"answer": json.loads(path.read_text())}


def write_whole(path: Path, text: str) -> None:
    """Write a file so that being stopped leaves the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(text)
    partial.replace(path)


if __name__ == "__main__":
    sys.exit(main())
