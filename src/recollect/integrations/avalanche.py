"""An Avalanche strategy whose step is a learner's: its streams, metrics and loggers, our replay."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from avalanche.training.plugins.evaluation import (  # type: ignore[import-not-found,unused-ignore]
    default_evaluator,
)
from avalanche.training.templates import (  # type: ignore[import-not-found,unused-ignore]
    SupervisedTemplate,
)
from typing_extensions import override

from recollect.learner import Learner

__all__ = ["LearnerStrategy"]


class LearnerStrategy(SupervisedTemplate):  # type: ignore[misc,unused-ignore]
    """Trains a `recollect.Learner` on Avalanche's streams, and evaluates it as Avalanche does.

    Each mini-batch is one `observe`. So plugins see the iteration before and after it, with its
    loss and outputs, and what is between, such as `before_backward`, is not called: a plugin that
    replays or changes the loss has no effect. The learner is told neither labels of tasks nor where
    one experience ends.

    Args:
        learner: Its model and optimizer are the strategy's.
        train_mb_size: Examples per step.
        train_epochs: Passes over each experience.
        eval_mb_size: Examples per pass of evaluation.
        device: Where the learner's model is.
        plugins: As for any strategy.
        evaluator: Metrics and loggers.
        eval_every: As for any strategy.
        peval_mode: As for any strategy.
    """

    def __init__(  # noqa: PLR0913 - what every strategy takes
        self,
        learner: Learner,
        *,
        train_mb_size: int = 10,
        train_epochs: int = 1,
        eval_mb_size: int = 256,
        device: str | torch.device = "cpu",
        plugins: Sequence[Any] | None = None,
        evaluator: Any | Callable[[], Any] = default_evaluator,
        eval_every: int = -1,
        peval_mode: str = "epoch",
    ) -> None:
        super().__init__(
            model=learner.model,
            optimizer=learner.optimizer,
            train_mb_size=train_mb_size,
            train_epochs=train_epochs,
            eval_mb_size=eval_mb_size,
            device=device,
            plugins=plugins,
            evaluator=evaluator,
            eval_every=eval_every,
            peval_mode=peval_mode,
        )
        self.learner = learner
        # Avalanche would begin by putting every parameter into one group of the optimizer.
        self.optimized_param_id = dict(self.model.named_parameters())

    @override
    def make_optimizer(self, **kwargs: Any) -> None:
        """Give the optimizer the parameters of a head that Avalanche widened, and no others."""
        parameters = dict(self.model.named_parameters())
        known = self.optimized_param_id
        if parameters.keys() != known.keys() or any(parameters[k] is not known[k] for k in known):
            super().make_optimizer(**kwargs)

    @override
    def forward(self) -> Any:
        """Answer as the learner does, with its transform and its predictor."""
        return self.learner.predict(self.mb_x)

    @override
    def training_epoch(self, **kwargs: Any) -> None:
        """Let the learner observe each mini-batch."""
        for batch in self.dataloader:
            if self._stop_training:
                break
            self.mbatch = batch
            self._unpack_minibatch()
            self._before_training_iteration(**kwargs)
            report = self.learner.observe(self.mb_x, self.mb_y)
            self.mb_output = report.updates[0].incoming_outputs
            self.loss = torch.tensor(report.loss, device=self.device)
            self._after_training_iteration(**kwargs)
