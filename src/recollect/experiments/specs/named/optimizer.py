"""The optimizers and schedules of torch by their names, with their options."""

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, final

import torch
from torch.optim import lr_scheduler

from recollect.checkpoint import pack, unpack
from recollect.errors import CheckpointError
from recollect.experiments.specs.named.options import Problem, Settings
from recollect.experiments.specs.named.signatures import parameters_of, read_by_signature
from recollect.suggestions import nearest, shown

_GIVEN: Final = ("params", "lr")
_GIVEN_TO_SCHEDULE: Final = ("optimizer", "last_epoch")
#: An option of a schedule that says this is the number of batches in the stream.
WHOLE_STREAM: Final = "stream"
_TRIED_STEPS: Final = 1000


def optimizers() -> dict[str, type[torch.optim.Optimizer]]:
    """Return the optimizers of this torch, by name."""
    base = torch.optim.Optimizer
    return _of_kind(vars(torch.optim).values(), base)


def schedules() -> dict[str, type[Any]]:
    """Return the schedules of this torch, by name."""
    return _of_kind(vars(lr_scheduler).values(), lr_scheduler.LRScheduler)


def _of_kind(found: Iterable[object], base: type) -> dict[str, type[Any]]:
    kinds = (kind for kind in found if isinstance(kind, type) and issubclass(kind, base))
    return {kind.__name__: kind for kind in kinds if kind is not base and kind.__name__[0] != "_"}


def read_optimizer(
    name: str, lr: float | None, said: Mapping[str, Any]
) -> tuple[Settings, list[Problem]]:
    """Check an optimizer and its options, by its signature and by trying it.

    Returns:
        `name` as torch spells it, `lr` if one is given or torch has one, and the options that are
        not torch's defaults; and what is wrong, by key.
    """
    known = optimizers()
    kind = _named(name, known)
    if kind is None:
        return {}, [("name", f"is {shown(name)}; {nearest(name, known)}")]
    options, problems = read_by_signature(kind, said, name=kind.__name__, given=_GIVEN)
    usual = inspect.signature(kind).parameters["lr"].default
    rate = lr if lr is not None else usual

    def try_it(tried: Mapping[str, Any]) -> None:
        parameters = [torch.ones(2, 2), torch.ones(2)]
        for parameter in parameters:
            parameter.requires_grad_().grad = torch.ones_like(parameter)
        optimizer = kind(parameters, lr=rate, **_tuples(kind, tried))
        optimizer.step()

    problems = problems or _tried(try_it, options)
    return {"name": kind.__name__, "lr": float(rate), **options}, problems


def build_optimizer(
    settings: Mapping[str, Any], parameters: Iterable[torch.nn.Parameter]
) -> torch.optim.Optimizer:
    """Build what `read_optimizer` read."""
    kind = _named(settings["name"], optimizers())
    assert kind is not None
    options = {key: value for key, value in settings.items() if key != "name"}
    if kind is torch.optim.Adam:  # its settings have one, as the first records wrote them
        options.pop("momentum", None)
    optimizer: torch.optim.Optimizer = kind(parameters, **_tuples(kind, options))
    return optimizer


def read_schedule(
    name: str, said: Mapping[str, Any], optimizer: Mapping[str, Any]
) -> tuple[Settings, list[Problem]]:
    """Check a schedule of the learning rate, by its signature and by trying it.

    Args:
        name: Such as `"CosineAnnealingLR"`.
        said: Its options. `"stream"` is the number of batches in the stream.
        optimizer: What `read_optimizer` returned.
    """
    known = schedules()
    kind = _named(name, known)
    if kind is None:
        return {}, [("name", f"is {shown(name)}; {nearest(name, known)}")]
    options, problems = read_by_signature(
        kind,
        said,
        name=kind.__name__,
        given=_GIVEN_TO_SCHEDULE,
        stand_in={WHOLE_STREAM: _TRIED_STEPS},
    )
    settings = {"name": kind.__name__, **options}

    def try_it(tried: Mapping[str, Any]) -> None:
        parameter = torch.nn.Parameter(torch.ones(2, 2))
        parameter.grad = torch.ones_like(parameter)
        stepped = build_optimizer(optimizer, [parameter])
        schedule = Schedule({"name": kind.__name__, **tried}, stepped, num_batches=_TRIED_STEPS)
        stepped.step()
        schedule.after_batch(1.0)
        schedule.restore(schedule.state())

    if not problems and optimizer:
        needed = [
            key
            for key, p in parameters_of(kind, given=_GIVEN_TO_SCHEDULE).items()
            if p.default is p.empty
        ]
        problems = _tried(try_it, options, needed)
    return settings, problems


