"""Ours and a peer's learner on the same kind of stream, alternated block by block.

The MLP learns whole streams from nothing, because a peer's step may grow with the stream: ratios
are of all the time up to 2,000 and up to 5,000 examples. The ResNet is too slow for that and its
convolutions hide the growth: both sides pass some steps first, then each block is one ratio.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from perf.asking.answer import Answer, Ratio, ratio
from perf.asking.measuring import one_thread, tell
from perf.contestants.shapes import SHAPES
from perf.peers.models import BATCH, CAPACITY, REPLAY
from perf.peers.process import Peer, PeerError
from perf.step_cost import learner_for
from recollect.learner import Learner

# ours: name and method; theirs: name, library and method
PAIRS = (
    (("ER", "er"), ("Avalanche ER", "avalanche", "er")),
    (("ER", "er"), ("Avalanche ER with its metrics", "avalanche", "er-with-metrics")),
    (("ER-MIR, separate passes", "er-mir"), ("Avalanche MIR", "avalanche", "mir")),
    (("GSS", "gss"), ("Avalanche GSS", "avalanche", "gss")),
    (("ER", "er"), ("CapyMOA ER", "capymoa", "er")),
)
LOOKED_AT = (2_000, 5_000)
OUT = (
    "GSS of Avalanche fails from the second mini-experience on ('max() arg is an empty sequence', "
    "seen on the MLP) unless its memory already holds a batch with its replay: its first "
    "experience here has 50 examples. It replays 32 examples whatever is asked; here it was made "
    "to replay ten. It scores what it replays as if it were new, twice as many examples as ours. "
    "Avalanche's MIR leaves out the classes of the last batch.",
    "CapyMOA has ER only. Its Java threads are not counted.",
    "Tried and left out: deep-river 0.3 wants torch below 2.6 and does not replay; river does not "
    "replay; cl-gym 1.0 replays task by task and must be told the task; continual-flame "
    "1.0 and continuum are data only; sequel-core 0.0.2 wants torch 1.13. Mammoth (PyPI's package "
    "of that name converts documents), RaptorMai's survey and the MIR and GSS authors' scripts are "
    "not on PyPI.",
)


@dataclass(frozen=True)
class Plan:
    """How long both sides run, in steps."""

    repetitions: int
    warm: int  # steps before the first that counts
    blocks: int  # in a repetition
    steps_a_block: int


PLANS = {"mlp": Plan(3, 0, 50, 10), "cifar": Plan(8, 15, 1, 1)}


class OurSide:
    """Our learner on the stream that the peer's process makes for itself."""

    def __init__(self, method: str, shape: str, examples: int) -> None:
        rng = torch.Generator().manual_seed(0)
        self._inputs = SHAPES[shape].inputs(examples, rng)
        self._labels = SHAPES[shape].labels(examples, rng)
        self._method, self._shape = method, shape
        self.begin()

    def begin(self) -> None:
        """Start from nothing."""
        # Avalanche's MIR passes the replayed examples after the incoming ones.
        options = {"passes": "separate"} if self._method == "er-mir" else {}
        self._learner: Learner = learner_for(SHAPES[self._shape], self._method, **options)
        self._position = 0

    def do(self, steps: int) -> float:
        """Take the next steps; return their CPU seconds."""
        # The clock of this thread, as the peer's side uses: there is only one here.
        start = time.thread_time()
        for _ in range(steps):
            end = self._position + BATCH
            self._learner.observe(
                self._inputs[self._position : end], self._labels[self._position : end]
            )
            self._position = end
        return time.thread_time() - start


def measure(
    shape: str,
    *,
    repetitions: int | None = None,
    plan: Plan | None = None,
    pairs: Sequence[tuple[tuple[str, str], tuple[str, str, str]]] = PAIRS,
) -> Answer:
    """Put every peer that runs beside ours."""
    one_thread()
    plan = plan or PLANS[shape]
    repetitions = repetitions or plan.repetitions
    times: dict[str, list[float]] = {}
    ratios: list[Ratio] = []
    remarks: list[str] = []
    versions: dict[str, str] = {}
    for (our_name, method), (name, library, theirs) in pairs:
        told = f"{SHAPES[shape].name}, {name}"
        tell(f"{told}: starting")
        try:
            with Peer(library, theirs, shape) as peer:
                versions[library] = peer.version
                found = alternated(method, shape, peer, plan, repetitions, told)
        except PeerError as error:
            remarks.append(f"{name} was not measured: {error}.")
            continue
        summed = at_positions(found, plan) if shape == "mlp" else {"": found}
        for at, (ours, peers) in summed.items():
            key, peer_key = f"{our_name} beside {name}{at}", f"{name}{at}"
            times |= {key: ours, peer_key: peers}
            ratios.append(ratio(key, peer_key, SHAPES[shape].name, times, named=our_name))
    tell("")
    return Answer(
        title=f"A stream beside other libraries, {SHAPES[shape].name}",
        command=f"python -m perf.peers {shape}",
        settings={
            "batch": BATCH,
            "replayed": REPLAY,
            "slots": CAPACITY,
            "repetitions": repetitions,
            **{f"{library} version": number for library, number in versions.items()},
        },
        unit="s of CPU a block" if shape != "mlp" else "s of CPU up to there",
        times=times,
        ratios=ratios,
        remarks=[*remarks, *OUT],
    )


Pair = tuple[list[float], list[float]]


def alternated(
    method: str, shape: str, peer: Peer, plan: Plan, repetitions: int, told: str
) -> Pair:
    """Return the costs of our blocks and of the peer's, in order, all repetitions in a row."""
    from_nothing = plan.warm == 0
    stream = plan.blocks * plan.steps_a_block * (1 if from_nothing else repetitions) + plan.warm
    ours, theirs = OurSide(method, shape, stream * BATCH), peer
    theirs.begin(stream * BATCH)
    ours.do(plan.warm)
    theirs.do(plan.warm)
    if from_nothing:  # kernels and allocators, for both, on a stream that does not count
        ours.do(10)
        theirs.do(10)
    costs: Pair = ([], [])
    for repetition in range(repetitions):
        if from_nothing:
            ours.begin()
            theirs.begin(stream * BATCH)
        for block in range(plan.blocks):
            sides = ((ours, costs[0]), (theirs, costs[1]))
            for side, cost in sides if block % 2 else sides[::-1]:
                cost.append(side.do(plan.steps_a_block))
        tell(f"{told}: {repetition + 1} of {repetitions}")
    return costs


def at_positions(found: Pair, plan: Plan) -> dict[str, Pair]:
    """Add up the blocks of each repetition, as far as each position that is looked at."""
    size = plan.steps_a_block * BATCH
    positions = [p for p in LOOKED_AT if p <= plan.blocks * size] or [plan.blocks * size]

    def sums(costs: list[float], position: int) -> list[float]:
        return [
            sum(costs[start : start + position // size])
            for start in range(0, len(costs), plan.blocks)
        ]

    return {
        f", {position:,} examples": (sums(found[0], position), sums(found[1], position))
        for position in positions
    }
