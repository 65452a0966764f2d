"""Help for tests of the working cache: a clock, and changes behind its back."""

__all__ = ("Clock", "change")

import sqlite3
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Clock:
    """A clock that stands still until a test moves it."""

    now: float = 1e9

    def __call__(self) -> float:
        return self.now


def change(path: Path, statement: str, *values: object) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(statement, values)
    connection.close()
