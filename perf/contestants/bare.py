"""Replay written by hand, as a competent researcher would: the honest floor.

The same reservoir of stored tensors, no checks, no report, nothing that could be resumed. The
tests hold these loops to our learner's updates, so that they are a floor of the same work.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from recollect.models import seeded


class BareER:
    """Experience replay in two passes, incoming and replayed, in as few lines as it takes."""

    def __init__(
        self,
        build: Callable[[], nn.Module],
        *,
        capacity: int = 500,
        replay: int = 10,
        learning_rate: float = 0.05,
    ) -> None:
        self.model = seeded(build, 0)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=learning_rate)
        self.capacity, self.replay, self.learning_rate = capacity, replay, learning_rate
        self.inputs = self.labels = torch.empty(0)
        self.seen = self.filled = 0

    def observe(self, x: Tensor, y: Tensor) -> None:
        """Take one step."""
        self.update(x, y)
        self.store(x, y)

    def update(self, x: Tensor, y: Tensor) -> None:
        """Learn from the batch and from what is replayed with it."""
        self.optimizer.zero_grad()
        F.cross_entropy(self.model(x), y).backward()  # type: ignore[no-untyped-call]
        if self.filled:
            slots = self.draw(self.replay)
            loss = F.cross_entropy(self.model(self.inputs[slots]), self.labels[slots])
            loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()

    def draw(self, count: int) -> Tensor:
        """Choose slots at random."""
        return torch.randint(self.filled, (count,))

    def store(self, x: Tensor, y: Tensor) -> None:
        """Reservoir sampling."""
        if not self.seen:
            self.inputs = torch.zeros(self.capacity, *x.shape[1:], dtype=x.dtype)
            self.labels = torch.zeros(self.capacity, dtype=y.dtype)
        for i in range(len(y)):
            self.seen += 1
            if self.filled < self.capacity:
                slot, self.filled = self.filled, self.filled + 1
            else:
                slot = int(torch.randint(self.seen, ()))
            if slot < self.capacity:
                self.inputs[slot], self.labels[slot] = x[i], y[i]


class BareJointER(BareER):
    """Experience replay in one pass over incoming and replayed together."""

    def update(self, x: Tensor, y: Tensor) -> None:
        """Learn from both in one pass."""
        self.optimizer.zero_grad()
        if self.filled:
            slots = self.draw(self.replay)
            logits = self.model(torch.cat((x, self.inputs[slots])))
            loss = F.cross_entropy(logits[: len(y)], y)
            loss = loss + F.cross_entropy(logits[len(y) :], self.labels[slots])
        else:
            loss = F.cross_entropy(self.model(x), y)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()


class BareMIR(BareER):
    """Maximally interfered retrieval, in the order of work of its authors' script.

    The gradient of the incoming batch moves a second set of parameters; what rises most among 50
    candidates is replayed; its gradient is added to the one that is there already.
    """

    candidates = 50

    def update(self, x: Tensor, y: Tensor) -> None:
        """Learn from the batch and from what it would hurt most."""
        self.optimizer.zero_grad()
        F.cross_entropy(self.model(x), y).backward()  # type: ignore[no-untyped-call]
        if self.filled:
            old_x, old_y = self.most_hurt()
            F.cross_entropy(self.model(old_x), old_y).backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()

    @torch.no_grad()
    def most_hurt(self) -> tuple[Tensor, Tensor]:
        """Choose by the rise of the loss under a virtual step."""
        slots = self.draw(self.candidates)
        x, y = self.inputs[slots], self.labels[slots]
        moved = {
            name: p if p.grad is None else p - self.learning_rate * p.grad
            for name, p in self.model.named_parameters()
        }
        # The moved network has statistics of its own, as the authors' copy of the model has.
        moved |= {name: buffer.clone() for name, buffer in self.model.named_buffers()}
        before = F.cross_entropy(self.model(x), y, reduction="none")
        after = F.cross_entropy(functional_call(self.model, moved, (x,)), y, reduction="none")
        worst = (after - before).topk(self.replay).indices
        return x[worst], y[worst]


class BarePGD(BareER):
    """PGD with one backward pass an example, and its formula on explicit gradients."""

    step_size, norm_floor, target_floor = 10.0, 1.0, 3.0

    def update(self, x: Tensor, y: Tensor) -> None:
        """Turn the gradient of the batch towards those of the replayed examples."""
        parameters = list(self.model.parameters())
        own = torch.autograd.grad(F.cross_entropy(self.model(x), y), parameters)
        w = torch.cat([gradient.flatten() for gradient in own])
        if self.filled:
            slots = self.draw(self.replay)
            logits = self.model(self.inputs[slots])
            losses = F.cross_entropy(logits, self.labels[slots], reduction="none")
            rows = [torch.autograd.grad(loss, parameters, retain_graph=True) for loss in losses]
            w = self.direction(w, torch.stack([torch.cat([e.flatten() for e in r]) for r in rows]))
        with torch.no_grad():
            parts = torch.split(w, [parameter.numel() for parameter in parameters])
            for parameter, part in zip(parameters, parts, strict=True):
                parameter.sub_(part.view_as(parameter), alpha=self.learning_rate)

    def direction(self, g: Tensor, old: Tensor) -> Tensor:
        """Equation 12, with our floors (paper notes P1 and P2)."""
        lengths = old.norm(dim=1)
        pulls = lengths.sigmoid() / lengths.clamp_min(self.norm_floor)
        along, length = pulls @ old, g.norm()
        w = g + self.step_size * along / length.clamp_min(self.target_floor)
        if length > self.target_floor:
            w = w - self.step_size * (along @ g) / length**3 * g
        return w
