"""Bootstrap weights, and totals of resampled cases.

A resample of n cases is a row of n integer weights that add up to n (Efron's bootstrap: how often each case was
drawn). All resampled totals of all counts are one product ``weights @ matrix``, done in slices so that many weights
are never in memory as a whole. Those of up to 20 million draws stay there, since systems and gates over the same cases
draw the same ones.
"""

import math
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from pytest_llmeval.core import FloatArray

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from threadpoolctl import ThreadpoolController

    IntArray: TypeAlias = NDArray[np.intp]
    BoolArray: TypeAlias = NDArray[np.bool_]
else:
    IntArray: TypeAlias = Any
    BoolArray: TypeAlias = Any


SEED = 20240607
"""The seed of every resampling; with it, equal data give equal intervals."""

_MOST_RESAMPLES = 10_000
_LEAST_RESAMPLES = 1_000
_MOST_DRAWS = 20_000_000
_MOST_MULTINOMIAL = 40_000
_MOST_DRAWN_ROWS = 2_000_000
_SLICE_DRAWS = 1_000_000
_MOST_KINDS = 256
_WIDE = 64
"""Columns of a wide matrix; it is sparse where no more than one number in as many is not zero."""
_COUNTED_DRAWS = 1 << 14
"""Draws that are counted at once: what a processor's nearest cache holds."""


