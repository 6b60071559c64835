import numpy as np
import pytest
from scipy.optimize import nnls

from recollect.rules.nonnegative import least_nonnegative, shortest_in_hull


@pytest.mark.parametrize("seed", range(30))
def test_the_least_is_that_of_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, wanted = rng.normal(size=(12, 7)), rng.normal(size=12)
    expected, _ = nnls(rows, wanted)
    found = least_nonnegative(rows.T @ rows, rows.T @ wanted)
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("seed", range(30))
def test_a_singular_problem_has_a_solution_too(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, wanted = rng.normal(size=(4, 9)), rng.normal(size=4)
    _, expected = nnls(rows, wanted)
    found = least_nonnegative(rows.T @ rows, rows.T @ wanted)
    assert (found >= 0).all()
    np.testing.assert_allclose(np.linalg.norm(rows @ found - wanted), expected, atol=1e-5)


@pytest.mark.parametrize("seed", range(20))
def test_no_vector_between_the_others_has_a_smaller_product_with_the_shortest(seed: int) -> None:
    rows = np.random.default_rng(seed).normal(size=(8, 5)) + 0.5
    shares = shortest_in_hull(rows @ rows.T)
    shortest = shares @ rows
    assert (shares >= 0).all()
    np.testing.assert_allclose(shares.sum(), 1)
    assert (rows @ shortest >= shortest @ shortest - 1e-9).all()


def test_zero_vectors_have_a_shortest() -> None:
    np.testing.assert_allclose(shortest_in_hull(np.zeros((3, 3))).sum(), 1)
