"""Logistic regression with a penalty, by sums over rows; every house has an intercept of its own.

    logit P(y = 1) = a_k + z'b         penalty / 2 |b|^2 is added to the loss

At given b each house finds its a_k, and adds g_k = sum (p - y) z and H_k = sum w (z - zbar)(z - zbar)' with
w = p (1 - p), zbar = sum w z / sum w: gradient and curvature of the loss once a_k follows b. A house in which only one
class is found adds nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOST_STEPS = 10
CLOSE_ENOUGH = 1e-7
ROUNDING = 2.0**-30  # of coefficients, so that the last bits of a machine don't matter
FARTHEST_COEFFICIENT = 50.0
LARGEST_ETA = 30.0
BLOCK = 400_000  # multiplications that a linear-algebra library does on one thread
MOST_PER_ROW = 16.0  # of w (z - zbar)^2, with w <= 1/4 and z in -4..4
MOST_PER_ROW_LEAST_SQUARES = 64.0


def numbers(columns: int) -> int:
    """How many numbers a gradient and a curvature are."""
    return columns + columns * (columns + 1) // 2


def sigmoid(eta: Floats) -> Floats:
    """Probabilities."""
    return np.asarray(1 / (1 + np.exp(-np.clip(eta, -LARGEST_ETA, LARGEST_ETA))))


def intercept(eta: Floats, y: NDArray[np.int8]) -> float:
    """The number that, added to all, makes the probabilities sum up to the outcomes. With one class: half a row's."""
    wanted = float(np.clip(y.sum(), 0.5, len(y) - 0.5)) if len(y) else 0.0
    if not len(y):
        return 0.0
    low, high = -LARGEST_ETA - float(eta.max()), LARGEST_ETA - float(eta.min())
    found = float(np.log(wanted / (len(y) - wanted)) - eta.mean())
    for _ in range(200):
        p = sigmoid(eta + found)
        excess = float(p.sum() - wanted)
        low, high = (low, found) if excess > 0 else (found, high)
        step = excess / max(float((p * (1 - p)).sum()), 1e-12)
        after = found - step
        if not low < after < high:
            after = (low + high) / 2
        if abs(after - found) < 1e-13 * max(1.0, abs(found)):
            return after
        found = after
    return found


def gradient_sums(Z: Floats, y: NDArray[np.int8], b: Floats) -> Floats:
    """A house's gradient and the upper triangle of its curvature at b."""
    columns = Z.shape[1]
    if not 0 < int(y.sum()) < len(y):
        return np.zeros(numbers(columns))
    eta = products(Z, b)
    p = sigmoid(eta + intercept(eta, y))
    w = p * (1 - p)
    centred = Z - (w @ Z) / w.sum()
    return np.concatenate([_gram(Z, (p - y)[:, None])[:, 0], _upper(_gram(centred * w[:, None], centred))])


def least_squares_sums(Z: Floats, y: NDArray[np.int8]) -> Floats:
    """A house's part of the one-round variant: of centred columns the products with y and with each other, and of y."""
    columns = Z.shape[1]
    if not 0 < int(y.sum()) < len(y):
        return np.zeros(numbers(columns) + 1)
    centred, of_y = Z - Z.mean(axis=0), y - y.mean()
    moment = _gram(centred, of_y[:, None])[:, 0]
    return np.concatenate([moment, _upper(_gram(centred, centred)), [float(of_y @ of_y)]])


def stepped(b: Floats, total: Floats, penalty: float) -> Floats:
    """The next coefficients from the sums of all houses at b."""
    columns = len(b)
    gradient, curvature = total[:columns], full(total[columns : numbers(columns)], columns)
    step = _solved(curvature + penalty * np.eye(columns), gradient + penalty * b)
    return rounded(np.clip(b - step, -FARTHEST_COEFFICIENT, FARTHEST_COEFFICIENT))


def least_squares(total: Floats, columns: int, rows: float, penalty: float) -> Floats:
    """Coefficients of the logit from one round of sums: those of least squares, brought from the scale of y to it."""
    moment, spread = total[:columns], float(total[-1])
    products = full(total[columns:-1], columns)
    variance = max(spread / max(rows, 1.0), 1e-6)  # of the outcome: the curvature of the logit is about that
    b = _solved(products + penalty / variance * np.eye(columns), moment)
    unexplained = max(spread - float(moment @ b), 0.05 * spread, 1e-9)
    return rounded(np.clip(rows * b / unexplained, -FARTHEST_COEFFICIENT, FARTHEST_COEFFICIENT))


def _solved(matrix: Floats, right: Floats) -> Floats:
    """No step at all where a site has told a curvature that can't be: with a penalty, an honest one can be solved."""
    try:
        return np.asarray(np.linalg.solve(matrix, right))
    except np.linalg.LinAlgError:
        return np.zeros(len(right))


def rounded(b: Floats) -> Floats:
    """Coefficients as they are used."""
    return np.asarray(np.rint(b / ROUNDING) * ROUNDING + 0.0)


def full(upper: Floats, columns: int) -> Floats:
    """A symmetric matrix from its upper triangle."""
    matrix = np.zeros((columns, columns))
    matrix[np.triu_indices(columns)] = upper
    return np.asarray(matrix + np.triu(matrix, 1).T)


def products(Z: Floats, b: Floats) -> Floats:
    """Z b, row by row in one order."""
    rows = max(8, BLOCK // max(Z.shape[1], 1))
    return np.concatenate([np.zeros(0), *(Z[at : at + rows] @ b for at in range(0, len(Z), rows))])


def _upper(matrix: Floats) -> Floats:
    return np.asarray(matrix[np.triu_indices(len(matrix))])


def _gram(left: Floats, right: Floats) -> Floats:
    """left' right, in blocks of rows that are added up in order: the same on any number of threads."""
    rows = max(8, BLOCK // max(left.shape[1] * right.shape[1], 1))
    total = np.zeros((left.shape[1], right.shape[1]))
    for start in range(0, len(left), rows):
        total += left[start : start + rows].T @ right[start : start + rows]
    return total
