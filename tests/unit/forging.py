"""Forge checkpoints: change what a file says in all plausible ways, and sign it again."""

import copy
import json
import math
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from recollect.checkpoint import _digest as signature

Metadata = dict[str, str]
Tensors = dict[str, Tensor]
Place = tuple[Any, Any]  # a list or dict, and where in it

_WHOLE = [0, 1, -1, -5, 2, 7, 2**31, 2**53 + 1, 2**62, 2**63, -(2**63), 10**30]
_REAL = [0.5, -0.5, 1e-300, 1e30, 1e308, -1e308, math.nan, math.inf, -math.inf]
_OTHER: list[Any] = [
    *(
        None,
        True,
        False,
        "",
        "x",
        "NaN",
        "5",
        "none",
        "../../../tmp/it",
        "\0",
        [],
        {},
        [[]],
        [None],
    ),
    *({"tensor": "model.1.weight"}, {"tensor": "nowhere"}, {"tensor": 3}, {"value": {}}),
    *({"value": [1]}, {"dict": []}, {"dict": [["a"]]}, {"dict": [[[], {"value": 1}]]}, {"list": 3}),
    *({"tuple": []}, {"set": []}, {"value": 1, "list": []}, {"dict": 5}, {"bytes": "00"}),
]
_DTYPES = [
    *(torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int8),
    *(torch.uint8, torch.bool, torch.complex64, torch.float8_e4m3fn),
]


