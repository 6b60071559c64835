"""torch's own lazy backend as a second device: every CPU build has it, and mixing devices raises.

It stands in for an accelerator where there is none. What it lacks of one is added here: a module
`torch.lazy` that answers for the device's random state, as `torch.cuda` does.
"""

import sys
import types

import torch
import torch._lazy.ts_backend


class _AnyDevice:
    """`torch.lazy.device(...)`: there is one only."""

    def __init__(self, device: object) -> None: ...

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def start() -> torch.device:
    """Make the device usable; may be called again."""
    if "torch.lazy" not in sys.modules:
        torch._lazy.ts_backend.init()  # type: ignore[no-untyped-call]
        module = types.ModuleType("torch.lazy")
        state = [torch.Generator().manual_seed(0).get_state()]

        def get_rng_state(device: object = None) -> torch.Tensor:
            return state[0].clone()

        def set_rng_state(new: torch.Tensor, device: object = None) -> None:
            state[0] = new.clone()

        functions = {
            "get_rng_state": get_rng_state,
            "set_rng_state": set_rng_state,
            "current_device": lambda: 0,
            "device_count": lambda: 1,
            "is_available": lambda: True,
            "device": _AnyDevice,
        }
        vars(module).update(functions)
        sys.modules["torch.lazy"] = module
        torch.lazy = module  # type: ignore[attr-defined]
    return torch.device("lazy")
