"""Checkpoints without pickle: tensors in safetensors, the rest as JSON inside the same file."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from recollect.atomic_files import replaced_whole
from recollect.errors import CheckpointError

_KIND = "recollect-learner"
_VERSION = 1


@dataclass(frozen=True)
class Checkpoint:
    """Everything a checkpoint holds: named tensors, and facts that JSON can say."""

    tensors: dict[str, Tensor]
    facts: dict[str, object]

    def within(self, prefix: str) -> dict[str, Tensor]:
        """The tensors whose names start with `prefix.`, under the rest of their names."""
        start = prefix + "."
        return {
            name.removeprefix(start): tensor
            for name, tensor in self.tensors.items()
            if name.startswith(start)
        }


def write_checkpoint(path: str | os.PathLike[str], checkpoint: Checkpoint) -> None:
    """Write a checkpoint so that `path` holds either the old file or the whole new one."""
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"`{path.parent}` is not a directory; create it before saving there."
        )
    if path.is_dir():
        raise IsADirectoryError(f"`{path}` is a directory; name a file to save to.")
    if path.exists() and not path.is_file():
        raise OSError(f"`{path}` is a device or a pipe; name a file to save to.")
    tensors = {name: _packed(tensor.detach().cpu()) for name, tensor in checkpoint.tensors.items()}
    facts = json.dumps(checkpoint.facts, allow_nan=True)
    metadata = {"kind": _KIND, "version": str(_VERSION), "facts": facts}
    metadata["sha256"] = _digest(tensors, facts)
    try:
        with replaced_whole(path) as partial:
            save_file(tensors, partial, metadata=metadata)
    except SafetensorError as error:  # its way of saying that the disk is full
        raise OSError(
            f"`{path}` could not be written ({error}); what was there is kept."
        ) from error


def read_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Read a checkpoint whole, or refuse it.

    Raises:
        FileNotFoundError: there is no such file.
        CheckpointError: the file is truncated, altered, of another kind or of a newer version.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"`{path}` is not a file; nothing was loaded.")
    try:
        with safe_open(path, framework="pt") as opened:
            metadata = opened.metadata() or {}
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except Exception as error:  # of a dtype that torch lacks, safetensors makes many kinds
        raise CheckpointError(
            f"`{path}` is truncated or not a checkpoint ({error}); nothing was loaded."
        ) from error
    if metadata.get("kind") != _KIND:
        raise CheckpointError(
            f"`{path}` is a safetensors file but not a learner's checkpoint; nothing was loaded. "
            "Use a file that `Learner.save` wrote."
        )
    if metadata.get("version") != str(_VERSION):
        raise CheckpointError(
            f"`{path}` has format version {metadata.get('version')}, this recollect reads "
            f"{_VERSION}; nothing was loaded. Use the recollect that wrote it, or a newer one."
        )
    facts = metadata.get("facts", "")
    if metadata.get("sha256") != _digest(tensors, facts):
        raise CheckpointError(
            f"`{path}` was altered after it was written (its digest differs); nothing was loaded. "
            "Use another copy."
        )
    return Checkpoint(tensors, _read_facts(path, facts))


def pack(value: object, name: str, tensors: dict[str, Tensor]) -> object:
    """Turn a nesting of dicts, lists, tuples, numbers and tensors into JSON plus named tensors."""
    if isinstance(value, Tensor):
        tensors[name] = value
        return {"tensor": name}
    if isinstance(value, Mapping):
        entries = [[key, pack(entry, f"{name}.{key}", tensors)] for key, entry in value.items()]
        return {"dict": entries}
    if isinstance(value, tuple | list):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [pack(entry, f"{name}.{i}", tensors) for i, entry in enumerate(value)]}
    if value is None or isinstance(value, bool | int | float | str):
        return {"value": value}
    raise CheckpointError(
        f"`{name}` is a {type(value).__name__}, which a checkpoint cannot hold without pickle; "
        "only tensors, numbers, strings and nestings of them can be saved."
    )


def unpack(packed: object, tensors: Mapping[str, Tensor]) -> object:
    """Turn back what `pack` made.

    Raises:
        CheckpointError: `pack` cannot have made it.
    """
    try:
        return _unpacked(packed, tensors)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise CheckpointError(
            f"the checkpoint is damaged: `{str(packed)[:80]}` is nothing that was saved ({error}); "
            "nothing was loaded."
        ) from error


def _unpacked(packed: object, tensors: Mapping[str, Tensor]) -> object:
    if not isinstance(packed, dict):
        raise TypeError(f"a {type(packed).__name__} is no dict")
    ((kind, content),) = packed.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "value" and (content is None or isinstance(content, bool | int | float | str)):
        return content
    if kind not in ("dict", "tuple", "list") or not isinstance(content, list):
        raise ValueError(f"{kind!r} holds a {type(content).__name__}")
    if kind == "dict":
        entries = {key: _unpacked(entry, tensors) for key, entry in content}
        if len(entries) < len(content):
            raise ValueError("a key is there twice")
        return entries
    values = [_unpacked(entry, tensors) for entry in content]
    return tuple(values) if kind == "tuple" else values


def _read_facts(path: Path, text: str) -> dict[str, object]:
    try:
        facts = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"`{path}` is damaged ({error}); nothing was loaded.") from error
    if not isinstance(facts, dict):
        raise CheckpointError(
            f"`{path}` is damaged (its facts are a {type(facts).__name__}); nothing was loaded."
        )
    return facts


def _packed(tensor: Tensor) -> Tensor:
    """Lay the values out side by side; a single one counts as such whatever its stride."""
    if tensor.numel() == 1:
        return tensor.clone(memory_format=torch.contiguous_format)
    return tensor.contiguous()


def _digest(tensors: Mapping[str, Tensor], facts: str) -> str:
    digest = hashlib.sha256(facts.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name}|{tensor.dtype}|{tuple(tensor.shape)}|".encode())
        digest.update(tensor.cpu().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
