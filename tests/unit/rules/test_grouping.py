import torch

from recollect.rules.grouping import group_matrix


def test_the_matrix_keeps_the_incoming_gradient_and_averages_consecutive_ones() -> None:
    matrix = group_matrix(3, 2, like=torch.zeros(1, dtype=torch.float64))
    assert matrix.tolist() == [[1, 0, 0, 0], [0, 0.5, 0.5, 0], [0, 0, 0, 1]]


def test_sizes_differ_by_at_most_one() -> None:
    matrix = group_matrix(11, 4, like=torch.zeros(1))
    assert (matrix[1:] > 0).sum(1).tolist() == [3, 3, 3, 2]


def test_the_matrix_has_the_dtype_of_what_it_multiplies() -> None:
    assert group_matrix(4, 2, like=torch.zeros(1, dtype=torch.float64)).dtype == torch.float64
