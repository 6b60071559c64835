import math

import pytest
import torch

from recollect.metrics import margins


def test_margins_worked_by_hand() -> None:
    # Softmax of log(p) is p.
    probabilities = torch.tensor([[0.7, 0.2, 0.1], [0.7, 0.2, 0.1], [0.25, 0.5, 0.25]]).double()
    labels = torch.tensor([0, 2, 1])
    expected = torch.tensor([0.5, -0.6, 0.25]).double()
    torch.testing.assert_close(margins(probabilities.log(), labels), expected)


def test_two_classes_give_the_hyperbolic_tangent() -> None:
    # p_1 - p_0 = tanh(d / 2) for logits 0 and d.
    logits = torch.tensor([[0.0, 1.5]], dtype=torch.float64)
    assert margins(logits, torch.tensor([1])).item() == pytest.approx(math.tanh(0.75))


def test_a_sure_answer_does_not_become_not_a_number() -> None:
    logits = torch.tensor([[1e4, 0.0, -1e4]])
    assert margins(logits, torch.tensor([0])).item() == 1
    assert margins(logits, torch.tensor([2])).item() == -1


def test_the_logits_are_left_as_they_were() -> None:
    logits = torch.tensor([[1.0, 2.0]])
    margins(logits, torch.tensor([0]))
    assert logits.tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize("shape", [(3,), (3, 1)])
def test_fewer_than_two_classes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="at least two classes"):
        margins(torch.zeros(shape), torch.zeros(3, dtype=torch.int64))