class Forger:
    """Makes forged files of one honest one, the same for the same seed."""

    def __init__(self, honest: Path, seed: int) -> None:
        with safe_open(honest, framework="pt") as opened:
            self._metadata: Metadata = opened.metadata()
            names = opened.keys()
            self._tensors: Tensors = {name: opened.get_tensor(name) for name in names}
        self._chance = random.Random(seed)

    def forge(self, path: Path) -> str:
        """Write one forged file, and say what was done to it."""
        metadata, tensors = dict(self._metadata), dict(self._tensors)
        facts = json.loads(metadata["facts"])
        done = []
        for _ in range(self._chance.choice([1, 1, 1, 2, 3])):
            kind = self._chance.random()
            if kind < 0.5 and isinstance(facts, dict):
                done.append(self._change_facts(facts))
            elif kind < 0.97 and tensors:
                done.append(self._change_tensor(tensors))
            elif isinstance(facts, dict):
                facts = self._chance.choice(self._wholes(facts))
                done.append(f"facts = {str(facts)[:60]}")
        metadata["facts"] = facts if isinstance(facts, str) else json.dumps(facts)
        if self._chance.random() < 0.01:
            name = self._chance.choice(["facts", "kind", "version"])
            done.append(f"without {name}: {metadata.pop(name)[:20]}")
        metadata["sha256"] = signature(tensors, metadata.get("facts", ""))
        save_file({name: t.contiguous() for name, t in tensors.items()}, path, metadata=metadata)
        return "; ".join(done)

    # --- facts ------------------------------------------------------------------------------------

    def _wholes(self, facts: Any) -> list[Any]:
        deep = "[" * 5000 + "]" * 5000
        nested = '{"dict": [["a", ' * 300 + "1" + "]]}" * 300
        inside = f'{{"parts": {json.dumps(facts.get("parts"))}, "optimizer": {nested}}}'
        return ["", "{", "null", "[]", "3", '"x"', "{}", deep, inside, "9" * 5000]

    def _change_facts(self, facts: dict[str, Any]) -> str:
        chance = self._chance
        holder, where = chance.choice(list(_places(facts)))
        before = str(holder[where])[:40]
        act = chance.choice([self._replace, self._replace, self._replace, self._move, self._cut])
        act(holder, where, facts)
        after = holder[where] if isinstance(holder, list) and where < len(holder) else ""
        after = holder.get(where, "gone") if isinstance(holder, dict) else after
        return f"{where}: {before} -> {str(after)[:40]}"

    def _replace(self, holder: Any, where: Any, _: Any) -> None:
        old, chance = holder[where], self._chance
        if isinstance(old, int | float) and chance.random() < 0.5:
            holder[where] = chance.choice(
                [old + 1, old - 1, -old, old * 1000, float(old), str(old)]
            )
        elif isinstance(old, str) and chance.random() < 0.5:
            holder[where] = chance.choice([old + "x", old[:-1], old.upper(), [old]])
        else:
            holder[where] = copy.deepcopy(chance.choice([*_WHOLE, *_REAL, *_OTHER]))

    def _move(self, holder: Any, where: Any, facts: Any) -> None:
        """Put what is at another place here, or here twice."""
        other, there = self._chance.choice(list(_places(facts)))
        if isinstance(holder, list) and self._chance.random() < 0.3:
            holder.append(copy.deepcopy(holder[where]))
        elif isinstance(holder, dict) and self._chance.random() < 0.3:
            holder["added"] = copy.deepcopy(other[there])
        else:
            holder[where] = copy.deepcopy(other[there])

    def _cut(self, holder: Any, where: Any, _: Any) -> None:
        del holder[where]

    # --- tensors ----------------------------------------------------------------------------------

    def _change_tensor(self, tensors: Tensors) -> str:
        chance = self._chance
        # By the part they belong to, so that small ones are met as often as the model's.
        part = chance.choice(sorted({name.split(".")[0] for name in tensors}))
        name = chance.choice(sorted(name for name in tensors if name.split(".")[0] == part))
        kind = chance.random()
        if kind < 0.12:
            return self._change_names(tensors, name)
        acts = [self._value, self._value, self._value, self._shape, self._dtype, self._bits]
        act = chance.choice(acts)
        changed, what = act(tensors[name].clone())
        tensors[name] = changed
        return f"{name}: {what}"

    def _change_names(self, tensors: Tensors, name: str) -> str:
        chance = self._chance
        what = chance.choice(["deleted", "renamed", "doubled", "swapped"])
        other = chance.choice(sorted(tensors))
        if what == "swapped":
            tensors[name], tensors[other] = tensors[other], tensors[name]
            return f"{name} swapped with {other}"
        renamed = chance.choice([f"{name}x", f"{name}.0", name[:-1], "x", "memory.inputs.7"])
        if what != "deleted":
            tensors[renamed] = tensors[name].clone()
        if what != "doubled":
            tensors.pop(name, None)
        return f"{name} {what} ({renamed})"

    def _value(self, tensor: Tensor) -> tuple[Tensor, str]:
        chance = self._chance
        choices: list[float] = [0, 1, -1, -7, 100, 10**6, 2**62]
        if tensor.is_floating_point():
            choices += [math.nan, math.inf, -math.inf, 3e38, -3e38, 1e-45]
        value = chance.choice(choices)
        if not tensor.is_floating_point():
            value = max(min(value, torch.iinfo(tensor.dtype).max), torch.iinfo(tensor.dtype).min)
        flat = tensor.reshape(-1)
        if chance.random() < 0.3:
            return -tensor, "negated"
        if chance.random() < 0.5 and flat.numel():
            flat[chance.randrange(flat.numel())] = value
            return flat.reshape(tensor.shape), f"{value} somewhere"
        return torch.full_like(tensor, value), f"{value} all over"

    def _shape(self, tensor: Tensor) -> tuple[Tensor, str]:
        ways: list[Callable[[Tensor], Tensor]] = [
            lambda t: t.reshape(-1),
            lambda t: t.unsqueeze(0),
            lambda t: t.unsqueeze(-1),
            lambda t: t.transpose(0, -1) if t.ndim else t.reshape(1),
            lambda t: t[:0] if t.ndim else t.new_zeros(0),
            lambda t: t[:-1] if t.ndim else t,
            lambda t: t[:1] if t.ndim else t,
            lambda t: torch.cat((t, t)) if t.ndim else t,
            lambda t: t.reshape(-1)[0] if t.numel() else t,
            lambda t: t.new_zeros(0, 3),
            lambda t: t.new_zeros(len(t) if t.ndim else 1, 2**10),
        ]
        changed = self._chance.choice(ways)(tensor)
        return changed.contiguous(), f"{tuple(tensor.shape)} -> {tuple(changed.shape)}"

    def _dtype(self, tensor: Tensor) -> tuple[Tensor, str]:
        dtype = self._chance.choice(_DTYPES)
        return tensor.to(dtype), f"{tensor.dtype} -> {dtype}"

    def _bits(self, tensor: Tensor) -> tuple[Tensor, str]:
        flat = tensor.reshape(-1).view(torch.uint8)
        if not flat.numel():
            return tensor, "as it was"
        if self._chance.random() < 0.3:
            rng = torch.Generator().manual_seed(self._chance.randrange(2**31))
            flat = torch.randint(256, flat.shape, generator=rng).to(torch.uint8)
            return flat.view(tensor.dtype).reshape(tensor.shape), "noise"
        place = self._chance.randrange(flat.numel())
        flat[place] ^= 1 << self._chance.randrange(8)
        return flat.view(tensor.dtype).reshape(tensor.shape), f"a bit of byte {place}"


def _places(node: Any) -> Iterator[Place]:
    """Every place of a JSON value."""
    entries = node.items() if isinstance(node, dict) else enumerate(node)
    for where, entry in list(entries):
        yield node, where
        if isinstance(entry, dict | list):
            yield from _places(entry)
