"""Data frames of results."""

import json
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, Final, Literal, TypeAlias, get_args

from pytest_llmeval.core._codec import is_finite_number
from pytest_llmeval.core._errors import MissingExtraError

FrameLibrary: TypeAlias = Literal["pandas", "polars", "pyarrow"]
"""A library of data frames."""

_INT64: Final = 2**63


def data_frame(columns: Mapping[str, list[Any]], library: FrameLibrary | None) -> Any:
    """Return columns of results as a data frame of a library.

    Args:
        columns: Name to values of one length. A column of texts, of numbers or of truth values has these; one of other
            data, or of several kinds, has them as JSON.
        library: Of the frame; default: the first that is installed.

    Raises:
        MissingExtraError: narwhals is not installed.
        ImportError: The library is not installed.
    """
    with MissingExtraError.unless_installed("a data frame of results", "frames"):
        import narwhals as nw
    known = get_args(FrameLibrary)
    chosen = library or next((name for name in known if find_spec(name)), "pandas")
    if chosen not in known:
        raise ValueError(f"found library {chosen!r}, expected one of {', '.join(known)}")
    return nw.from_dict({name: _cells(cells) for name, cells in columns.items()}, backend=chosen).to_native()


def _cells(values: list[Any]) -> list[Any]:
    """The values of a results column as values of one type: texts, numbers, truth values, or else JSON."""
    known = [value for value in values if value is not None]
    if all(type(value) is bool for value in known):
        return values
    if all(is_finite_number(value) and abs(value) < _INT64 for value in known):
        as_floats = any(isinstance(value, float) for value in known)
        return [value if value is None or not as_floats else float(value) for value in values]
    if not all(isinstance(value, str) for value in known):
        values = [value if value is None else json.dumps(value, ensure_ascii=False, default=str) for value in values]
    # Half of a surrogate pair, which models do emit, has no bytes in UTF-8.
    return [value if value is None else value.encode(errors="backslashreplace").decode() for value in values]
