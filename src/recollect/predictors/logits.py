"""The model's own outputs."""

from dataclasses import dataclass
from typing import Any, ClassVar, final

from typing_extensions import override

from recollect.predictors.predictor import Predictor, View


@final
@dataclass(frozen=True)
class Logits(Predictor):
    """Answer what the model answers."""

    #: Checkpoints named no predictor when this was the only one, and need not now.
    is_recorded: ClassVar[bool] = False

    @override
    def __call__(self, inputs: object, view: View) -> Any:
        return view.outputs(inputs)
