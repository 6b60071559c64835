"""The model with its loss: passes that train, and passes that only look."""

from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache, partial, reduce
from typing import Any, Final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from recollect import nested
from recollect.choices import Measured, Weighs
from recollect.gradients import Groups, Products, mixes_examples
from recollect.gradients.precision import at_least, running_autocast
from recollect.models import GrowingHead, Projection
from recollect.network.autocast import Autocast
from recollect.network.batch import Batch
from recollect.network.changes import ModelWatch
from recollect.network.classes_seen import ClassesSeen
from recollect.network.inputs.channels_last import channels_last, may_gain, takes_channels_last
from recollect.network.inputs.preparing import Collate, Preparation, Transform
from recollect.network.measured import measured_names
from recollect.network.outputs import by_example, put_together
from recollect.network.runaway import layers_with_statistics
from recollect.network.ways.autograd import ByAutograd
from recollect.network.ways.by_hand import ByHand, Chain
from recollect.network.ways.contract import Numbers, Pass, Request, Way
from recollect.objectives import Objective
from recollect.rollback.generators import KeepingGenerators, SameDraws
from recollect.rollback.without_trace import EvaluatingUnseen, LeavingNoTrace

# Layers that compute the same in both modes, keep no statistics and draw nothing. Any other class,
# a model of the user's included, may look at `self.training`.
_MODE_FREE: Final = frozenset(
    {
        nn.Sequential, nn.Flatten, nn.Identity, nn.Unflatten, nn.Linear, GrowingHead, nn.Embedding,
        nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.LayerNorm, nn.GroupNorm,
        nn.ReLU, nn.GELU, nn.Tanh, nn.Sigmoid, nn.LeakyReLU, nn.ELU, nn.SiLU, nn.Softplus,
        nn.MaxPool1d, nn.MaxPool2d, nn.AvgPool1d, nn.AvgPool2d,
        nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d,
    }
)  # fmt: skip


