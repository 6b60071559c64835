"""What streaming costs: `python -m perf.streams`. Time of CIFAR10-S, memory of MINI-S."""

import resource
import time

import torch
from torch.nn import functional as F

from recollect.benchmarks import Benchmark, benchmark
from recollect.datasets import Examples, LabelledData
from recollect.errors import DataError

_STEPS = 20


def main() -> None:
    torch.set_num_threads(1)
    # Random bytes of the real shape: indexing does not look at them.
    rng = torch.Generator().manual_seed(0)
    images = torch.randint(256, (50_000, 3, 32, 32), generator=rng, dtype=torch.uint8)
    train = Examples(images, torch.arange(50_000) % 10)
    test = Examples(images[:10_000], train.labels[:10_000])
    built = benchmark("cifar10-split", data=LabelledData("bytes", train, test, tuple("0123456789")))
    batch_time = time_of_a_batch(built)
    step_time = time_of_a_replay_step(built)
    print(f"CIFAR10-S: {batch_time * 1e6:.0f} us a batch, {step_time * 1e3:.0f} ms a replay step,")
    print(f"           so streaming is {batch_time / step_time:.3%} of a step (limit 3 %)")
    report_mini_imagenet()


def time_of_a_batch(built: Benchmark) -> float:
    stream = built.fresh_stream()
    start = time.perf_counter()
    for _ in stream:
        pass
    return (time.perf_counter() - start) / len(stream)


def time_of_a_replay_step(built: Benchmark) -> float:
    """Median of a bare step on 10 incoming and 10 replayed examples in one pass."""
    model = built.model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    times = []
    stream = built.fresh_stream()
    for _ in range(_STEPS):
        inputs, labels = next(stream)
        start = time.perf_counter()
        optimizer.zero_grad()
        outputs = model(built.transform(torch.cat([inputs, inputs])))
        F.cross_entropy(outputs, torch.cat([labels, labels])).backward()
        optimizer.step()
        times.append(time.perf_counter() - start)
    return sorted(times)[_STEPS // 2]


def report_mini_imagenet() -> None:
    before = _peak_megabytes()
    try:
        built = benchmark("mini-imagenet-split")
    except DataError as missing:
        print(f"MINI-S: not measured: {missing}")
        return
    stored = built.stream.examples.inputs
    print(f"MINI-S: {stored.nbytes / 2**20:.0f} MiB of bytes stored;", end=" ")
    print(f"building adds {_peak_megabytes() - before:.0f} MiB,", end=" ")
    for _ in built.stream:
        pass
    print(f"streaming it whole {_peak_megabytes() - before:.0f} MiB (mapped pages included)")


def _peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
