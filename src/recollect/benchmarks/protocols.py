"""The benchmarks as each source runs them: one literal table."""

from dataclasses import dataclass
from typing import Literal

from recollect.benchmarks.defaults import Defaults

BenchmarkName = Literal[
    "mnist-split", "mnist-permuted", "cifar10-split", "mini-imagenet-split", "languages-split"
]
ProtocolName = Literal["paper", "mir-official", "raptormai", "own"]
ScalingName = Literal["flat-unit", "unit", "centred", "words"]


@dataclass(frozen=True)
class Recipe:
    """How a benchmark is made from a data set. docs/benchmarks.md says where each number is from.

    Args:
        dataset: Name for `recollect.datasets.load`.
        scaling: Stored inputs to model inputs, a function of `recollect.benchmarks.scaling`.
        defaults: Settings it is usually run with.
        classes_per_segment: Class-incremental with this many; None for permuted pixels.
        num_permutations: Segments of a permuted benchmark, the unpermuted one included.
        num_segments: Only this many, the first ones; None for all.
        examples_per_segment: Exactly this many; None for all that are not held out.
        validation: Examples held out for each segment, or the share of its pool if a float.
        class_order: Ascending, or shuffled by the seed.
        split_seed: Fixes held-out sets and permutations over all seeds; None draws them anew.
        gives_one_batch_more: Stop after the batch that *exceeds* `examples_per_segment`.
        drops_short_batches: Leave out the last batch of a segment if it is not full.
        hidden: Hidden widths of the MLP; None for the usual model.
        has_random_groups: The seed decides which classes a segment brings, and how many.
    """

    dataset: str
    scaling: ScalingName
    defaults: Defaults
    classes_per_segment: int | None = None
    num_permutations: int | None = None
    num_segments: int | None = None
    examples_per_segment: int | None = None
    validation: int | float = 0
    class_order: Literal["ascending", "shuffled"] = "ascending"
    split_seed: int | None = None
    gives_one_batch_more: bool = False
    drops_short_batches: bool = False
    hidden: tuple[int, ...] | None = None
    has_random_groups: bool = False

    @property
    def usual_augment(self) -> list[dict[str, str | int]]:
        """Changes that leave the class of an image as it is, as a spec names them.

        None where pixels are permuted. Digits are not mirrored.
        """
        if self.num_permutations is not None:
            return []
        if self.scaling != "centred":
            return [{"name": "RandomCrop", "padding": 2}]
        padding = 8 if self.dataset == "mini-imagenet" else 4
        return [{"name": "RandomCrop", "padding": padding}, {"name": "RandomFlip"}]


RECIPES: dict[tuple[BenchmarkName, ProtocolName], Recipe] = {
    ("mnist-split", "paper"): Recipe(
        "mnist-embedded",
        "flat-unit",
        Defaults(learning_rate=0.05),
        classes_per_segment=2,
        examples_per_segment=1000,
        validation=200,
    ),
    ("mnist-permuted", "paper"): Recipe(
        "mnist-embedded",
        "flat-unit",
        Defaults(learning_rate=0.05),
        num_permutations=10,
        examples_per_segment=1000,
        validation=1000,
    ),
    ("cifar10-split", "paper"): Recipe(
        "cifar10",
        "centred",
        Defaults(learning_rate=0.1),
        classes_per_segment=2,
        validation=250,
    ),
    ("mini-imagenet-split", "paper"): Recipe(
        "mini-imagenet",
        "centred",
        Defaults(replay=20, capacity=10_000, learning_rate=0.1, iterations=3),
        classes_per_segment=5,
    ),
    ("languages-split", "own"): Recipe(
        "languages",
        "words",
        Defaults(learning_rate=0.1),
        classes_per_segment=4,
        validation=100,
    ),
    ("mnist-split", "mir-official"): Recipe(
        "mnist-embedded",
        "flat-unit",
        Defaults(learning_rate=0.1),
        classes_per_segment=2,
        examples_per_segment=1000,
        validation=0.05,
        split_seed=0,
        gives_one_batch_more=True,
        drops_short_batches=True,
        hidden=(400, 400),
    ),
    ("mnist-permuted", "mir-official"): Recipe(
        "mnist-embedded",
        "flat-unit",
        Defaults(learning_rate=0.05),
        num_permutations=10,
        examples_per_segment=1000,
        validation=0.05,
        split_seed=0,
        gives_one_batch_more=True,
        drops_short_batches=True,
        hidden=(400, 400),
    ),
    ("cifar10-split", "mir-official"): Recipe(
        "cifar10",
        "centred",
        Defaults(learning_rate=0.1),
        classes_per_segment=2,
        validation=0.05,
        split_seed=0,
        drops_short_batches=True,
    ),
    ("mini-imagenet-split", "mir-official"): Recipe(
        "mini-imagenet",
        "centred",
        Defaults(capacity=10_000, learning_rate=0.1, iterations=3),
        classes_per_segment=5,
        validation=0.05,
        split_seed=0,
        drops_short_batches=True,
    ),
    ("cifar10-split", "raptormai"): Recipe(
        "cifar10",
        "unit",
        Defaults(capacity=10_000, learning_rate=0.1),
        classes_per_segment=2,
        class_order="shuffled",
        drops_short_batches=True,
    ),
    ("mini-imagenet-split", "raptormai"): Recipe(
        "mini-imagenet",
        "unit",
        Defaults(capacity=10_000, learning_rate=0.1),
        classes_per_segment=5,
        class_order="shuffled",
        drops_short_batches=True,
    ),
}


def usual_protocol(name: str) -> str:
    """Return the first protocol of a benchmark: the paper's, or for one of our own, `own`."""
    return next((protocol for known, protocol in RECIPES if known == name), "paper")


def recipe_for(name: str, protocol: str) -> Recipe:
    """Look up how `protocol` runs the benchmark `name`.

    Raises:
        ValueError: There is no such benchmark, or the source never ran it.
    """
    names = sorted({known for known, _ in RECIPES})
    if name not in names:
        raise ValueError(f"`name` is {name!r}; choose one of {', '.join(names)}.")
    for (known_name, known_protocol), recipe in RECIPES.items():
        if (known_name, known_protocol) == (name, protocol):
            return recipe
    protocols = sorted(source for known, source in RECIPES if known == name)
    raise ValueError(f"`protocol` is {protocol!r}; {name} is defined for {', '.join(protocols)}.")
