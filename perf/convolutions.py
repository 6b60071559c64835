"""Grouped convolution or products of patches: which writes a layer's gradients out faster?

The layers of the reduced ResNet18, 10 examples, one thread, median CPU time in milliseconds. Behind
the 2000 to 1 rule of `ConvolutionShare` (decision 0002).

    python -m perf.convolutions
"""

import time
from collections.abc import Callable
from statistics import median

import torch
from torch.nn import functional as F
from torch.nn.grad import conv2d_weight

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
    print("layer                weights a position   grouped   patches")
    for maps_in, maps_out, side, stride in LAYERS:
        a = torch.randn(EXAMPLES, maps_in, side, side)
        d = torch.randn(EXAMPLES, maps_out, side // stride, side // stride)
        shape = (EXAMPLES * maps_out, maps_in, 3, 3)
        a_folded, d_folded = (t.reshape(1, -1, *t.shape[2:]) for t in (a, d))

        def grouped(a=a_folded, d=d_folded, shape=shape, stride=stride) -> object:  # type: ignore[no-untyped-def]
            return conv2d_weight(a, shape, d, stride=stride, padding=1, groups=EXAMPLES)

        def patches(a=a, d=d, stride=stride) -> object:  # type: ignore[no-untyped-def]
            unfolded = F.unfold(a, 3, padding=1, stride=stride)
            return torch.bmm(d.flatten(2), unfolded.transpose(1, 2))

        ratio = maps_in * maps_out * 9 // (side // stride) ** 2
        name = f"{maps_in} -> {maps_out}, {side} x {side}"
        print(f"{name:<22}{ratio:>16}{milliseconds(grouped):>10.1f}{milliseconds(patches):>10.1f}")


if __name__ == "__main__":
    main()
