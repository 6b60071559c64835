"""Take the golden traces anew: `make golden`. Read the diff, and say in the changelog why.

On a kind of processor that has no float32 traces yet it adds them and moves nothing else.
"""

import torch
from tests.golden import processor
from tests.golden.files import FOLDER, as_text, merged, path_of, read
from tests.golden.scenarios import SCENARIOS
from tests.golden.traces import trace


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    kind = processor.kind()
    print(f"This processor is: {kind}.")
    for left in set(FOLDER.iterdir()) - set(map(path_of, SCENARIOS)):
        left.unlink()
        print(f"{left.name}: removed, it belongs to no scenario")
    for name, scenario in SCENARIOS.items():
        path = path_of(name)
        before = read(name) if path.exists() else {}
        float64, float32 = (trace(scenario, dtype) for dtype in (torch.float64, torch.float32))
        after = merged(before, float64, float32, kind)
        path.write_text(as_text(after))
        new = [which for which in after if which not in before]
        moved = [which for which in after if which in before and after[which] != before[which]]
        gone = [which for which in before if which not in after]
        for what, which in (("new", new), ("moved", moved), ("dropped", gone)):
            if which:
                print(f"{name}: {what}: {'; '.join(which)}")


if __name__ == "__main__":
    main()
