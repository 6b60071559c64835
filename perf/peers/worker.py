"""The peer's process. It is asked over a pipe, and answers with its CPU time.

    {"begin": examples}  ->  {"cpu": seconds of building}     from nothing
    {"do": steps}        ->  {"cpu": seconds}                 the next steps of that stream

Run by `perf.peers.process` with the python of the peers' environment.
"""

import importlib
import json
import os
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any, TextIO

import torch

from perf.peers.models import CLASSES, EXAMPLES

_DISTRIBUTIONS = {"avalanche": "avalanche-lib", "capymoa": "capymoa"}


def main() -> None:
    library, method, shape = sys.argv[1:]
    answers = own_channel()
    torch.set_num_threads(1)
    # Where a library keeps threads of its own (a Java machine's compiler and collector), only the
    # thread that learns is counted, which is in the peer's favour.
    clock = time.thread_time
    _kept = declare_torchvision_operators()
    try:
        steps = importlib.import_module(f"perf.peers.{library}_methods").steps
    except Exception as error:  # what it fails with is the answer
        answer(answers, error=described(error))
        return
    answer(answers, version=version(_DISTRIBUTIONS[library]))
    running: Iterator[None] = iter(())
    for line in sys.stdin:
        asked: dict[str, Any] = json.loads(line)
        try:
            start = clock()
            if "begin" in asked:
                rng = torch.Generator().manual_seed(0)
                inputs = torch.rand(asked["begin"], *EXAMPLES[shape], generator=rng)
                labels = torch.randint(CLASSES, (asked["begin"],), generator=rng)
                start = clock()
                running = steps(method, shape, inputs, labels)
            else:
                for _ in range(asked["do"]):
                    next(running)
            answer(answers, cpu=clock() - start)
        except Exception as error:
            answer(answers, error=described(error))
            return


def declare_torchvision_operators() -> torch.library.Library:
    """Let torchvision be imported although its compiled half does not load beside CPU torch.

    It registers shapes of these two operators when imported, and fails if nobody declared them.
    The peers call neither. What is returned must be kept alive.
    """
    library = torch.library.Library("torchvision", "DEF")  # type: ignore[no-untyped-call]
    for name in ("nms", "qnms"):
        shapes = f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
        library.define(shapes)  # type: ignore[no-untyped-call]
    return library


def own_channel() -> TextIO:
    """Keep the pipe for answers, and send whatever the library prints to nowhere."""
    channel = os.fdopen(os.dup(1), "w")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    return channel


def answer(channel: TextIO, **words: object) -> None:
    print(json.dumps(words), file=channel, flush=True)


def described(error: Exception) -> str:
    """Name what went wrong, without the paths of this machine."""
    first = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {first}"[:200]


if __name__ == "__main__":
    main()