class Network:
    """A model, how examples become its input, and what is asked of its outputs."""

    def __init__(  # noqa: PLR0913 - what the learner was told of its passes
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        *,
        objective: Objective,
        transform: Transform | None,
        collate: Collate | None = None,
        augment: Transform | None = None,
        weighs: Weighs = "losses",
        classes_seen: ClassesSeen | None = None,
        measured: Measured = "all",
        products: Products = "matrix",
    ) -> None:
        self.model, self._optimizer = model, optimizer
        self._weighs, self._asked_measured, self._products = weighs, measured, products
        self.objective = objective
        self.classes_seen = classes_seen or ClassesSeen()
        self._preparation = Preparation(collate, transform, augment)
        self._autocast = Autocast()
        self._watch = ModelWatch(model, optimizer)
        self._held: dict[str, nn.Parameter] = {}
        self._left_out: dict[str, nn.Parameter] = {}
        self._placed: Tensor = next(model.parameters(), torch.empty(0))  # none at all is refused
        self._build()

    @property
    def may_draw(self) -> bool:
        """Whether a pass may draw from torch's own generator, as dropout does."""
        return not self.is_mode_free or self._preparation.may_draw or self.objective.draws

    @property
    def dtype(self) -> torch.dtype:
        """The precision of the model's weights."""
        return self._placed.dtype

    @property
    def augments(self) -> bool:
        """Whether examples that train are changed on their way."""
        return self._preparation.augment is not None

    def sees_others(self) -> bool:
        """Whether layers or parameters were replaced since they were taken."""
        return self._watch.sees_another()

    def take_others(self) -> None:
        """Take layers and parameters as they are now."""
        self._build()
        self._watch = ModelWatch(self.model, self._optimizer)

    def notice_frozen(self) -> None:
        """Notice parameters that were frozen or freed since the last step."""
        if [p.requires_grad for p in self._held.values()] != self._trainable:
            self._find_trainable()

    def _build(self) -> None:
        """Find out all that follows from the model's layers and the optimizer's parameters."""
        held = {id(p) for group in self._optimizer.param_groups for p in group["params"]}
        named = dict(self.model.named_parameters())
        self._left_out = {
            name: parameter
            for name, parameter in named.items()
            if id(parameter) not in held
            and (name in self._left_out or self._held.get(name, parameter) is not parameter)
        }
        self._held = {name: p for name, p in named.items() if id(p) in held}
        #: All modules of the model: walking through a model takes as long as passing a small one.
        self.modules: list[nn.Module] = list(self.model.modules())
        #: Whether training and evaluation mode are the same, so that no switching is needed.
        self.is_mode_free = all(type(module) in _MODE_FREE for module in self.modules)
        self.with_statistics = layers_with_statistics(self.model)
        self._has_batch_norm = any(isinstance(m, _BatchNorm) for m in self.modules)
        heads = [m for m in self.modules if isinstance(m, GrowingHead)]
        self.head = heads[0] if len(heads) == 1 else None
        self._find_trainable()
        self._channels_last: bool | None = None if may_gain(self.model, self.device) else False

    def _find_trainable(self) -> None:
        """Find out all that follows from which parameters are frozen."""
        trainable = [parameter.requires_grad for parameter in self._held.values()]
        self.parameters = {name: p for name, p in self._held.items() if p.requires_grad}
        #: Names of the parameters that enter inner products; None for all.
        self.measured = measured_names(self._asked_measured, self.model, self.parameters)
        self._by_autograd = ByAutograd(
            self.model,
            self.parameters,
            objective=self.objective,
            classes_seen=self.classes_seen,
            autocast=self._autocast,
            measured=self.measured,
        )
        self.engine = self._by_autograd.engine
        plain = self.objective.is_cross_entropy
        chain = Chain.of(self.model, self.parameters) if plain else None
        limit = self.engine.limit_bytes
        self._by_hand = None if chain is None else ByHand(chain, self.model, limit, self.measured)
        self.num_weights = sum(parameter.numel() for parameter in self.parameters.values())
        self._placed = next(iter(self.parameters.values()), self._placed)
        self._trainable = trainable  # last: until then, it is found out again

    def forget(self) -> None:
        """Drop what an interrupted step may have left half done: it is found out anew."""
        self._autocast.forget()
        self._build()

    @property
    def is_settled(self) -> bool:
        """Whether passes have begun: before the first, modes and generators are switched to try."""
        return self._channels_last is not None

    @property
    def is_under_autocast(self) -> bool:
        """Whether the caller's autocast is on."""
        return running_autocast(self.device) is not None

    def check_trains(self) -> None:
        """Refuse a model in which nothing can be learnt, or not what was learnt before."""
        if self.parameters and not self._left_out:
            return
        if not self.parameters:
            raise ValueError(
                "`optimizer` holds none of the model's trainable parameters; build it from "
                "`model.parameters()`, and leave some of them unfrozen."
            )
        left_out = [name for name, p in self._left_out.items() if p.requires_grad]
        if left_out:
            raise ValueError(
                f"`{left_out[0]}` was replaced by a parameter that `optimizer` does not hold, and "
                "would not be trained; call `optimizer.add_param_group({'params': ...})` with the "
                "new layer's parameters, or freeze them with `requires_grad_(False)`."
            )

    def settle_memory_order(self, inputs: object) -> None:
        """Before the first pass of all: choose the faster order in memory the model can take.

        It follows from the model and its precision, never from a clock, so that a resumed run
        chooses alike.
        """
        if self._channels_last is None:
            place = self.modules, self.device
            modes = partial(EvaluatingUnseen, *place), partial(LeavingNoTrace, *place)
            with LeavingNoTrace(*place), self.in_full_precision():  # a transform may draw
                prepared = self._prepared(inputs)
            self._channels_last = takes_channels_last(self._by_autograd.outputs, prepared, modes)

    def in_full_precision(self) -> AbstractContextManager[None]:
        """Step out of an autocast that the caller is in, but for the model's passes and losses.

        Inner products, weights, scores and the optimizer keep the precision they have elsewhere.
        """
        return self._autocast.left(self.device)

    @property
    def mixes_examples(self) -> bool:
        """Whether a layer, as it stands now, makes one example's loss depend on others."""
        return self._has_batch_norm and mixes_examples(self.model)

    # --- passes that train ------------------------------------------------------------------------

    def differentiate(self, batch: Batch, coefficients: Numbers) -> Pass:
        """Return the gradient of `coefficients . losses`, one coefficient per example."""
        prepared = self._views(batch)
        return self._way(prepared, batch).differentiate(prepared, batch, coefficients)

    def measure(self, batch: Batch, *, incoming: int) -> Pass:
        """Measure the mean gradient of the first `incoming` examples, and each later one's.

        One backward pass of mean(incoming losses) + mean(replayed losses), whose shares are then
        scaled: where BatchNorm mixes examples, they are contributions to exactly ER's gradient, and
        a rule's weights go on the losses unless the learner was told otherwise (note P8).
        """
        weighs_losses = self._weighs == "losses" and self.mixes_examples
        return self._measure(
            batch, _request(incoming, len(batch) - incoming, weighs_losses, self._products)
        )

    def measure_groups(
        self, batch: Batch, groups: Groups, coefficients: Numbers, scales: Numbers
    ) -> Pass:
        """Measure the gradients of groups of examples, from one pass of `coefficients . losses`.

        Args:
            batch: The examples.
            groups: Which of them belong together.
            coefficients: One per example.
            scales: One per group; the factor that turns its share into the gradient that is meant.
        """
        return self._measure(batch, Request(coefficients, groups, scales))

    def _measure(self, batch: Batch, request: Request) -> Pass:
        prepared = self._views(batch)
        return self._way(prepared, batch).measure(prepared, batch, request)

    def _way(self, prepared: object, batch: Batch | None = None) -> Way:
        """Choose between passing by hand and by autograd."""
        by_hand = self._by_hand
        if by_hand is None or self._autocast.dtype is not None:
            return self._by_autograd  # a chain is passed as if nothing were cast
        is_plain = batch is None or batch.weights is None
        return by_hand if is_plain and by_hand.takes(prepared) else self._by_autograd

    # --- passes that only look --------------------------------------------------------------------

    def unseen(self) -> AbstractContextManager[None]:
        """Leave no trace of what is done in a block; free where there can be none."""
        if not self.is_mode_free:
            return LeavingNoTrace(self.modules, self.device)
        return KeepingGenerators(self.device) if self.may_draw else nullcontext()

    def evaluating_unseen(self) -> AbstractContextManager[None]:
        """Do the same in evaluation mode."""
        return self.unseen() if self.is_mode_free else EvaluatingUnseen(self.modules, self.device)

    def same_draws(self) -> SameDraws:
        """From here on, let passes that are to be compared see the same augmentation."""
        return SameDraws(self.device if self.may_draw else None)

    def prepared(self, batch: Batch) -> object:
        """Return what the model takes for a batch."""
        return self._views(batch)

    @torch.no_grad()
    def look(self, prepared: object, batch: Batch) -> Float[Tensor, " examples"]:
        """Return losses with the model in the mode it is in, leaving no trace.

        Args:
            prepared: What the model takes for the batch.
            batch: The examples.
        """
        with self.unseen():
            return self._way(prepared, batch).losses(prepared, batch)[1]

    @torch.no_grad()
    def glance(self, batch: Batch) -> object | None:
        """Return outputs with the model in the mode it is in, a row per example, likewise."""
        with self.unseen():
            prepared = self._prepared(batch.inputs)
            outputs = self._way(prepared, batch).outputs(prepared)
            if self.objective.takes_logits and isinstance(outputs, Tensor):
                # As a pass that trains gives them, whatever autocast made of them.
                outputs = at_least(outputs, next(self.model.parameters()).dtype)
            return by_example(outputs, len(batch))

    @torch.no_grad()
    def predict(self, inputs: object, *, batch_size: int | None = None) -> Any:
        """Return outputs in evaluation mode, leaving no trace."""
        if batch_size is not None and batch_size < 1:
            raise ValueError(f"`batch_size` is {batch_size}; pass at least 1, or None for all.")
        self.settle_memory_order(inputs)
        count = len(nested.columns(inputs)[0])
        size = count if batch_size is None else batch_size
        with self.evaluating_unseen(), self.in_full_precision():
            parts, starts = [], range(0, max(count, 1), max(size, 1))
            for start in starts:
                prepared = self._prepared(nested.cut(inputs, start, start + size))
                parts.append(self._way(prepared).outputs(prepared))
        if len(parts) == 1:
            return parts[0]
        return put_together(parts, [min(size, count - start) for start in starts])

    @torch.no_grad()
    def features(self, inputs: object, layer: str, *, size: int) -> Tensor:
        """Return what a layer is given in evaluation mode, leaving no trace.

        The caller takes hooks off again, also if it is interrupted.
        """
        self.settle_memory_order(inputs)  # by passes of its own
        given: list[Tensor] = []
        hook = self.model.get_submodule(layer).register_forward_pre_hook(
            lambda _, arguments: given.append(arguments[0].detach())
        )
        try:
            self.predict(inputs, batch_size=size)
        finally:
            hook.remove()
        return torch.cat([part.flatten(1) for part in given])

    @property
    def last_layer(self) -> str:
        """Path of the last linear layer or projection, which turns features into outputs."""
        paths = [
            path
            for path, module in self.model.named_modules()
            if isinstance(module, nn.Linear | Projection)
        ]
        if not paths:
            raise ValueError(
                f"the model, a {type(self.model).__name__}, has no linear layer; name the layer "
                "that takes its features, as `NearestClassMean(layer=...)`."
            )
        outer = [path for path in paths if not any(_lies_in(path, other) for other in paths)]
        return outer[-1]

    @property
    def device(self) -> torch.device:
        """Where the model lives."""
        return self._placed.device

    def _views(self, batch: Batch) -> object:
        """Prepare as many views of the examples as the objective asks for, one after the other."""
        views = [
            self._prepared(batch.inputs, trains=batch.trains) for _ in range(self.objective.views)
        ]
        return reduce(nested.concat, views)

    def _prepared(self, inputs: object, *, trains: bool = False) -> object:
        prepared = self._preparation(inputs, self.device, trains=trains)
        return channels_last(prepared) if self._channels_last else prepared


