"""Normalisation layers: per-example gradients of their scale and shift are small sums."""

from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm

from recollect.gradients.groups import Groups
from recollect.gradients.share import ExplicitShare

Statistics = tuple[Tensor, Tensor]
Normalization = nn.LayerNorm | nn.GroupNorm | _BatchNorm | _InstanceNorm


def normalization_share(
    layer: Normalization,
    activations: Tensor,
    cotangents: Tensor,
    *,
    weight: str | None,
    bias: str | None,
    groups: Groups,
    statistics: Statistics | None = None,
) -> ExplicitShare:
    """Share of y = weight * normalised(a) + bias: sums of d * normalised(a), and of d.

    For BatchNorm in training mode these are contributions to the batch's gradient (note P8): the
    statistics belong to the whole batch. With `statistics`, the mean and inverse deviation by
    channel that its forward pass kept, they are not found again.
    """
    rows: dict[str, Tensor] = {}
    shifts = None
    if bias is not None or statistics is not None:
        shifts = groups.sum(_sum_to_parameter(layer, cotangents))
    if weight is not None:
        if statistics is None or shifts is None:
            products = cotangents * _normalised(layer, activations)
            rows[weight] = groups.sum(_sum_to_parameter(layer, products))
        else:
            mean, inverse_deviation = statistics
            products = groups.sum(_sum_to_parameter(layer, cotangents * activations))
            rows[weight] = (products - shifts * mean) * inverse_deviation
    if bias is not None and shifts is not None:
        rows[bias] = shifts
    return ExplicitShare(rows, groups)


def _normalised(layer: Normalization, activations: Tensor) -> Tensor:
    if isinstance(layer, nn.LayerNorm):
        return F.layer_norm(activations, layer.normalized_shape, eps=layer.eps)
    if isinstance(layer, nn.GroupNorm):
        return F.group_norm(activations, layer.num_groups, eps=layer.eps)
    own_statistics = layer.training or not layer.track_running_stats
    mean = None if own_statistics else layer.running_mean
    variance = None if own_statistics else layer.running_var
    if isinstance(layer, _InstanceNorm):
        return F.instance_norm(
            activations, mean, variance, use_input_stats=own_statistics, eps=layer.eps
        )
    return F.batch_norm(activations, mean, variance, training=own_statistics, eps=layer.eps)


def _sum_to_parameter(layer: Normalization, values: Tensor) -> Tensor:
    """Sum over everything but examples and the parameter's own dimensions."""
    if isinstance(layer, nn.LayerNorm):
        between = range(1, values.ndim - len(layer.normalized_shape))
        return values.sum(list(between)) if between else values
    return values.flatten(2).sum(2) if values.ndim > 2 else values


def mixes_examples(model: nn.Module) -> bool:
    """Whether a layer of `model`, as it stands now, makes one example's loss depend on others."""
    return any(
        isinstance(layer, _BatchNorm) and (layer.training or not layer.track_running_stats)
        for layer in model.modules()
    )
