"""Statistics of BatchNorm taken anew, and what the study of them says."""

import torch
from studies.batch_norm.recalibrate import READINGS, recalibrate, recalibration_table
from torch import nn


def test_statistics_are_the_plain_mean_over_batches_and_nothing_else_moves() -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)).double()
    norm = model[1]
    assert isinstance(norm, nn.BatchNorm1d)
    assert norm.running_mean is not None
    assert norm.running_var is not None
    model.eval()
    weights = [parameter.clone() for parameter in model.parameters()]
    batches = torch.randn(4, 5, 3, generator=torch.Generator().manual_seed(0)).double()
    recalibrate(model, batches)
    given = model[0](batches)
    torch.testing.assert_close(norm.running_mean, given.mean(dim=(0, 1)))
    torch.testing.assert_close(norm.running_var, given.var(dim=1).mean(dim=0))
    assert norm.momentum == 0.1
    assert not model.training
    assert all(map(torch.equal, weights, model.parameters()))


def test_the_table_compares_on_the_same_seeds() -> None:
    rows = [
        {
            "reading": READINGS[1],
            "seed": seed,
            "total": [100, 100],
            "correct": [10, 30 + seed],
            "recalibrated": [30, 30 + seed],
        }
        for seed in (0, 10)
    ]
    joint, separate = recalibration_table(rows).splitlines()[2:]
    assert "not yet run" in joint
    assert separate.startswith("| separate passes | 2 | 22.5 ± 3.5 | 32.5 ± 3.5 | +10.0 [+10.0,")
    assert separate.count("35.0 ± 7.1") == 2