@final
class Schedule:
    """A schedule of the learning rate, which moves on with every batch of the stream.

    Args:
        settings: What `read_schedule` read.
        optimizer: Whose learning rate it sets.
        num_batches: Of the whole stream.
    """

    def __init__(
        self, settings: Mapping[str, Any], optimizer: torch.optim.Optimizer, *, num_batches: int
    ) -> None:
        kind = schedules()[settings["name"]]
        options = {
            key: num_batches if value == WHOLE_STREAM else value
            for key, value in settings.items()
            if key != "name"
        }
        self._schedule: Any = kind(optimizer, **_tuples(kind, options))
        # A schedule that waits for a plateau is told the loss of the incoming batch.
        self._takes_loss = "metrics" in inspect.signature(kind.step).parameters

    def after_batch(self, loss: float) -> None:
        """Move on, after the learner has learnt a batch whose loss was this."""
        if self._takes_loss:
            self._schedule.step(loss)
        else:
            self._schedule.step()

    def state(self) -> object:
        """Return where it is, ready for JSON."""
        tensors: dict[str, torch.Tensor] = {}
        packed = pack(self._schedule.state_dict(), "schedule", tensors)
        if tensors:
            raise CheckpointError(f"the schedule keeps tensors ({', '.join(tensors)}).")
        return packed

    def restore(self, state: object) -> None:
        """Go on from what `state` returned."""
        self._schedule.load_state_dict(unpack(state, {}))


def _named(name: str, known: Mapping[str, type[Any]]) -> type[Any] | None:
    """Find a name however its letters are capitalised: `adamw` is AdamW."""
    spelt = {key.lower(): kind for key, kind in known.items()}
    return spelt.get(name.lower())


def _tuples(kind: type[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with tuples where the default is one, which JSON made a list of."""
    parameters = inspect.signature(kind).parameters
    return {
        key: tuple(value) if isinstance(parameters[key].default, tuple) else value
        for key, value in options.items()
    }


def _tried(
    try_it: Callable[[Mapping[str, Any]], None],
    options: Mapping[str, Any],
    needed: Iterable[str] = (),
) -> list[Problem]:
    """Try the options together; if that fails, look for those that fail by themselves.

    An option that fails alone may only lack another, as `nesterov` lacks `momentum`. So it is tried
    with those that do not fail before it is blamed.
    """
    complaint = _complaint(try_it, options)
    if not complaint:
        return []
    always = {key: options[key] for key in needed}
    sound = {key: v for key, v in options.items() if not _complaint(try_it, {**always, key: v})}
    problems = [
        (key, f"is {shown(value)}; {told}")
        for key, value in options.items()
        if key not in sound and (told := _complaint(try_it, {**always, **sound, key: value}))
    ]
    # Where even the least that it needs fails, none of the others is to blame.
    can_be_told = bool(sound) or not _complaint(try_it, always)
    return problems if problems and can_be_told else [("", complaint)]


def _complaint(try_it: Callable[[Mapping[str, Any]], None], options: Mapping[str, Any]) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try_it(options)
    except Exception as error:  # torch raises whatever it likes
        return f"torch says: {str(error) or type(error).__name__}"
    return ""
