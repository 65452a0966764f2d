"""Columns of scores, most of which take a byte for each number."""

__all__ = ("PackedColumns",)

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from pytest_llmeval.core.observation import fits_a_byte

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from pytest_llmeval.core.observation import FloatArray

    Small: TypeAlias = npt.NDArray[np.int8]

_NOTHING = -1
"""Stands for NaN in a packed column."""


class PackedColumns(Mapping[str, "FloatArray"]):
    """Metric name to one number per case; reading a column makes its floats.

    Scores of cases are mostly 0, 1 or nothing, and thousands of labels have thousands of columns of them. A column
    with any other number than NaN and whole ones from 0 to 127 is kept as it is.
    """

    __slots__ = ("_columns", "_length")

    def __init__(self, length: int) -> None:
        self._length = length
        self._columns: dict[str, npt.NDArray[Any]] = {}

    def __getitem__(self, name: str) -> "FloatArray":
        import numpy as np

        column = self._columns[name]
        return _floats(column) if column.dtype == np.int8 else column

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def fill(self, name: str, start: int, numbers: "FloatArray") -> None:
        """Set numbers of a column, from a row on; all others are NaN at first."""
        import numpy as np

        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = np.full(self._length, _NOTHING, np.int8)
        rows = slice(start, start + len(numbers))
        if column.dtype == np.int8:
            packed = _packed(numbers)
            if packed is not None:
                column[rows] = packed
                return
            column = self._columns[name] = _floats(column)
        column[rows] = numbers

    def erase(self, name: str, rows: "int | npt.NDArray[np.bool_]") -> None:
        """Set some rows of a column to NaN."""
        import numpy as np

        column = self._columns[name]
        column[rows] = _NOTHING if column.dtype == np.int8 else np.nan

    def at(self, name: str, row: int) -> float:
        """Return one number of a column."""
        import numpy as np

        column = self._columns[name]
        number = float(column[row])
        return np.nan if number == _NOTHING and column.dtype == np.int8 else number


def _floats(column: "Small") -> "FloatArray":
    import numpy as np

    numbers = column.astype(float)
    numbers[column == _NOTHING] = np.nan
    return numbers


def _packed(numbers: "FloatArray") -> "Small | None":
    """Return numbers as a byte each; ``None`` where that would change one of them."""
    import numpy as np

    nothing = np.isnan(numbers)
    whole = np.where(nothing, 0.0, numbers)
    if not fits_a_byte(whole):
        return None
    packed = whole.astype(np.int8)
    packed[nothing] = _NOTHING
    return packed
