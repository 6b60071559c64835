"""Ask one question and write its answer to a file, in a process of its own.

python -m perf.asking.ask capacity answer.json [--quick]
"""

import json
import sys
from pathlib import Path

from perf.asking.answer import lines_of
from perf.asking.questions import QUESTIONS

if __name__ == "__main__":
    name, path, *options = sys.argv[1:]
    answer = QUESTIONS[name]("--quick" in options)
    Path(path).write_text(json.dumps(answer.to_json()))
    print("\n".join(lines_of(answer)), flush=True)
