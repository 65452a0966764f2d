"""Tables of the documentation that simulations write, each between two markers of its page.

Run: ``python benchmarks/tables.py [NAME ...] [--check]``; without names, all tables. ``--check`` writes nothing: it
repeats a seeded tenth of the rows of each table, each with a tenth of its simulations, and prints the numbers on which
page and code disagree. Tests do the same.

To add a table, decorate a function in a module of `MODULES`, put both markers into the page (``<!-- table NAME -->``
and ``<!-- end of table -->``), and run the command::

    @table("few", "statistics.md", ("runs", "false alarms"), simulations=400)
    def few(simulations: int, seed: int) -> Iterator[Row]:
        for size in rows((20, 50)):
            rng = np.random.default_rng([seed, size])
            yield (size, share(alarm(rng, size) for _ in range(simulations)))

A cell is text, a whole number, a `share` of simulations, a `mean` over them, or several of these in a tuple. A row's
random numbers come from `seed` and what the row is about, never from the rows before: `rows` leaves out most of them
in a check. A table whose rows share their simulations does without `rows`, and is checked whole.
"""

import argparse
import importlib
import math
import random
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar

import numpy as np
from tabulate import tabulate

DOCS = Path(__file__).parents[1] / "docs"
MODULES = (
    *("calibration", "few_cases", "histories", "modes", "planning", "real.judges", "real.proof", "reviews"),
    "validation",
    "verdicts",
)
"""The modules of this folder that declare tables."""

SEED = 44
END = "<!-- end of table -->"
DEVIATIONS = 4.0
"""How many standard errors page and check may differ in a number; some hundred numbers are compared."""

PART, FEWEST = 10, 12
"""A check repeats one row in `PART`, with one simulation in `PART`, but not fewer than `FEWEST`."""


@dataclass(frozen=True)
class Estimated:
    """A number that simulations estimate.

    Attributes:
        value: The estimate.
        error: Its standard error.
        digits: How many digits of it the page shows.
    """

    value: float
    error: float
    digits: int

    def __str__(self) -> str:
        return f"{self.value:.{self.digits}f}".replace("-0." + "0" * self.digits, "0." + "0" * self.digits)


Cell: TypeAlias = "str | int | float | Estimated | tuple[Estimated, ...]"
Row: TypeAlias = Sequence[Cell]


def share(outcomes: Iterable[object], digits: int = 3) -> Estimated:
    """Return the share of the simulations that are true; the standard error is that of two more of either outcome."""
    hits = np.array([bool(each) for each in outcomes])
    count = len(hits)
    likely = (hits.sum() + 2) / (count + 4)
    return Estimated(float(hits.mean()), math.sqrt(likely * (1 - likely) / count), digits)


def mean(values: Iterable[float], digits: int = 3) -> Estimated:
    """Return the mean over the simulations."""
    numbers = np.array(list(values), dtype=float)
    return Estimated(float(numbers.mean()), float(numbers.std(ddof=1)) / math.sqrt(len(numbers)), digits)


_Key = TypeVar("_Key")


@dataclass
class _Part:
    """The rows of a table that a check repeats.

    Attributes:
        seed: Draws them.
        places: Which ones, from 0; ``None`` if the table does not say what its rows are about.
        count: How many rows the table has.
    """

    seed: str
    places: Sequence[int] | None = None
    count: int = 0


_checks: list[_Part] = []
"""The check that is under way, if any."""


def rows(keys: Iterable[_Key]) -> Sequence[_Key]:
    """Return what the rows of a table are about, one key per row: all of them, or those that a check repeats."""
    every = list(keys)
    if not _checks:
        return every
    part = _checks[-1]
    draw = random.Random(part.seed)
    part.places = sorted(draw.sample(range(len(every)), math.ceil(len(every) / PART)))
    part.count = len(every)
    return [every[place] for place in part.places]


@contextmanager
def _check(seed: str) -> Iterator[_Part]:
    _checks.append(part := _Part(seed))
    try:
        yield part
    finally:
        _checks.pop()


