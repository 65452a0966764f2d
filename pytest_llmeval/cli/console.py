"""Output of the command ``llmeval``: standard streams and files."""

__all__ = ("say", "write_text")

import sys
from collections.abc import Iterable
from pathlib import Path

from pytest_llmeval.core.errors import Fault, SuiteError
from pytest_llmeval.core.wording import printable
from pytest_llmeval.data.files import writing


def say(lines: Iterable[object], *, error: bool = False) -> None:
    """Print lines, without what a terminal would obey.

    Args:
        lines: Each becomes one line; a line break inside is shown, not followed.
        error: Whether they belong on standard error.
    """
    (sys.stderr if error else sys.stdout).writelines(f"{printable(str(each))}\n" for each in lines)


def write_text(path: Path, parts: Iterable[str]) -> None:
    """Write a file from parts of its text; half of a surrogate pair, which UTF-8 cannot hold, is escaped.

    Raises:
        SuiteError: It cannot be written.
    """
    try:
        writing.write_text(path, parts)
    except OSError as error:
        message = f"found no way to write it ({error.strerror}), expected a file in a folder that exists"
        raise SuiteError([Fault(str(path), 0, 0, "", message)]) from None
