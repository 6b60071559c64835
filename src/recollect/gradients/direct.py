"""Which layers have a formula of their own, and which share each of them makes."""

from collections.abc import Mapping

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm

from recollect.gradients.convolution import convolution_share
from recollect.gradients.embedding import EmbeddingShare
from recollect.gradients.groups import Groups
from recollect.gradients.layout import Layout, batch_first
from recollect.gradients.linear import LinearShare
from recollect.gradients.normalization import Statistics, normalization_share
from recollect.gradients.room import Room
from recollect.gradients.share import Share

_LAYERS: tuple[type[nn.Module], ...] = (
    nn.Linear,
    nn.Conv1d,
    nn.Conv2d,
    nn.Conv3d,
    nn.Embedding,
    nn.LayerNorm,
    nn.GroupNorm,
    _InstanceNorm,
    _BatchNorm,
)


def has_formula(module: nn.Module) -> bool:
    """Whether `module` computes exactly what one of the layers with a formula computes."""
    for layer in _LAYERS:
        if isinstance(module, layer):
            # A subclass with a forward of its own may compute anything.
            same_forward = type(module).forward is layer.forward
            plain = not (isinstance(module, nn.Embedding) and module.scale_grad_by_freq)
            return same_forward and plain and not hasattr(module, "parametrizations")
    return False


def direct_share(  # noqa: PLR0913 - what one call of a layer left behind
    module: nn.Module,
    parameters: Mapping[str, str],
    activations: Tensor,
    cotangents: Tensor,
    *,
    layout: Layout,
    groups: Groups,
    limit_bytes: int,
    room: Room,
    statistics: Statistics | None = None,
) -> Share:
    """Make the share of one call of a layer with a formula."""
    weight, bias = parameters.get("weight"), parameters.get("bias")
    count = groups.num_examples
    if isinstance(module, nn.Linear):
        return LinearShare(
            _one_row_a_position(activations, layout),
            _one_row_a_position(cotangents, layout),
            weight=weight,
            bias=bias,
            groups=groups,
            limit_bytes=limit_bytes,
        )
    if isinstance(module, nn.Embedding):
        assert weight is not None
        return EmbeddingShare(
            batch_first(activations, layout, count).reshape(count, -1),
            batch_first(cotangents, layout, count).reshape(count, -1, cotangents.shape[-1]),
            weight=weight,
            num_entries=module.num_embeddings,
            padding_index=module.padding_idx,
            groups=groups,
            limit_bytes=limit_bytes,
        )
    if layout == "second":
        activations, cotangents = activations.transpose(0, 1), cotangents.transpose(0, 1)
    if layout == "folded":
        # Rows of one example are neighbours, so a larger group holds exactly the same rows.
        positions = len(activations) // count
        groups = Groups(tuple(size * positions for size in groups.sizes))
    if isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d):
        return convolution_share(
            module,
            activations,
            cotangents,
            weight=weight,
            bias=bias,
            groups=groups,
            limit_bytes=limit_bytes,
            room=room,
            by_example=layout != "folded",
        )
    assert isinstance(module, nn.LayerNorm | nn.GroupNorm | _InstanceNorm | _BatchNorm)
    return normalization_share(
        module,
        activations,
        cotangents,
        weight=weight,
        bias=bias,
        groups=groups,
        statistics=statistics,
    )


def _one_row_a_position(tensor: Tensor, layout: Layout) -> Tensor:
    """Flatten everything but the last dimension, examples first."""
    if tensor.ndim == 2 and layout != "second":
        return tensor
    ordered = tensor.transpose(0, 1) if layout == "second" else tensor
    return ordered.flatten(0, -2)
