"""Which way of writing out a layer's per-example gradients is fastest?

The layers of the reduced ResNet18, 10 examples, one thread, median CPU time in milliseconds: every
example a channel group of one convolution; products of patches from `F.unfold`; products of patches
of images that lie channels last, as the engine takes them (decision 0002). Beside them the one
weight gradient of the whole batch, which is all that plain replay needs.

    python -m perf.images.convolutions
"""

import time
from collections.abc import Callable
from statistics import median

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.grad import conv2d_weight

from recollect.gradients.formulas.convolutions.patches import Convolution, patches, weight_gradient

EXAMPLES = 10
# maps in, maps out, side, stride
LAYERS = ((20, 20, 32, 1), (40, 40, 16, 1), (80, 80, 8, 1), (80, 160, 8, 2), (160, 160, 4, 1))


def milliseconds(run: Callable[[], object], repetitions: int = 25) -> float:
    run()
    times = []
    for _ in range(repetitions):
        start = time.process_time()
        run()
        times.append((time.process_time() - start) * 1e3)
    return median(times)


def main() -> None:
    torch.set_num_threads(1)
    print("layer                  grouped  unfolded   patches  whole batch")
    for maps_in, maps_out, side, stride in LAYERS:
        a = torch.randn(EXAMPLES, maps_in, side, side)
        d = torch.randn(EXAMPLES, maps_out, side // stride, side // stride)
        shape = (EXAMPLES * maps_out, maps_in, 3, 3)
        a_folded, d_folded = (t.reshape(1, -1, *t.shape[2:]) for t in (a, d))

        def grouped(a=a_folded, d=d_folded, shape=shape, stride=stride) -> object:  # type: ignore[no-untyped-def]
            return conv2d_weight(a, shape, d, stride=stride, padding=1, groups=EXAMPLES)

        def unfolded(a=a, d=d, stride=stride) -> object:  # type: ignore[no-untyped-def]
            columns = F.unfold(a, 3, padding=1, stride=stride)
            return torch.bmm(d.flatten(2), columns.transpose(1, 2))

        layer = nn.Conv2d(maps_in, maps_out, 3, stride=stride, padding=1, bias=False)
        a_last, d_last = (t.contiguous(memory_format=torch.channels_last) for t in (a, d))

        shape = Convolution(tuple(layer.weight.shape), (stride,) * 2, (1, 1), (1, 1), 1, 4)

        def products(layer=shape, a=a_last, d=d_last) -> object:  # type: ignore[no-untyped-def]
            seen = patches(layer, a, d.shape[2:])
            return torch.bmm(d.movedim(1, -1).flatten(1, 2).transpose(1, 2), seen)

        def whole(layer=shape, a=a_last, d=d_last) -> object:  # type: ignore[no-untyped-def]
            return weight_gradient(layer, a, d)

        name = f"{maps_in} -> {maps_out}, {side} x {side}"
        times = [milliseconds(run) for run in (grouped, unfolded, products, whole)]
        print(f"{name:<20}" + "".join(f"{time:>10.2f}" for time in times))


if __name__ == "__main__":
    main()
