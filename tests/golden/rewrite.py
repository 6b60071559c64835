"""Write the golden traces anew: `make golden`. Read the diff, and say in the changelog why."""

import json

import torch
from tests.golden.traces import FOLDER, trace

from recollect import METHODS


def as_text(found: dict[str, object]) -> str:
    """Lay a trace out with one line an entry, so that a diff shows the first step that moved."""
    lines = []
    for key, value in found.items():
        if isinstance(value, list):
            entries = ",\n".join(f"    {json.dumps(entry)}" for entry in value)
            lines.append(f"  {json.dumps(key)}: [\n{entries}\n  ]")
        else:
            lines.append(f"  {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main() -> None:
    torch.set_num_threads(1)
    FOLDER.mkdir(exist_ok=True)
    for name in METHODS:
        (FOLDER / f"{name}.json").write_text(as_text(trace(name)))


if __name__ == "__main__":
    main()
