"""Cut a data set into a stream, held-out examples and test sets."""

from collections.abc import Sequence
from fractions import Fraction

import torch
from torch import Tensor

from recollect.benchmarks.benchmark import BenchmarkSegment
from recollect.benchmarks.protocols import Recipe
from recollect.datasets import LabelledData
from recollect.streams import Stream, derived_generator, permuted_pixels, split_classes
from recollect.streams.split_classes import class_groups, class_segment, random_groups


def cut_stream(data: LabelledData, recipe: Recipe, *, seed: int) -> tuple[Stream, list[Tensor]]:
    """Return the stream and, for each segment, the held-out indices into `data.train`."""
    if recipe.num_permutations is None:
        stream, held_out = _cut_by_class(data, recipe, seed)
    else:
        stream, held_out = _cut_permuted(data, recipe, seed, recipe.num_permutations)
    if recipe.drops_short_batches:
        stream = Stream(stream.examples, stream.segments, stream.plan.without_short_batches())
    return stream, held_out


def _cut_by_class(data: LabelledData, recipe: Recipe, seed: int) -> tuple[Stream, list[Tensor]]:
    groups = class_groups(
        data.train.labels,
        classes_per_segment=recipe.classes_per_segment,
        class_order=recipe.class_order,
        seed=seed,
    )
    usual_size = len(groups[0])
    if recipe.has_random_groups:
        groups = random_groups(data.train.labels, num_groups=len(groups), seed=seed)
    groups = groups[: _num_segments(recipe, len(groups))]
    # A segment with twice the classes has twice the examples, streamed and held out.
    shares = [Fraction(len(group), usual_size) for group in groups]
    kept = recipe.validation
    parts = [
        hold_out(
            members(data.train.labels, group),
            _scaled(kept, share) if isinstance(kept, int) else kept,
            seed=_split_seed(recipe, seed),
            segment_name=class_segment(group).name,
        )
        for group, share in zip(groups, shares, strict=True)
    ]
    size = _examples_per_segment(recipe)
    stream = split_classes(
        data.train,
        groups=groups,
        examples_per_segment=None if size is None else [_scaled(size, s) for s in shares],
        among=torch.cat([rest for _, rest in parts]),
        seed=seed,
        batch_size=recipe.defaults.batch_size,
    )
    return stream, [held_out for held_out, _ in parts]


def _cut_permuted(
    data: LabelledData, recipe: Recipe, seed: int, num_permutations: int
) -> tuple[Stream, list[Tensor]]:
    if recipe.has_random_groups:
        raise ValueError("`has_random_groups` is for class streams; here inputs are permuted.")
    num_segments = _num_segments(recipe, num_permutations)
    # Held out once for all segments: an image left out of one segment only would be trained on in
    # the next under another permutation.
    held_out, rest = hold_out(
        torch.arange(len(data.train)),
        recipe.validation,
        seed=_split_seed(recipe, seed),
        segment_name="all",
    )
    stream = permuted_pixels(
        data.train,
        num_segments=num_segments,
        examples_per_segment=_examples_per_segment(recipe),
        among=rest,
        seed=seed,
        permutation_seed=_split_seed(recipe, seed),
        batch_size=recipe.defaults.batch_size,
    )
    return stream, [held_out] * num_segments


def _num_segments(recipe: Recipe, available: int) -> int:
    if recipe.num_segments is None:
        return available
    if not 1 <= recipe.num_segments <= available:
        raise ValueError(
            f"`num_segments` is {recipe.num_segments}, but there are {available}; "
            f"pass 1 to {available}, or nothing for all of them."
        )
    return recipe.num_segments


def _scaled(size: int, share: Fraction) -> int:
    """Scale a count to at least one; what is no count stays as it is, to be refused."""
    return max(1, round(size * share)) if size > 0 else size


def _split_seed(recipe: Recipe, seed: int) -> int:
    return seed if recipe.split_seed is None else recipe.split_seed


def _examples_per_segment(recipe: Recipe) -> int | None:
    if recipe.examples_per_segment is None or not recipe.gives_one_batch_more:
        return recipe.examples_per_segment
    batch_size = recipe.defaults.batch_size
    return (recipe.examples_per_segment // batch_size + 1) * batch_size


def members(labels: Tensor, classes: Sequence[int]) -> Tensor:
    """Return the indices of the labels that are among `classes`."""
    return torch.isin(labels, torch.tensor(classes)).nonzero().flatten()


def hold_out(
    pool: Tensor, validation: int | float, *, seed: int, segment_name: str
) -> tuple[Tensor, Tensor]:
    """Cut `pool` into held-out indices and the rest, both ascending."""
    if isinstance(validation, float):
        num_held_out = len(pool) - int(len(pool) * (1 - validation))
    else:
        num_held_out = validation
    if not 0 <= num_held_out < len(pool):
        raise ValueError(
            f"`validation_per_segment` is {num_held_out}, but segment `{segment_name}` has "
            f"{len(pool)} training examples; hold out fewer."
        )
    generator = derived_generator(seed, "validation", segment_name)
    shuffled = pool[torch.randperm(len(pool), generator=generator)]
    return shuffled[:num_held_out].sort().values, shuffled[num_held_out:].sort().values


def cut_segments(
    data: LabelledData, stream: Stream, held_out: Sequence[Tensor]
) -> tuple[BenchmarkSegment, ...]:
    """Give each segment the test examples of its classes and its held-out indices."""
    return tuple(
        BenchmarkSegment(
            name=segment.name,
            classes=segment.classes,
            transform=segment.transform,
            test_source=data.test,
            test_indices=members(data.test.labels, segment.classes),
            train_source=data.train,
            validation_indices=indices,
        )
        for segment, indices in zip(stream.segments, held_out, strict=True)
    )
