"""Refuse a memory that cannot be: a device that is not there; and tell kinds of numbers apart."""

import torch


def checked_device(device: torch.device | str) -> torch.device:
    """Refuse a device that torch does not have here, before anything is to be stored on it.

    Raises:
        ValueError: There is none of this name, or it holds no values.
    """
    try:
        found = torch.device(device)
        torch.empty(0, device=found)
    except (RuntimeError, TypeError, AssertionError) as error:  # torch raises any of these
        reason = str(error).partition("\n")[0].rstrip(".")
        raise ValueError(
            f"`device` is {str(device)!r}, which torch cannot use here ({reason}); pass 'cpu', or "
            "a device that is there."
        ) from error
    if found.type == "meta":
        raise ValueError("`device` is 'meta', which holds no values; pass 'cpu', or another.")
    return found


def is_whole(*kinds: torch.dtype) -> bool:
    """Tell whether all of these hold whole numbers."""
    return all(
        kind != torch.bool and not kind.is_floating_point and not kind.is_complex for kind in kinds
    )
