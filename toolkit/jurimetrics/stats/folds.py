"""Folds of whole groups, so that nothing is fitted on the source it is then judged by."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from jurimetrics.stats.resampling import group_codes

Codes = npt.NDArray[np.intp]


def fold_codes(groups: Sequence[Any] | npt.NDArray[Any], folds: int = 10, seed: int = 0) -> Codes:
    """The fold (0 to `folds` - 1) of every row; all rows of a group are in one, and folds hold equally many groups.

    Which fold a group is in follows from a hash of its name alone and of the other groups', never from the order of
    the rows; another `seed` gives another division. With fewer groups than `folds` each group is a fold. Raises
    `InputError` for a missing group.

    >>> fold_codes(["a", "a", "b", "c"], 2).tolist()
    [1, 1, 0, 0]
    >>> sorted(fold_codes(range(6), 3).tolist())
    [0, 0, 1, 1, 2, 2]
    """
    listed = groups.tolist() if isinstance(groups, np.ndarray) else list(groups)
    codes, count = group_codes(listed, len(listed))
    names: list[Any] = [None] * count
    for code, name in zip(codes.tolist(), listed, strict=True):
        names[code] = name
    salt = seed.to_bytes(16, "big")
    digests = [blake2b(str(name).encode("utf-8", "surrogatepass"), digest_size=8, salt=salt).digest() for name in names]
    places = np.empty(len(names), dtype=np.intp)
    places[np.array(sorted(range(len(names)), key=digests.__getitem__), dtype=np.intp)] = np.arange(len(names))
    return (places % max(1, min(folds, len(names))))[codes]
