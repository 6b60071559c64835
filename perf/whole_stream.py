"""What do methods cost over a whole real stream?

On random numbers a storage policy may decide sooner or later than on data that drifts: GSS stops
comparing as soon as one batch decides, ER-C measures admitted newcomers only. So: all of MNIST-S,
from an empty memory, methods alternated block by block; one seed gives one ratio.

    python -m perf.whole_stream
"""

import argparse

import torch

import recollect
from perf.asking.answer import Answer, lines_of, ratio
from perf.asking.measuring import cpu_seconds, one_thread, tell
from perf.asking.targets import MLP

METHODS = {
    "ER": "er",
    "ER-P": "er-p",
    "ER-C": "er-c",
    "ER-MIR": "er-mir",
    "ER-PC-MIR": "er-pc-mir",
    "GSS": "gss",
    "A-GEM": "a-gem",
}
_BLOCK = 20  # batches
_STREAM = ", all of MNIST-S"


def one_seed(seed: int, blocks: int | None) -> dict[str, float]:
    """Return the CPU seconds of every method over one stream."""
    bench = recollect.benchmark("mnist-split", seed=seed)
    learners = {}
    for name, method in METHODS.items():
        model = bench.model()
        optimizer = torch.optim.SGD(model.parameters(), lr=bench.defaults.learning_rate)
        learners[name] = recollect.method(
            method,
            model,
            optimizer,
            capacity=bench.defaults.capacity,
            replay=bench.defaults.replay,
            seed=seed,
            transform=bench.transform,
        )
    spent = dict.fromkeys(METHODS, 0.0)
    num_batches = len(bench.stream) if blocks is None else blocks * _BLOCK
    for start in range(0, num_batches, _BLOCK):
        block = [next(bench.stream) for _ in range(min(_BLOCK, num_batches - start))]
        for name, learner in learners.items():
            spent[name] += cpu_seconds(
                lambda observe=learner.observe, block=block: [observe(x, y) for x, y in block]  # type: ignore[misc]
            )
    return spent


def measure(*, repetitions: int = 5, blocks: int | None = None) -> Answer:
    """Alternate methods over whole streams, one a seed."""
    one_thread()
    one_seed(0, 1)  # decodes the data, loads the code
    times: dict[str, list[float]] = {name + _STREAM: [] for name in METHODS}
    for seed in range(repetitions):
        for name, seconds in one_seed(seed, blocks).items():
            times[name + _STREAM].append(seconds)
        tell(f"whole stream: {seed + 1} of {repetitions}")
    tell("")
    others = [name + _STREAM for name in METHODS if name != "ER"]
    return Answer(
        title="A whole stream of MNIST-S",
        command="python -m perf.whole_stream",
        settings={"seeds": repetitions, "batch": 10, "replayed": 10, "slots": 500},
        unit="s of CPU a stream",
        times=times,
        ratios=[ratio(name, "ER" + _STREAM, MLP, times) for name in others],
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--repetitions", type=int, default=5)
    print("\n".join(lines_of(measure(repetitions=options.parse_args().repetitions))))


if __name__ == "__main__":
    main()
