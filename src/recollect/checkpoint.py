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
    tensors = {name: _packed(tensor.detach()) for name, tensor in checkpoint.tensors.items()}
    facts = json.dumps(checkpoint.facts, allow_nan=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        save_file(
            tensors,
            partial,
            metadata={
                "kind": _KIND,
                "version": str(_VERSION),
                "facts": facts,
                "sha256": _digest(tensors, facts),
            },
        )
        with open(partial, "rb") as written:
            os.fsync(written.fileno())
        os.replace(partial, path)
    except SafetensorError as error:  # its way of saying that the disk is full
        raise OSError(
            f"`{path}` could not be written ({error}); what was there is kept."
        ) from error
    finally:
        partial.unlink(missing_ok=True)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)  # the rename itself must survive a power cut
    finally:
        os.close(directory)


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
    except (SafetensorError, OSError) as error:
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
    if metadata.get("sha256") != _digest(tensors, metadata.get("facts", "")):
        raise CheckpointError(
            f"`{path}` was altered after it was written (its digest differs); nothing was loaded. "
            "Use another copy."
        )
    return Checkpoint(tensors, json.loads(metadata["facts"]))


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
    """Turn back what `pack` made."""
    assert isinstance(packed, dict)
    ((kind, content),) = packed.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "dict":
        return {key: unpack(entry, tensors) for key, entry in content}
    if kind == "value":
        return content
    values = [unpack(entry, tensors) for entry in content]
    return tuple(values) if kind == "tuple" else values


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