@dataclass(frozen=True)
class PublishedTable:
    """A table of a page.

    Attributes:
        name: By which the command and the markers know it.
        page: The name of the page's file.
        headers: Of its columns.
        simulations: How many the page rests on; 0 if the table is computed without simulation.
        rows: Returns the rows from the number of simulations and a seed.
    """

    name: str
    page: str
    headers: Sequence[str]
    simulations: int
    rows: Callable[[int, int], Iterable[Row]]

    @property
    def quick(self) -> int:
        """How many simulations a check has."""
        return self.simulations and max(FEWEST, self.simulations // PART)

    @property
    def marker(self) -> str:
        """The line above the table, which says how to repeat it."""
        how = f"{self.simulations} simulations, " if self.quick else ""
        return f"<!-- table {self.name}: {how}python benchmarks/tables.py {self.name} -->"

    def written(self, page: str) -> str:
        """Return the text of the page with the table.

        Raises:
            ValueError: The page has no markers for it.
        """
        rows = [[_text(cell) for cell in row] for row in self.rows(self.simulations, SEED)]
        table = tabulate(rows, self.headers, tablefmt="github", disable_numparse=True)
        plain = re.sub(r"\|-[-|]+\|", lambda line: "|---" * line[0].count("|-") + "|", re.sub(" +", " ", table))
        start, end = self._place(page)
        return f"{page[:start]}{self.marker}\n\n{plain}\n\n{page[end:]}"

    def disagreements(self, page: str, seed: int = SEED + 1) -> Iterator[str]:
        """Yield the cells of the page that a repetition of a tenth, with another seed, does not confirm."""
        start, end = self._place(page)
        marker, _, table = page[start:end].partition("\n")
        if marker != self.marker:
            yield f"the marker is {marker!r}, expected {self.marker!r}"
        lines = [[cell.strip() for cell in line[1:-1].split("|")] for line in table.splitlines() if line[:1] == "|"]
        with _check(f"{self.name} {seed}") as part:
            rows = list(self.rows(self.quick, seed))
        places = range(len(rows)) if part.places is None else part.places
        count = part.count or len(rows)
        if lines[:1] != [list(self.headers)] or len(lines) - 2 != count:
            yield f"{len(lines[2:])} rows of {lines[:1]}, expected {count} of {list(self.headers)}"
            return
        for published, row in zip((lines[2 + place] for place in places), rows, strict=True):
            for header, text, cell in zip(self.headers, published, row, strict=True):
                if not self._confirms(text, cell):
                    yield f"{' | '.join(published)}: {header} is {text}, the check has {_text(cell)}"

    def _place(self, page: str) -> tuple[int, int]:
        found = re.search(rf"<!-- table {re.escape(self.name)}(:[^\n]*)? -->\n.*?(?={END})", page, re.DOTALL)
        if found is None:
            raise ValueError(f"{self.page} has no markers of table {self.name}")
        return found.span()

    def _confirms(self, text: str, cell: Cell) -> bool:
        if not isinstance(cell, Estimated | tuple):
            return text == str(cell)
        parts, estimates = text.split(" / "), (cell,) if isinstance(cell, Estimated) else cell
        return len(parts) == len(estimates) and all(map(self._near, parts, estimates))

    def _near(self, text: str, check: Estimated) -> bool:
        if not re.fullmatch(rf"-?\d+\.?\d{{{check.digits}}}" if check.digits else r"-?\d+", text):
            return text == str(check)
        error = check.error * math.sqrt(1 + self.quick / self.simulations)
        return abs(float(text) - check.value) <= DEVIATIONS * error + 0.5 * 10**-check.digits + 1e-9


TABLES: dict[str, PublishedTable] = {}


def table(
    name: str, page: str, headers: Sequence[str], *, simulations: int = 0
) -> Callable[[Callable[[int, int], Iterable[Row]]], Callable[[int, int], Iterable[Row]]]:
    """Declare a function of the number of simulations and a seed as a table of a page; see `PublishedTable`."""

    def declare(rows: Callable[[int, int], Iterable[Row]]) -> Callable[[int, int], Iterable[Row]]:
        TABLES[name] = PublishedTable(name, page, headers, simulations, rows)
        return rows

    return declare


def published_tables() -> dict[str, PublishedTable]:
    """Return all tables by name."""
    for each in MODULES:
        importlib.import_module(each)
    return TABLES


def _text(cell: Cell) -> str:
    return " / ".join(map(str, cell)) if isinstance(cell, tuple) else str(cell)


def main() -> int:
    known = published_tables()
    parser = argparse.ArgumentParser(description="Write the simulated tables of the documentation.")
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"one of {', '.join(known)}; default: all")
    parser.add_argument("--check", action="store_true", help="compare with a tenth, and write nothing")
    options = parser.parse_args()
    if unknown := set(options.tables) - known.keys():
        parser.error(f"unknown table {min(unknown)!r}: expected one of {', '.join(known)}")
    return write_or_check(options.tables or list(known), check=options.check)


def write_or_check(names: Sequence[str], *, check: bool) -> int:
    """Write tables into their pages, or print what a repetition does not confirm, and return the exit code."""
    wrong = 0
    for name in names:
        started = time.process_time()
        each = TABLES[name]
        path = DOCS / each.page
        page = path.read_text(encoding="utf-8")
        if check:
            for line in each.disagreements(page):
                wrong += 1
                print(f"{each.page}: {name}: {line}")
        else:
            path.write_text(each.written(page), encoding="utf-8")
        print(f"{each.page}: {name}: {time.process_time() - started:.0f} s of processor time", flush=True)
    return wrong > 0


if __name__ == "__main__":
    from tables import main as run  # tables are declared in the module of this name, not in the script

    sys.exit(run())
