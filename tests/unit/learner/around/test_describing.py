import torch
from tests.unit.learner.support import learner, model, sgd, stream
from torch import nn

from recollect import Learner
from recollect.rules import Rule


def test_a_learner_shows_its_parts_and_how_full_and_far_it_is() -> None:
    one = learner("er-pc", capacity=50)
    for batch in stream(3):
        one.observe(*batch)
    shown = repr(one)
    memory = one.memory
    assert memory is not None
    assert f"{len(memory)} of 50 slots" in shown
    assert "ConfidenceReservoir(" in shown
    assert "PrincipalDirection(" in shown
    assert f"steps: 3, {one.seen} examples seen" in shown
    assert "\n" not in shown


def test_a_learner_without_a_memory_shows_no_slots() -> None:
    parts = model()
    assert "memory" not in repr(Learner(parts, sgd(parts)))


def test_a_report_prints_as_one_line() -> None:
    one = learner("er", capacity=4)
    reports = [one.observe(*batch) for batch in stream(3)]
    printed = str(reports[-1])
    assert "\n" not in printed
    assert printed.startswith(f"step 3: {one.seen} seen, loss {reports[-1].loss:.3f}")
    assert f"{len(reports[-1].written_slots)} stored" in printed


def test_notebooks_get_html_in_which_nothing_of_the_users_is_markup() -> None:
    class Odd(Rule):
        def __call__(self, gram: torch.Tensor) -> torch.Tensor:
            return torch.ones(len(gram))

        def __repr__(self) -> str:
            return "Odd(<script>)"

    parts = nn.Linear(2, 2)
    shown = Learner(parts, sgd(parts), rule=Odd())._repr_html_()
    assert "&lt;script&gt;" in shown
    assert "<script>" not in shown
    report = Learner(parts, sgd(parts)).observe(torch.zeros(1, 2), [0])
    assert report._repr_html_().startswith("<code>step 1")
