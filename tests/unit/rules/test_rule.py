import pytest
import torch
from torch import Tensor

from recollect.rules import ClippedSum, PrincipalDirection, Rule


@pytest.mark.parametrize("base", [PrincipalDirection, ClippedSum])
def test_a_call_that_would_never_be_asked_is_refused(base: type[Rule]) -> None:
    def weigh(self: Rule, gram: Tensor) -> Tensor:
        return torch.ones(len(gram))

    with pytest.raises(TypeError, match="`__call__` of its own and inherits `row_weights`"):
        type("Mine", (base,), {"__call__": weigh})


def test_a_rule_that_needs_a_row_is_asked_by_its_call_if_it_has_no_other_way() -> None:
    class Mine(Rule):
        needs = "row"

        def __call__(self, gram: Tensor) -> Tensor:
            return gram[0] / gram.diagonal()

    assert Mine().row_weights([4.0, 1.0, 6.0], [4.0, 2.0, 3.0]) == [1.0, 0.5, 2.0]
