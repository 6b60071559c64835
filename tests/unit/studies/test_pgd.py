"""What PGD does to an update: worked values, and what the table says."""

import dataclasses

import pytest
import torch
from studies.pgd.parts import parts_table
from studies.pgd.weights import er_p, look, weights_table
from studies.tables import View
from tests.unit.reports.runs import read_runs

from recollect.rules import PrincipalDirection


def test_an_update_is_taken_apart() -> None:
    # g = (1, 0), g_1 = (0, 2), g_2 = (2, 0): ER takes (1, 0) + (1, 1) = (2, 1).
    rows = torch.tensor([[1.0, 0.0], [0.0, 2.0], [2.0, 0.0]])
    gram, weights = rows @ rows.T, torch.tensor([1.0, 2.0, 0.5])  # w = (2, 4)
    seen = look(PrincipalDirection(target_floor=1.5), gram, weights)
    assert seen["is_below"] == 1
    assert (seen["weight_of_g"], seen["weight_of_replay"]) == (1, 2.5)
    assert seen["length"] == pytest.approx(20**0.5 / 5**0.5)
    assert seen["cosine"] == pytest.approx((2 * 2 + 4 * 1) / (20 * 5) ** 0.5)
    assert look(PrincipalDirection(target_floor=0.9), gram, weights)["is_below"] == 0


def test_gradients_of_nothing_are_taken_apart_too() -> None:
    seen = look(PrincipalDirection(), torch.zeros(3, 3), torch.ones(3))
    assert (seen["length"], seen["cosine"], seen["is_below"]) == (1, 1, 1)


def test_it_looks_at_the_er_p_of_the_tables() -> None:
    assert er_p("mnist-split").options["step_size"] == 10.0
    assert er_p("cifar10-split").stream["examples_per_segment"] == 3000


def test_the_table_has_means_over_seeds_and_says_what_is_missing() -> None:
    seen = {"weight_of_g": 1.0, "weight_of_replay": 15.0, "length": 1.5, "cosine": 0.9}
    rows = [{"study": "mnist-split", "is_below": x, **seen} for x in (0.5, 0.7)]
    mnist, *rest = weights_table(rows).splitlines()[2:]
    assert mnist == "| MNIST-S | 2 | 60 % | 1.00 | 15.0 | 1.5 | 0.90 |"
    assert all("not yet run" in row for row in rest)


def test_each_step_stands_beside_the_plain_method_and_beside_pgd() -> None:
    spec = '{"evaluation":{"on":"test"},"optimizer":{"lr":0.05},"options":{"clip":2.0}}'
    runs = [
        dataclasses.replace(record, capacity=500, spec=spec, method=method, spec_hash=method)
        for record in read_runs()
        if record.method == "er"
        for method in ("er", "er-clip")
    ]
    er, weighted, clipped, pgd = parts_table(View("mnist-split"), runs, ["uniform"]).splitlines()[
        2:
    ]
    assert er.startswith("| ER | 0.05 |")
    assert "not yet run" in weighted
    assert "not yet run" in pgd
    entries = [entry.strip() for entry in clipped.split("|")[1:-1]]
    assert entries[:4] == ["ER-CLIP", "0.05", "", "2.0"]
    assert entries[9].startswith("0.0 [0.0, 0.0]")  # the same runs under another name
    assert entries[11:] == ["", ""]
