"""What bounds a step of the ResNet: the core's arithmetic, its memory, or neither?

The roof is measured: a large product of matrices, and a triad of tensors far larger than a cache.
Under it stand whole steps and single layers, with floating point operations as torch counts them,
in both memory formats. One thread, CPU time, medians of alternated repetitions.

    python -m perf.roofline
"""

import argparse
from collections.abc import Callable, Sequence
from math import prod
from statistics import median

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from perf.asking.answer import Answer, Table, lines_of, ratio
from perf.asking.measuring import Block, alternate, cpu_seconds, one_thread
from perf.contestants.bare import BareJointER
from perf.contestants.filling import fill_bare, fill_learner
from perf.contestants.shapes import BATCH, CAPACITY, SHAPES
from perf.step_cost import learner_for

_SHAPE = "cifar"
EXAMPLES = 20  # incoming and replayed
# maps in, maps out, side of the input, stride, kernel, how many of them the network has
LAYERS = (
    (3, 20, 32, 1, 3, 1),
    (20, 20, 32, 1, 3, 4),
    (20, 40, 32, 2, 3, 1),
    (20, 40, 32, 2, 1, 1),
    (40, 40, 16, 1, 3, 3),
    (40, 80, 16, 2, 3, 1),
    (40, 80, 16, 2, 1, 1),
    (80, 80, 8, 1, 3, 3),
    (80, 160, 8, 2, 3, 1),
    (80, 160, 8, 2, 1, 1),
    (160, 160, 4, 1, 3, 3),
)
FORMATS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}
Observe = Callable[[Tensor, Tensor], object]


class BareChannelsLast(BareJointER):
    """The bare loop with weights, images and so all maps in channels_last."""

    def update(self, x: Tensor, y: Tensor) -> None:
        """Learn from the batch, laid out anew."""
        self.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        super().update(x.contiguous(memory_format=torch.channels_last), y)


def roof(repetitions: int, side: int = 1536, mebibytes: int = 512) -> dict[str, float]:
    """Return peak GFLOP/s and GB/s of one core."""
    a, b = torch.rand(side, side), torch.rand(side, side)
    x, y = (torch.rand(mebibytes * 2**18) for _ in range(2))
    out = torch.empty_like(x)
    runs: dict[str, Block] = {
        "matmul": lambda: cpu_seconds(lambda: torch.mm(a, b)),
        "triad": lambda: cpu_seconds(lambda: torch.add(x, y, alpha=2.0, out=out)),
        "copy": lambda: cpu_seconds(lambda: out.copy_(x)),
    }
    for run in runs.values():
        run()
    times = alternate(runs, repetitions, told="roofline, roof")
    return {
        "GFLOP/s of a matmul": 2 * side**3 / min(times["matmul"]) / 1e9,
        "GB/s of a triad": 3 * x.nbytes / min(times["triad"]) / 1e9,
        "GB/s of a copy": 2 * x.nbytes / min(times["copy"]) / 1e9,
    }


def backward_flops(  # noqa: PLR0913 - the signature of the operator
    outputs: Sequence[int],
    inputs: Sequence[int],
    weights: Sequence[int],
    bias: object,
    stride: object,
    padding: object,
    dilation: object,
    transposed: object,
    output_padding: object,
    groups: object,
    wanted: Sequence[bool],
    **_: object,
) -> int:
    """Count a convolution's backward pass: one product for inputs, one for weights.

    torch's own formula forgets the groups, which are how per-example gradients are written out.
    """
    del inputs, bias, stride, padding, dilation, transposed, output_padding, groups
    one = 2 * prod(weights) * outputs[0] * prod(outputs[2:])
    return one * sum(wanted[:2])


def flops(run: Callable[[], object]) -> int:
    """Count the operations of one call."""
    fixed = {torch.ops.aten.convolution_backward: backward_flops}
    with FlopCounterMode(display=False, custom_mapping=fixed) as counter:
        run()
    return int(counter.get_total_flops())


def whole_steps() -> dict[str, Observe]:
    shape = SHAPES[_SHAPE]
    steps: dict[str, Observe] = {}
    for name, kind in (
        ("bare ER, one pass", BareJointER),
        ("bare ER, one pass, channels_last", BareChannelsLast),
    ):
        bare = kind(shape.build, capacity=CAPACITY, replay=shape.replay)
        fill_bare(bare, shape)
        steps[name] = bare.observe
    for name, method in (("ER", "er"), ("ER-P", "er-p")):
        learner = learner_for(shape, method)
        fill_learner(learner, shape)
        steps[name] = learner.observe
    return steps


