"""Faults of the keys and values of a data file's rows."""

from collections.abc import Iterable, Mapping
from typing import Any

from pytest_llmeval.core import suggest
from pytest_llmeval.data import FaultLog, kind


def wrong_values(item: Mapping[str, Any], checks: Iterable[tuple[str, bool, str]]) -> list[tuple[tuple[str], str]]:
    """The path and the message of each wrong value of an object in a data file.

    Args:
        item: An object.
        checks: Key, whether its value is good, and what is expected.
    """
    return [
        ((key,), f"found {kind(item[key]) if key in item else 'nothing'}, expected {expected}")
        for key, good, expected in checks
        if not good
    ]


class UnreadKeys:
    """Keys of the rows of one file that its source does not read; each is one fault, which spares the cases.

    Args:
        known: The keys that the format has.
        ignore: Further keys that are not read on purpose.
    """

    def __init__(self, known: Iterable[str], ignore: Iterable[str] = ()) -> None:
        self._known = tuple(known)
        self._passed = {*self._known, *ignore}
        self._first: dict[str, tuple[int, int, str]] = {}

    def add(self, row: Mapping[str, Any], line: int, column: int, path: str = "") -> None:
        """Add the keys of a row of the data file."""
        for key in row:
            if key not in self._passed:
                self._first.setdefault(str(key), (line, column, path))

    def report(self, faults: FaultLog, meant: Mapping[str, str] | None = None) -> None:
        """Add the faults of unread keys, each where the key comes first in the file.

        Args:
            faults: Gets them.
            meant: Keys of other formats, each with the key of this one that `fields` can read from it.
        """
        for key, (line, column, path) in self._first.items():
            part = (meant or {}).get(key)
            hint = suggest(key, self._known) if part is None else f" (did you mean `fields: {{{part}: {key}}}`?)"
            expected = f"one of: {', '.join(self._known)} (or {key} under `ignore`){hint}"
            faults.add(line, column, path, f"found the key {key!r}, expected {expected}", spares_case=True)
