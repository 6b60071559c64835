"""Count what goes from one device to another."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.overrides import TorchFunctionMode

READINGS = ("item", "tolist", "__bool__", "__float__", "__int__", "__index__", "equal", "allclose")


class Transfers(TorchFunctionMode):
    """Count tensors that arrive at an accelerator, leave it, and numbers read off it."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        name = getattr(function, "__name__", "")
        given = [entry for entry in args if isinstance(entry, Tensor)]
        if name in READINGS and any(tensor.device.type != "cpu" for tensor in given):
            self.counts["numbers read"] += 1
        if name in ("to", "cpu", "copy_") and isinstance(result, Tensor) and given:
            source, target = given[-1].device.type, result.device.type
            if source != target:
                self.counts["arrive" if source == "cpu" else "leave"] += 1
        return result


def transfers_of(step: Callable[[], object]) -> Counter[str]:
    """Count those of one call."""
    with Transfers() as counting:
        step()
    return counting.counts
