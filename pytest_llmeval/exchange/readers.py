"""Results in any form that is known, read into the rows of `exchange/results.py`."""

from pathlib import Path
from typing import Any

from pytest_llmeval.core.errors import Fault, SuiteError
from pytest_llmeval.core.wording import unknown_name
from pytest_llmeval.exchange.results import SUITE, ResultRow, own_rows_of, read_own


def read_results(path: Path, display_path: str, format: str = "") -> list[ResultRow]:  # noqa: A002 (the option's name)
    """Read a file of results, in the published form or in that of another tool.

    Args:
        path: The file.
        display_path: Its name in messages.
        format: Name of the form; empty: known by its content.

    Raises:
        SuiteError: It cannot be read, has faults, or is of no known form; all faults are listed.
    """
    own = read_own(path, display_path, chosen=format == SUITE) if format in ("", SUITE) else None
    if own is not None:
        return own
    message = unknown_name("format", format, (SUITE,)) if format else "found no results of a known form"
    expected = "expected rows with case, metric and one of score, error and abstained: see llmeval schema results"
    raise SuiteError([Fault(display_path, 0, 0, "", f"{message}, {expected}")])


def results_of(data: Any) -> list[ResultRow]:
    """Return the rows of what Python passes.

    Args:
        data: Rows, mappings, or a data frame of the fields of `ResultRow`.

    Raises:
        SuiteError: Rows have faults; all are listed.
        LlmevalError: It is something else.
    """
    return own_rows_of(data)