def convolution(layer: tuple[int, ...], layout: str) -> tuple[Callable[[], Tensor], Tensor]:
    """Return a layer's forward pass and the gradient that comes back to it."""
    maps_in, maps_out, side, stride, kernel, _ = layer
    rng = torch.Generator().manual_seed(0)
    form = FORMATS[layout]
    inputs = torch.rand(EXAMPLES, maps_in, side, side, generator=rng)
    weights = torch.rand(maps_out, maps_in, kernel, kernel, generator=rng)
    inputs, weights = (t.contiguous(memory_format=form).requires_grad_() for t in (inputs, weights))

    def forward() -> Tensor:
        return F.conv2d(inputs, weights, stride=stride, padding=kernel // 2)

    return forward, torch.ones_like(forward()).contiguous(memory_format=form)


def layers(repetitions: int) -> tuple[dict[str, list[float]], dict[str, int]]:
    """Time every layer's forward and backward pass in both formats; count its forward flops."""
    blocks: dict[str, Callable[[], float]] = {}
    counts = {}
    for layer in LAYERS:
        for layout in FORMATS:
            forward, coming_back = convolution(layer, layout)
            counts[layer_name(layer)] = flops(forward)

            def ahead(forward: Callable[[], Tensor] = forward) -> float:
                return cpu_seconds(forward)

            def back(
                forward: Callable[[], Tensor] = forward, coming_back: Tensor = coming_back
            ) -> float:
                outputs = forward()
                return cpu_seconds(lambda: outputs.backward(coming_back))  # type: ignore[no-untyped-call]

            blocks |= {f"{layer_name(layer)}, {layout}, forward": ahead}
            blocks |= {f"{layer_name(layer)}, {layout}, backward": back}
    for block in blocks.values():
        block()
    return alternate(blocks, repetitions, told="roofline, layers"), counts


def layer_name(layer: tuple[int, ...]) -> str:
    maps_in, maps_out, side, stride, kernel, number = layer
    return f"{number} x {maps_in} to {maps_out}, {kernel} x {kernel}, {side} / {stride}"


def measure(*, repetitions: int = 9, side: int = 1536, mebibytes: int = 512) -> Answer:
    """Measure the roof, and what stands under it."""
    one_thread()
    top = roof(max(3, repetitions // 3), side, mebibytes)
    shape, rng = SHAPES[_SHAPE], torch.Generator().manual_seed(0)
    inputs, labels = shape.inputs(BATCH, rng), shape.labels(BATCH, rng)
    steps = whole_steps()
    for step in steps.values():  # also the engine's check of itself, which counts as operations
        step(inputs, labels)
    step_flops = {name: flops(lambda s=step: s(inputs, labels)) for name, step in steps.items()}  # type: ignore[misc]
    times = alternate(
        {
            name: lambda s=step: cpu_seconds(lambda: s(inputs, labels))  # type: ignore[misc]
            for name, step in steps.items()
        },
        repetitions,
        told="roofline, steps",
    )
    by_layer, layer_flops = layers(repetitions)
    first = "bare ER, one pass"
    return Answer(
        title=f"Roofline of one core, {shape.name}",
        command="python -m perf.roofline",
        settings={"examples a step": EXAMPLES, "repetitions": repetitions},
        unit="s of CPU",
        times=times | by_layer,
        ratios=[
            ratio(f"{first}, channels_last", first, shape.name, times),
        ],
        tables=[
            Table("The roof", ("", "measured"), list(top.items())),
            steps_table(times, step_flops, top["GFLOP/s of a matmul"]),
            layers_table(by_layer, layer_flops),
            shares_table(by_layer, median(times[first])),
        ],
    )


def steps_table(times: dict[str, list[float]], counts: dict[str, int], peak: float) -> Table:
    rows: list[list[str | float]] = []
    for name, count in counts.items():
        rate = count / median(times[name]) / 1e9
        rows.append([name, count / 1e9, median(times[name]) * 1e3, rate, f"{rate / peak:.0%}"])
    return Table("Whole steps", ("", "GFLOP", "ms", "GFLOP/s", "of a matmul's"), rows)


def layers_table(times: dict[str, list[float]], counts: dict[str, int]) -> Table:
    """GFLOP/s of each layer; the backward pass has twice the operations (inputs and weights)."""
    rows = []
    for layer in LAYERS:
        name = layer_name(layer)
        cells: list[str | float] = [name]
        for layout in FORMATS:
            for way, factor in (("forward", 1), ("backward", 2)):
                seconds = median(times[f"{name}, {layout}, {way}"])
                cells.append(factor * counts[name] / seconds / 1e9)
        rows.append(cells)
    columns = [f"{layout}, {way}" for layout in FORMATS for way in ("forward", "backward")]
    return Table(
        "GFLOP/s by layer (how many x maps in to out, kernel, side / stride)",
        ("", *columns),
        rows,
    )


def shares_table(times: dict[str, list[float]], step: float) -> Table:
    """Add the layers up to what convolutions take of a bare step."""
    rows: list[list[str | float]] = []
    for layout in FORMATS:
        total = sum(
            layer[-1] * median(times[f"{layer_name(layer)}, {layout}, {way}"])
            for layer in LAYERS
            for way in ("forward", "backward")
        )
        rows.append([layout, total * 1e3, f"{total / step:.0%}"])
    return Table("All convolutions, layers added up", ("", "ms", "of a bare contiguous step"), rows)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--repetitions", type=int, default=9)
    print("\n".join(lines_of(measure(repetitions=options.parse_args().repetitions))))


if __name__ == "__main__":
    main()
