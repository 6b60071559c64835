"""What holds for every stream, whatever its shape."""

import json
from typing import Literal, get_args

import torch
from hypothesis import given
from hypothesis import strategies as st

from recollect.datasets import Examples
from recollect.streams import (
    PixelPermutation,
    Stream,
    blurred_boundaries,
    blurred_classes,
    imbalanced,
    long_tailed,
    permuted_pixels,
    repeated_classes,
    split_classes,
    within_budget,
)

Kind = Literal[
    "split",
    "permuted",
    "blurred",
    "iid",
    "imbalanced",
    "long tail",
    "blurred classes",
    "repeated",
    "not waiting",
]
KINDS = st.sampled_from(get_args(Kind))


def _stream(kind: Kind, *, num_examples: int, batch_size: int, seed: int) -> Stream:
    labels = torch.arange(num_examples) % 4
    examples = Examples(torch.arange(num_examples * 6).reshape(num_examples, 2, 3), labels)
    sharp = split_classes(examples, classes_per_segment=2, batch_size=batch_size, seed=seed)
    if kind == "permuted":
        return permuted_pixels(examples, num_segments=3, batch_size=batch_size, seed=seed)
    if kind == "blurred":
        width = min(sharp.plan.segment_sizes) // 2 * 2
        return blurred_boundaries(sharp, width=width, seed=seed)
    if kind == "iid":
        return blurred_boundaries(sharp, width="iid", seed=seed)
    changed = {
        "imbalanced": lambda: imbalanced(sharp, factor=0.6, seed=seed),
        "long tail": lambda: long_tailed(sharp, rarest=0.2, seed=seed),
        "blurred classes": lambda: blurred_classes(sharp, blur=0.4, seed=seed),
        "repeated": lambda: repeated_classes(sharp, chance=0.4, seed=seed),
        "not waiting": lambda: within_budget(sharp, cost=1.7),
    }
    return changed[kind]() if kind in changed else sharp


SHAPES = {
    "kind": KINDS,
    "num_examples": st.integers(4, 60),
    "batch_size": st.integers(1, 70),
    "seed": st.integers(0, 2**63),
}


@given(**SHAPES, share=st.floats(0, 1))
def test_a_restored_cursor_gives_the_same_remaining_batches(
    kind: Kind, num_examples: int, batch_size: int, seed: int, share: float
) -> None:
    stream = _stream(kind, num_examples=num_examples, batch_size=batch_size, seed=seed)
    stop = round(share * len(stream))
    for _ in range(stop):
        next(stream)
    state = json.loads(json.dumps(stream.state()))
    again = _stream(kind, num_examples=num_examples, batch_size=batch_size, seed=seed)
    again.restore(state)
    remaining = [next(stream) for _ in range(len(stream) - stop)]
    restored = list(again)
    assert len(restored) == len(remaining)
    for (inputs, labels), (restored_inputs, restored_labels) in zip(
        remaining, restored, strict=True
    ):
        assert torch.equal(inputs, restored_inputs)
        assert torch.equal(labels, restored_labels)


@given(**SHAPES)
def test_lengths_are_exact_and_the_last_boundary_is_the_end(
    kind: Kind, num_examples: int, batch_size: int, seed: int
) -> None:
    stream = _stream(kind, num_examples=num_examples, batch_size=batch_size, seed=seed)
    sizes = [len(labels) for _, labels in stream]
    assert len(sizes) == len(stream) == stream.boundaries[-1]
    assert sum(sizes) == stream.num_examples == stream.cursor
    assert max(sizes) <= batch_size
    assert list(stream.boundaries) == sorted(stream.boundaries)


@given(**SHAPES)
def test_labels_are_those_of_the_inputs(
    kind: Kind, num_examples: int, batch_size: int, seed: int
) -> None:
    stream = _stream(kind, num_examples=num_examples, batch_size=batch_size, seed=seed)
    for inputs, labels in stream:
        # Input i holds the numbers 6i .. 6i + 5 in some order, and label i is i mod 4.
        assert torch.equal(inputs.flatten(1).amin(1) // 6 % 4, labels)


@given(**SHAPES)
def test_no_segment_gives_an_example_twice(
    kind: Kind, num_examples: int, batch_size: int, seed: int
) -> None:
    stream = _stream(kind, num_examples=num_examples, batch_size=batch_size, seed=seed)
    for number in range(len(stream.segments)):
        indices = stream.indices_of(number).tolist()
        assert len(set(indices)) == len(indices)


@given(num_pixels=st.integers(1, 900), seed=st.integers(0, 2**63), number=st.integers(1, 99))
def test_permutations_are_invertible(num_pixels: int, seed: int, number: int) -> None:
    permutation = PixelPermutation.random(num_pixels, seed=seed, segment_index=number)
    inputs = torch.arange(2 * num_pixels).reshape(2, num_pixels)
    assert torch.equal(permutation.inverse()(permutation(inputs)), inputs)
    assert torch.equal(permutation(permutation.inverse()(inputs)), inputs)
