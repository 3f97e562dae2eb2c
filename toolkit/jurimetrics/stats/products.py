"""Products of matrices that stay on one thread."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
_ALONE = 250_000
"""Multiplications up to about which OpenBLAS starts no threads (its own limit is 262,144)."""
_FEWEST = 4


def product(left: Numbers, right: Any) -> Numbers:
    """`left @ right`, in blocks of rows so small that no threads are started for them.

    Thousands of small products wait longer for threads than they gain by them, and much longer on a busy machine. Of
    tables so large that a block would be a few rows the product is a plain one. `right` may be a sparse array.

    >>> product(np.ones((3, 2)), np.array([[1.0], [2.0]])).tolist()
    [[3.0], [3.0], [3.0]]
    """
    if not isinstance(right, np.ndarray) or right.ndim != 2:
        return np.asarray(left @ right)
    rows = _ALONE // max(1, right.size)
    if not _FEWEST <= rows < len(left):
        return left @ right
    found = np.empty((len(left), right.shape[1]))
    whole = len(left) // rows * rows
    blocks = np.ascontiguousarray(left[:whole]).reshape(-1, rows, left.shape[1])
    np.matmul(blocks, right, out=found[:whole].reshape(-1, rows, right.shape[1]))
    np.matmul(left[whole:], right, out=found[whole:])
    return found
