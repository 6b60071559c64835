"""ResNet18 with a third of the feature maps, as used by the replay literature since GEM."""

from typing import Literal

from torch import Tensor, nn
from torch.nn import functional as F

Norm = Literal["batch", "group"]
_CHANNELS_A_GROUP = 5  # divides 20, 40, 80 and 160


def _norm(kind: Norm, channels: int) -> nn.Module:
    if kind == "batch":
        return nn.BatchNorm2d(channels)
    if kind == "group":
        return nn.GroupNorm(channels // _CHANNELS_A_GROUP, channels)
    raise ValueError(f"`norm` is {kind!r}; choose 'batch' or 'group'.")


class _Block(nn.Module):
    def __init__(self, in_maps: int, out_maps: int, stride: int, norm: Norm) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(in_maps, out_maps, 3, stride=stride, padding=1, bias=False)
        self.norm1 = _norm(norm, out_maps)
        self.conv2 = nn.Conv2d(out_maps, out_maps, 3, padding=1, bias=False)
        self.norm2 = _norm(norm, out_maps)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or in_maps != out_maps:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_maps, out_maps, 1, stride=stride, bias=False), _norm(norm, out_maps)
            )

    def forward(self, maps: Tensor) -> Tensor:
        # In place: normalisation differentiates by its input, so its output may be overwritten.
        hidden = F.relu(self.norm1(self.conv1(maps)), inplace=True)
        added: Tensor = self.norm2(self.conv2(hidden)).add_(self.shortcut(maps))
        return F.relu(added, inplace=True)


class ReducedResNet18(nn.Module):
    """Four stages of two residual blocks (20, 40, 80, 160 maps), a 4x4 mean, one linear head."""

    def __init__(self, num_classes: int, *, image_size: int, norm: Norm, width: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, padding=1, bias=False), _norm(norm, width))
        stages: list[nn.Module] = []
        in_maps = width
        for stage in range(4):
            out_maps = width * 2**stage
            stages.append(_Block(in_maps, out_maps, 1 if stage == 0 else 2, norm))
            stages.append(_Block(out_maps, out_maps, 1, norm))
            in_maps = out_maps
        self.stages = nn.Sequential(*stages)
        final_side = -(-image_size // 8)  # three strides of two, each rounding up
        self.head = nn.Linear(in_maps * (final_side // 4) ** 2, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        """Return logits for `images` of shape (examples, 3, side, side)."""
        maps = self.stages(F.relu(self.stem(images), inplace=True))
        logits: Tensor = self.head(F.avg_pool2d(maps, 4).flatten(1))
        return logits


def reduced_resnet18(
    num_classes: int = 10, *, image_size: int = 32, norm: Norm = "batch", width: int = 20
) -> ReducedResNet18:
    """Build the reduced ResNet18 of CIFAR10-S (32 pixels) and MINI-S (84 pixels).

    Args:
        num_classes: Width of the one shared head.
        image_size: Side of the square input in pixels, at least 25.
        norm: `"batch"` as published; `"group"` keeps examples apart, so that per-example gradients
            are defined (paper note P8).
        width: Maps in the first stage.
    """
    if image_size < 25:
        raise ValueError(f"`image_size` is {image_size}; the 4x4 mean needs at least 25 pixels.")
    return ReducedResNet18(num_classes, image_size=image_size, norm=norm, width=width)
