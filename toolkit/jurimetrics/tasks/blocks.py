"""Answers that are too many for one prompt, as blocks that each hold some of them, and their scores as one scale again.

The design is cyclic (John 1966, Cyclic incomplete block designs, J. R. Stat. Soc. B 28, 345-360): base blocks are
shifted through all answers, so every answer stands in equally many blocks and, but for blocks that come out twice, equally
often at every place in them. The analysis is the intra-block one of Yates (1936; Cochran and Cox 1957, chapter 9): the
score of an answer is its own effect plus that of its block.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import combinations, islice

Block = tuple[int, ...]
_MOST_TRIED = 5000
"""Base blocks looked at in one search; up to 21 answers these are all there are."""


@lru_cache(maxsize=256)
def cyclic_blocks(count: int, size: int) -> tuple[Block, ...]:
    """Blocks of at most `size` of the answers 0 to `count` - 1, in which every two answers meet at least once.

    One block where all answers fit. A balanced design (every two meet equally often) is taken where one base block of
    `size`, or of fewer, gives one; otherwise the most even one of full size, with as many base blocks as are needed.
    Depends on nothing but the two numbers. Raises ValueError for a size below 2, or for no answer.

    >>> cyclic_blocks(3, 5)
    ((0, 1, 2),)
    >>> cyclic_blocks(7, 3)
    ((0, 1, 3), (1, 2, 4), (2, 3, 5), (3, 4, 6), (4, 5, 0), (5, 6, 1), (6, 0, 2))
    >>> cyclic_blocks(4, 2)
    ((0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3))
    """
    if size < 2 or count < 1:
        raise ValueError(f"no blocks of {size} of {count} answers")
    if count <= size:
        return (tuple(range(count)),)
    for smaller in range(size, 2, -1):
        if smaller * (smaller - 1) % (count - 1) == 0:
            base = _best(count, smaller, frozenset())
            if len(set(_met(base, count).values())) == 1 and len(_met(base, count)) == count - 1:
                return _shifted([base], count)
    bases: list[Block] = []
    met: frozenset[int] = frozenset()
    while len(met) < count - 1:
        bases.append(_best(count, size, met))
        met |= frozenset(_met(bases[-1], count))
    return _shifted(bases, count)


def _met(base: Block, count: int) -> Counter[int]:
    """How often each distance between two answers occurs in a base block; shifted, that is how often they meet."""
    return Counter((one - other) % count for one in base for other in base if one != other)


def _best(count: int, size: int, met: frozenset[int]) -> Block:
    """The base block that adds most distances to those met, then the most even one, then the first."""

    def merit(base: Block) -> tuple[int, int]:
        distances = _met(base, count)
        return len(met.union(distances)), -sum(times * times for times in distances.values())

    tried = islice(combinations(range(1, count), size - 1), _MOST_TRIED)
    return max(((0, *rest) for rest in tried), key=merit)


def _shifted(bases: Iterable[Block], count: int) -> tuple[Block, ...]:
    made: dict[frozenset[int], Block] = {}
    for base in bases:
        for by in range(count):
            block = tuple((at + by) % count for at in base)
            made.setdefault(frozenset(block), block)
    return tuple(made.values())


def without_block_effects(
    scores: Sequence[tuple[int, int, float]], answers: int, low: float, high: float
) -> tuple[float, ...]:
    """The value of each answer with the effects of the blocks taken out.

    `scores` are (block, answer, score), blocks and answers numbered from 0, every two answers linked through blocks.
    Least squares of score = answer + block, where the block effects sum to 0 over all scores, so that the mean stays the
    mean of the scores given. Values are sought between `low` and `high` only (bounded least squares, Stark and Parker
    1995): an answer that is best in a strict block is not worth more than the best there is. Where the plain least
    squares lie within the scale they are the result.

    In the example block 1 is scored one lower than block 0, as the answer in both shows.

    >>> without_block_effects([(0, 0, 5.0), (0, 1, 4.0), (1, 1, 3.0), (1, 2, 2.0)], 3, 1.0, 5.0)
    (4.5, 3.5, 2.5)
    """
    import numpy as np
    from scipy.optimize import lsq_linear

    blocks = 1 + max(block for block, _, _ in scores)
    sizes = Counter(block for block, _, _ in scores)
    design = np.zeros((len(scores), answers + blocks - 1))
    last = [-sizes[block] / sizes[blocks - 1] for block in range(blocks - 1)]
    for row, (block, answer, _) in enumerate(scores):
        design[row, answer] = 1
        if block < blocks - 1:
            design[row, answers + block] = 1
        else:
            design[row, answers:] = last
    free = [np.inf] * (blocks - 1)
    bounds = ([low] * answers + [-each for each in free], [high] * answers + free)
    found = lsq_linear(design, np.array([score for _, _, score in scores], dtype=float), bounds, method="bvls")
    # What comes after the tenth digit is arithmetic, not a judgement.
    return tuple(round(float(value), 10) for value in found.x[:answers])
