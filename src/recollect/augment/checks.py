"""What every augmentation asks of its images."""

from torch import Tensor


def check_images(images: object, who: object) -> Tensor:
    """Refuse what is not a batch of images."""
    if not isinstance(images, Tensor):
        raise TypeError(
            f"{who!r} got a {type(images).__name__}; it takes one tensor of images. For inputs of "
            "several tensors pass a function that changes the images among them."
        )
    if images.ndim not in (3, 4):
        raise ValueError(
            f"{who!r} got shape {tuple(images.shape)}; it takes (examples, channels, height, "
            "width), or (examples, height, width)."
        )
    return images


def check_share(name: str, value: object) -> None:
    """Refuse what is not a number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError(f"`{name}` is {value!r}; pass a number from 0 to 1.")


def per_image(numbers: Tensor, images: Tensor) -> Tensor:
    """Shape one number per image so that it spreads over the image, on its device."""
    return numbers.to(images.device).reshape(-1, *[1] * (images.ndim - 1))
