import pytest
import torch

from recollect.datasets import Examples


@pytest.fixture
def numbered() -> Examples:
    """120 examples of 6 classes in mixed order whose input is [own index, own label]."""
    labels = (torch.arange(120) * 7) % 6
    return Examples(torch.stack([torch.arange(120), labels], dim=1), labels)