def _lies_in(path: str, other: str) -> bool:
    return path != other and (not other or path.startswith(f"{other}."))


@lru_cache(maxsize=64)
def _request(incoming: int, replayed: int, weighs_losses: bool, products: Products) -> Request:
    parts = tuple(size for size in (incoming, replayed) if size)
    groups = Groups(((incoming,) if incoming else ()) + (1,) * replayed)
    return Request(
        partial(mean_weights, parts),
        groups,
        partial(_row_scales, incoming, replayed),
        weighs_losses=weighs_losses and len(groups) > 1,  # one weight for all changes nothing
        is_joined=not incoming or not replayed,
        products=products,
    )


@lru_cache(maxsize=64)
def mean_weights(
    part_sizes: tuple[int, ...], dtype: torch.dtype, device: torch.device
) -> Float[Tensor, " examples"]:
    """1 / n for each example of a part of n: their product with losses adds up the parts' means."""
    weights = [1 / size for size in part_sizes for _ in range(size)]
    return torch.tensor(weights, dtype=dtype, device=device)


@lru_cache(maxsize=64)
def _row_scales(
    incoming: int, replayed: int, dtype: torch.dtype, device: torch.device
) -> Float[Tensor, " groups"]:
    """K for the share of each of K replayed examples, 1 for that of all incoming ones."""
    scales = [1.0] * bool(incoming) + [float(replayed)] * replayed
    return torch.tensor(scales, dtype=dtype, device=device)
