"""A single pass over examples in a fixed order."""

import hashlib
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, Protocol, final, runtime_checkable

import torch
from torch import Tensor

from recollect.datasets import Examples
from recollect.errors import StreamError
from recollect.streams.plan import Plan
from recollect.streams.segment import Segment
from recollect.streams.transforms import Unchanged

Batch = tuple[Tensor, Tensor]
"""Inputs and labels: all that a learner ever sees."""

_PROBED_INPUTS = 4  # a segment, for the fingerprint


@runtime_checkable
class SinglePass(Protocol):
    """What every stream offers: batches once, a cursor that can be saved and restored."""

    @property
    def cursor(self) -> int:
        """Examples already given."""

    def __iter__(self) -> "SinglePass":
        """Go on from the cursor."""

    def __next__(self) -> Batch:
        """Give the next batch."""

    def __len__(self) -> int:
        """Count all batches of the pass."""

    def state(self) -> dict[str, Any]:
        """Return where the stream is, ready for JSON."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go to where `state` was taken."""


@final
class Stream:
    """A single-pass sequence of `(inputs, labels)` batches.

    Examples are indexed when their batch is asked for; the source is never copied, so it may be a
    memory-mapped file. The stream is its own iterator: a loop that was left goes on where it
    stopped, and a loop over a stream that has given everything raises.

    Args:
        examples: Where inputs and labels are taken from.
        segments: What the plan's segment numbers stand for.
        plan: The order of arrival and the cut into batches.

    Example:
        >>> data = Examples(torch.arange(5), torch.tensor([0, 1, 0, 1, 0]))
        >>> orders = [torch.tensor([0, 2, 4]), torch.tensor([1, 3])]
        >>> plan = Plan.by_segment(orders, batch_size=2)
        >>> stream = Stream(data, [Segment("even", (0,)), Segment("odd", (1,))], plan)
        >>> [inputs.tolist() for inputs, labels in stream]
        [[0, 2], [4], [1, 3]]
    """

    def __init__(self, examples: Examples, segments: Sequence[Segment], plan: Plan) -> None:
        if len(segments) != plan.num_segments:
            raise ValueError(
                f"`segments` has {len(segments)} entries for a plan of {plan.num_segments}; "
                "pass one for each segment of the plan."
            )
        lowest, highest = int(plan.order.min()), int(plan.order.max())
        if lowest < 0 or highest >= len(examples):
            raise ValueError(
                f"`plan` asks for examples {lowest} to {highest} of {len(examples)}; "
                "build the plan from indices of these `examples`."
            )
        self.examples = examples
        self.segments = tuple(segments)
        self.plan = plan
        self._batch_ends = plan.batch_ends()
        self._batch_index = 0
        self._is_spent = False
        self._fingerprint: str | None = None

    @property
    def num_examples(self) -> int:
        """Number of examples in the whole pass."""
        return len(self.plan.order)

    @property
    def batch_size(self) -> int:
        """Examples in a full batch."""
        return self.plan.batch_size

    @property
    def cursor(self) -> int:
        """Examples already given."""
        return self._batch_ends[self._batch_index - 1] if self._batch_index else 0

    @property
    def batches_given(self) -> int:
        """Batches already given."""
        return self._batch_index

    @property
    def boundaries(self) -> tuple[int, ...]:
        """For evaluators: how many batches have been given when each segment is over.

        Segment k is batches `boundaries[k - 1]` to `boundaries[k]`, and the last entry is
        `len(stream)`. In a stream that batches straight through, a segment counts as over with the
        batch that brings the number of examples given to the size of all segments up to it.
        """
        return tuple(
            bisect_left(self._batch_ends, stop) + 1 if stop else 0
            for stop in accumulate(self.plan.segment_sizes)
        )

    def indices_of(self, segment_index: int) -> Tensor:
        """For evaluators: the source indices of one segment's examples, in order of arrival."""
        return self.plan.order[self.plan.origin == segment_index]

    def fresh(self) -> "Stream":
        """Return the same stream at its beginning."""
        return Stream(self.examples, self.segments, self.plan)

    def __len__(self) -> int:
        """Count all batches of the pass, given or not."""
        return len(self._batch_ends)

    def __iter__(self) -> "Stream":
        """Continue from the cursor.

        Raises:
            StreamError: All batches have been given.
        """
        if self._is_spent:
            raise StreamError(
                f"This stream has given all its {self.num_examples} examples; online learning sees "
                "each once. For another run build the stream again, or call `stream.fresh()`."
            )
        return self

    def __next__(self) -> Batch:
        """Give the next batch and move the cursor."""
        if self._batch_index == len(self):
            raise StopIteration
        start, stop = self.cursor, self._batch_ends[self._batch_index]
        batch = self.peek(start, stop)
        self._batch_index += 1
        self._is_spent = self._batch_index == len(self)
        return batch

    def peek(self, start: int, stop: int) -> Batch:
        """For evaluators: what arrives at positions `start` to `stop`. The cursor stays."""
        indices = self.plan.order[start:stop]
        inputs = self.examples.inputs[indices]
        origin = self.plan.origin[start:stop]
        for segment_index in sorted(set(origin.tolist())):
            segment = self.segments[segment_index]
            if not isinstance(segment.transform, Unchanged):
                rows = origin == segment_index
                inputs[rows] = _transformed(inputs[rows], segment)
        return inputs, self.examples.labels[indices]

    @property
    def fingerprint(self) -> str:
        """A digest of what arrives when: equal for equal streams, on every machine."""
        if self._fingerprint is None:
            digest = hashlib.sha256()
            digest.update(repr((tuple(self.examples.inputs.shape[1:]), self._batch_ends)).encode())
            labels = self.examples.labels[self.plan.order]
            for part in (self.plan.order, self.plan.origin, labels, *self._probed_inputs()):
                # As bytes, because numpy knows neither bfloat16 nor other devices.
                digest.update(part.cpu().flatten().view(torch.uint8).numpy().tobytes())
            self._fingerprint = digest.hexdigest()
        return self._fingerprint

    def _probed_inputs(self) -> list[Tensor]:
        # A few inputs of each segment, transformed, tell data sets and transforms apart without
        # reading a data set whole and without trusting the repr of a user's function.
        probed = []
        for segment_index, segment in enumerate(self.segments):
            inputs = self.examples.inputs[self.indices_of(segment_index)[:_PROBED_INPUTS]]
            probed.append(_transformed(inputs, segment) if len(inputs) else inputs)
        return probed

    def state(self) -> dict[str, Any]:
        """Return where the stream is, ready for JSON."""
        return {"cursor": self.cursor, "fingerprint": self.fingerprint}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go to where `state` was taken; the batches that follow are the same bits.

        Raises:
            StreamError: The state is of another stream, or does not lie between two batches.
        """
        if state["fingerprint"] != self.fingerprint:
            raise StreamError(
                f"`state` has fingerprint {state['fingerprint'][:12]}, this stream has "
                f"{self.fingerprint[:12]}: it is the cursor of another stream. Build the stream "
                "with the data, seed and batch size it had when the state was saved."
            )
        cursor = state["cursor"]
        edges = [0, *self._batch_ends]
        batch_index = bisect_left(edges, cursor)
        if batch_index == len(edges) or edges[batch_index] != cursor:
            raise StreamError(
                f"`cursor` is {cursor}, which is not between two batches of this stream; "
                "pass what `state()` returned."
            )
        self._batch_index = batch_index
        # A run saved after its last batch may be continued: its loop has nothing more to give.
        self._is_spent = False


def _transformed(inputs: Tensor, segment: Segment) -> Tensor:
    changed = segment.transform(inputs)
    if changed.shape != inputs.shape or changed.dtype != inputs.dtype:
        raise StreamError(
            f"The transform of segment `{segment.name}` makes {changed.dtype} of shape "
            f"{tuple(changed.shape)} from {inputs.dtype} of shape {tuple(inputs.shape)}; segments "
            "share batches, so keep shape and dtype, and scale for the model afterwards."
        )
    return changed
