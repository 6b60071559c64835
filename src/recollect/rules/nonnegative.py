"""Small problems whose unknowns must not be negative, solved to rounding.

In numpy, whose operations on ten numbers take a fifth of the time that torch's take.
"""

import numpy as np
from jaxtyping import Float64
from numpy import ndarray
from torch import Tensor

_TINY = 1e-300


def as_array(gram: Tensor) -> Float64[ndarray, "gradients gradients"]:
    """Return a Gram matrix for the functions below."""
    array: ndarray = gram.detach().double().cpu().numpy()
    return array


def least_nonnegative(
    matrix: Float64[ndarray, "unknowns unknowns"], linear: Float64[ndarray, " unknowns"]
) -> Float64[ndarray, " unknowns"]:
    r"""Return the x >= 0 of least x^T matrix x / 2 - linear^T x, by an active set.

    Args:
        matrix: Positive semi-definite. Where it is singular, one of the solutions.
        linear: In the range of `matrix`.

    References:
        Lawson and Hanson, Solving least squares problems, Ch. 23; in terms of the matrix as in Bro
        and de Jong, A fast non-negativity-constrained least squares algorithm.
    """
    count = len(linear)
    scale = max(float(matrix.diagonal().max()), _TINY)
    firm = matrix + np.eye(count) * (1e-13 * scale)  # a singular one can then be solved
    tolerance = 1e-12 * max(float(np.abs(linear).max()), _TINY)
    found, free = np.zeros(count), np.zeros(count, dtype=bool)
    for _ in range(3 * count):
        descent = np.where(free, -np.inf, linear - matrix @ found)
        enters = int(descent.argmax())
        if descent[enters] <= tolerance:
            break
        free[enters] = True
        while True:  # each further turn holds one more unknown at zero
            inside = np.flatnonzero(free)
            best = np.zeros(count)
            best[inside] = np.linalg.solve(firm[np.ix_(inside, inside)], linear[inside])
            below = free & (best <= 0)
            if not below.any():
                found = best
                break
            shares = found[below] / np.maximum(found[below] - best[below], _TINY)
            found = found + shares.min() * (best - found)
            free[np.flatnonzero(below)[shares.argmin()]] = False
            found[~free] = 0
            if not free.any():
                return found
    return found


def shortest_in_hull(
    gram: Float64[ndarray, "vectors vectors"],
) -> Float64[ndarray, " vectors"]:
    r"""Return the shares x >= 0, sum_k x_k = 1, of the shortest vector sum_k x_k v_k.

    Without the sum, x = s a has the least s^2 |v_a|^2 / 2 + c (s - 1)^2 / 2 for the a wanted.
    """
    lift = max(float(np.abs(gram).max()), _TINY)
    found = least_nonnegative(gram + lift, np.full(len(gram), lift))
    shares: ndarray = found / found.sum()
    return shares
