"""The identity of cases whose ids only count."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import structs

from pytest_llmeval.exchange.results import ResultRow

_FEWEST: Final = 3
"""Ids that count are at least so many."""
_DENSITY: Final = 0.5
"""Of the numbers between the first and the last, at least so many occur: some cases may be missing."""
_NUMBER: Final = re.compile(r"\d++")
_TAIL: Final = re.compile(r"(?<!\d)\d++\]?$")
_ONLY: Final = re.compile(r"(\D*+)(\d++)(\]?)", re.DOTALL)
"""An id with one number, at its end."""
_OF_PYTEST: Final = re.compile(r"\[[^\W\d]\w*#(?:-[^\W\d]\w*#)*\]$")


def _template(case: str) -> tuple[str, int] | None:
    """The template of a case id with its last number left open, and the number; ``None`` without one at the end."""
    if match := _ONLY.fullmatch(case):
        return f"{match[1]}#{match[3]}", int(match[2])
    if not _TAIL.search(case):
        return None
    digits = _NUMBER.findall(case)[-1]
    return _NUMBER.sub(lambda number: "#" if number[0] == digits else number[0], case), int(digits)


def counters_of(cases: Iterable[str]) -> dict[str, list[str]]:
    """Case ids that count from 0 or 1 on by template, such as ``q#`` to ``q000``, ``q001``, ``q002``.

    Example:
        >>> counters_of(["q0", "q1", "q2", "refund"])
        {'q#': ['q0', 'q1', 'q2']}
    """
    groups: dict[str, dict[int, str]] = {}
    for case in cases:
        if (parts := _template(case)) is not None:
            groups.setdefault(parts[0], {})[parts[1]] = case
    return {
        template: list(numbers.values())
        for template, numbers in groups.items()
        if len(numbers) >= _FEWEST and min(numbers) <= 1 and len(numbers) >= _DENSITY * (max(numbers) - min(numbers))
    }


def named_by_content(*sides: Sequence[ResultRow]) -> list[list[ResultRow]]:
    """Name cases of results by content where their ids only count, if all of them on all sides have one."""
    if not any(row.content for rows in sides for row in rows):
        return [list(rows) for rows in sides]
    counting = [_counting(rows) for rows in sides]
    renamed = {
        (suite, template)
        for suite, template in dict.fromkeys(key for of_side in counting for key in of_side)
        if all(_are_known_by_content(of_side.get((suite, template), ())) for of_side in counting)
    }
    return [
        [
            structs.replace(row, case=row.content)
            if row.content and (row.suite, (_template(row.case) or ("",))[0]) in renamed
            else row
            for row in rows
        ]
        for rows in sides
    ]


def _counting(rows: Iterable[ResultRow]) -> dict[tuple[str, str], list[ResultRow]]:
    """Result rows whose case ids only count, by suite and template."""
    by_suite: dict[str, dict[str, list[ResultRow]]] = {}
    for row in rows:
        by_suite.setdefault(row.suite, {}).setdefault(row.case, []).append(row)
    return {
        (suite, template): [row for case in cases for row in by_case[case]]
        for suite, by_case in by_suite.items()
        for template, cases in counters_of(by_case).items()
    }


def _are_known_by_content(rows: Sequence[ResultRow]) -> bool:
    """Whether each case of some result rows has a content, and no two cases the same."""
    contents: dict[str, str] = {}
    return all(row.content and contents.setdefault(row.content, row.case) == row.case for row in rows)


class Positions:
    """The case ids of two runs of results that are positions, as far as their names tell.

    Attributes:
        templates: Template to the number of its ids in both runs.
    """

    def __init__(self, cases: Mapping[str, None], baseline: Mapping[str, None]) -> None:
        here = counters_of(cases)
        there = here if cases == baseline else counters_of(baseline)
        self.templates: Mapping[str, tuple[int, int]] = {
            name: (len(here.get(name, ())), len(there.get(name, ()))) for name in [*here, *there]
        }
        self._example = next((ids[0] for ids in here.values()), "")

    def notes(self) -> Iterator[str]:
        """Yield a line about ids that are positions, if there are any."""
        if self._example and self.templates:
            yield (
                f"ids such as {self._example!r} are positions: a case that is inserted or removed moves the others, "
                "unless rows have an input"
            )

    @property
    def moved(self) -> str:
        """The sentence about ids that a runner made of positions, of which the runs have other numbers."""
        for template, (here, there) in self.templates.items():
            if here and there and here != there and _OF_PYTEST.search(template):
                return f"{template.replace('#', 'N')} are positions, {here} here and {there} in the baseline"
        return ""