def resample_count(cases: int) -> int:
    """The number of resamples for a set of `cases`: 10,000 for up to 2,000 cases, then fewer, never under 1,000.

    Large sets have narrow intervals whose ends need less precision.
    """
    return max(_LEAST_RESAMPLES, min(_MOST_RESAMPLES, _MOST_DRAWS // max(cases, 1)))


def resampled_totals(
    matrix: "FloatArray", resamples: int, seed: int = SEED, *, compact: bool = False
) -> "NDArray[Any]":
    """Bootstrap totals of the counts of cases.

    Args:
        matrix: Shape ``(cases, counts)``.
        resamples: How many.
        seed: Equal seeds and shapes draw equal weights, which is what makes comparisons paired.
        compact: Whether totals of few whole numbers may come as 16 or 32 bits each; they are the same.

    Returns:
        Shape ``(resamples, counts)``.
    """
    cases = len(matrix)
    if compact and (kind := _type_of_totals(matrix)):
        return _sums_of_few(matrix, resamples, seed, kind)
    if cases * resamples > _MOST_DRAWS:
        if kinds := _Kinds.from_matrix(matrix):
            return kinds.totals(resamples, seed)
        return _products(matrix, resamples, _make_weight_drawer(cases, seed))
    stored = _kept_weights(cases, resamples, seed)
    copied = 0

    def copy(weights: "FloatArray") -> None:
        nonlocal copied
        weights[:] = stored[copied : copied + len(weights)]
        copied += len(weights)

    return _products(matrix, resamples, copy)


def draw_ahead(cases: int) -> None:
    """Draw the weights of a set of cases while nothing else is to be done, so that its intervals take less time."""
    resamples = resample_count(cases)
    if cases * resamples <= _MOST_DRAWS:
        _kept_weights(cases, resamples, SEED)
    _libraries()


def _type_of_totals(matrix: "NDArray[Any]") -> "type[np.signedinteger[Any]] | None":
    """The integers that hold all totals of a wide matrix of few whole numbers; ``None`` for other matrices."""
    import numpy as np

    if matrix.shape[1] < _WIDE or np.count_nonzero(matrix) * _WIDE > matrix.size:
        return None
    most = float(np.abs(matrix).max(initial=0)) * len(matrix)
    if most > np.iinfo(np.int32).max or (matrix.dtype != np.int8 and (matrix != np.rint(matrix)).any()):
        return None
    return np.int16 if most <= np.iinfo(np.int16).max else np.int32


def _sums_of_few(
    matrix: "NDArray[Any]", resamples: int, seed: int, kind: "type[np.signedinteger[Any]]"
) -> "NDArray[Any]":
    """Bootstrap totals of a sparse count matrix from its nonzero numbers alone."""
    import numpy as np

    cases, counts = matrix.shape
    columns, rows = np.nonzero(matrix.T)
    values = matrix[rows, columns].astype(np.int32)
    counted, starts = np.unique(columns, return_index=True)
    totals = np.zeros((resamples, counts), kind)
    draw = _make_weight_drawer(cases, seed)
    buffer = np.empty((min(resamples, _slice_rows(cases)), cases), np.int32)
    for start in range(0, resamples, len(buffer)):
        weights = buffer[: resamples - start]
        draw(weights)
        totals[start : start + len(weights), counted] = np.add.reduceat(weights[:, rows] * values, starts, axis=1)
    return totals


class _Kinds(NamedTuple):
    """Many cases that have few distinct rows of byte counts, which resampling adds up together.

    Attributes:
        rows: The different rows.
        number: The place of each case's row among them.
    """

    rows: "NDArray[np.int8]"
    number: "NDArray[np.uint8]"

    @classmethod
    def from_matrix(cls, matrix: "NDArray[Any]") -> "_Kinds | None":
        """The distinct rows of a matrix; ``None`` if there are too many, or the numbers are no bytes."""
        import numpy as np

        sizes = [int(column.max(initial=0)) + 1 for column in matrix.T] if matrix.dtype == np.int8 else []
        if not sizes or math.prod(sizes) > np.iinfo(np.int64).max:
            return None
        codes = np.zeros(len(matrix), np.int64)
        for size, column in zip(sizes, matrix.T, strict=True):
            codes *= size
            codes += column
        _, first, number = np.unique(codes, return_index=True, return_inverse=True)
        return cls(matrix[first], number.astype(np.uint8)) if len(first) <= _MOST_KINDS else None

    def totals(self, resamples: int, seed: int) -> "FloatArray":
        """Bootstrap totals by the number of draws of each row; sums of whole numbers are exact, as of the cases."""
        import numpy as np

        cases, kinds = len(self.number), len(self.rows)
        indices = _indices(cases, seed)
        drawn = np.empty((resamples, kinds))
        slices = _slice_rows(cases)
        for start in range(0, resamples, slices):
            for row, index in enumerate(indices((min(slices, resamples - start), cases)), start):
                drawn[row] = np.bincount(self.number[index], minlength=kinds)
        with _one_thread_of_blas():
            totals: FloatArray = drawn @ self.rows.astype(float)
        return totals


def _indices(cases: int, seed: int) -> "Callable[[tuple[int, ...]], NDArray[Any]]":
    """A function that draws the cases of one slice of bootstrap resamples after the other."""
    import numpy as np

    generator = np.random.Generator(np.random.SFC64(seed))
    index_type = np.uint16 if cases <= np.iinfo(np.uint16).max + 1 else np.uint32
    return lambda shape: generator.integers(0, cases, size=shape, dtype=index_type)


def _make_weight_drawer(cases: int, seed: int) -> "Callable[[NDArray[Any]], None]":
    """A function that fills one slice of bootstrap weights after the other."""
    import numpy as np

    indices_of = _indices(cases, seed)
    first = np.arange(max(1, _COUNTED_DRAWS // max(cases, 1)))[:, np.newaxis] * cases

    def draw(weights: "NDArray[Any]") -> None:
        drawn = indices_of(weights.shape)
        for start in range(0, len(drawn), len(first)):
            indices = drawn[start : start + len(first)]
            counts = np.bincount((indices + first[: len(indices)]).ravel(), minlength=indices.size)
            weights[start : start + len(first)] = counts.reshape(indices.shape)

    return draw


@lru_cache(maxsize=1)
def _kept_weights(cases: int, resamples: int, seed: int) -> "NDArray[np.uint8]":
    """All weights of a bootstrap that is small enough to keep, a byte each."""
    import numpy as np

    # A case is drawn more than 255 times with a probability of less than 1e-500.
    weights = np.empty((resamples, cases), np.uint8)
    draw = _make_weight_drawer(cases, seed)
    rows = _slice_rows(cases)
    for start in range(0, resamples, rows):
        draw(weights[start : start + rows])
    return weights


def _slice_rows(cases: int) -> int:
    """The number of resamples whose weights are drawn and multiplied at once, to bound memory."""
    return max(1, _SLICE_DRAWS // max(cases, 1))


def multinomial_totals(matrix: "FloatArray", cases: "NDArray[Any]") -> "FloatArray":
    """Bootstrap totals of cases that have few distinct rows.

    How often the cases with one row are drawn is multinomial, so that the work depends on the rows, not on the cases.

    Args:
        matrix: Shape ``(rows, counts)``.
        cases: How many cases have each row.

    Returns:
        Shape ``(resamples, counts)``.
    """
    import numpy as np

    generator = np.random.Generator(np.random.SFC64(SEED))
    drawn = int(cases.sum())
    shares = cases / drawn
    resamples = max(_LEAST_RESAMPLES, min(_MOST_MULTINOMIAL, _MOST_DRAWN_ROWS // len(cases)))
    return _products(
        matrix, resamples, lambda weights: np.copyto(weights, generator.multinomial(drawn, shares, size=len(weights)))
    )


def swapped_totals(matrix: "FloatArray", resamples: int) -> "FloatArray":
    """Totals in which every row has the sign that a coin gave it: of differences, for permutation tests.

    Args:
        matrix: Shape ``(cases, counts)``.
        resamples: How many.

    Returns:
        Shape ``(resamples, counts)``.
    """
    import numpy as np

    generator = np.random.Generator(np.random.SFC64(SEED))

    def draw(signs: "FloatArray") -> None:
        bits = np.unpackbits(np.frombuffer(generator.bytes(-(-signs.size // 8)), dtype=np.uint8), count=signs.size)
        np.subtract(2.0 * bits.reshape(signs.shape), 1.0, out=signs)

    return _products(matrix, resamples, draw)


def _products(matrix: "FloatArray", resamples: int, draw: "Callable[[FloatArray], None]") -> "FloatArray":
    """Multiply random bootstrap weights with a count matrix, slice by slice, drawing one slice ahead."""
    import numpy as np

    cases, counts = matrix.shape
    totals = np.empty((resamples, counts))
    rows = min(resamples, _slice_rows(cases))
    if rows == resamples:
        every = np.empty((resamples, cases))
        draw(every)
        with _one_thread_of_blas():
            return np.matmul(every, matrix, out=totals)
    buffers = np.empty((2, rows, cases))
    pending: list[Future[FloatArray]] = []
    # Drawing is one stream in this thread, so that slices and threads change no weight.
    with _one_thread_of_blas(), ThreadPoolExecutor(1) as product:
        for number, start in enumerate(range(0, resamples, rows)):
            weights = buffers[number % 2, : min(rows, resamples - start)]
            draw(weights)
            for done in pending:
                done.result()
            pending = [product.submit(np.matmul, weights, matrix, out=totals[start : start + rows])]
        for done in pending:
            done.result()
    return totals


def _one_thread_of_blas() -> AbstractContextManager[object]:
    """A context in which BLAS uses one thread.

    Products this narrow gain little from more, and the sums then do not depend on the number of cores.
    """
    limited: AbstractContextManager[object] = _libraries().limit(limits=1, user_api="blas")
    return limited


@cache
def _libraries() -> "ThreadpoolController":
    """The libraries with thread pools of their own, such as NumPy's BLAS; the search takes a while."""
    import numpy as np  # noqa: F401 (it must be there to be found)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


_NO_INFLUENCE = 1e-12


def by_unit(block: FloatArray, units: IntArray) -> FloatArray:
    """The count rows of the cases of every unit, such as a cluster, added up."""
    import numpy as np

    size = int(units.max()) + 1 if units.size else 0
    if size == len(block):
        return block
    out = np.zeros((size, block.shape[1]))
    np.add.at(out, units, block)
    return out


def design_effect(influence: FloatArray, units: IntArray) -> float | None:
    """The factor by which the variance of a value grows because cases are drawn in clusters (Kish 1965).

    Args:
        influence: What the value loses without each of the cases, which sums up to nearly 0.
        units: Of the cases.

    Returns:
        The factor; ``None`` if no case has any influence, or all are in one cluster.
    """
    import numpy as np

    influence = np.where(np.isfinite(influence), influence, 0.0)
    alone = float(np.sum(influence**2))
    together = np.bincount(units, weights=influence)
    cases, clusters = len(influence), len(together)
    if alone <= _NO_INFLUENCE**2 or clusters <= 1:
        return None
    return float(np.sum(together**2)) / alone * (clusters / (clusters - 1)) / (cases / (cases - 1))
