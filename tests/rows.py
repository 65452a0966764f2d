"""Rows of a parametrised test as one item: workers of xdist spend more time on an item than most rows take."""

__all__ = ("as_one", "run_rows")

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import is_hypothesis_test

WIDE = ("class", "module", "package", "session")
"""Scopes of fixtures that rows share anyway."""


def as_one(made: Sequence[pytest.Item | pytest.Collector]) -> Sequence[pytest.Item | pytest.Collector]:
    """Return one item that runs all rows of a test, or the items as they are if rows need something of their own."""
    rows = [item for item in made if isinstance(item, pytest.Function)]
    if len(rows) < 2 or not all(map(_shares_all, rows)):
        return made
    function, params = rows[0].obj, rows[0].callspec.params
    calls = {row.callspec.id: partial(function, **row.callspec.params) for row in rows}

    def test(**fixtures: Any) -> None:
        run_rows(calls, fixtures)

    wanted = [each for each in inspect.signature(function).parameters.values() if each.name not in params]
    test.__signature__ = inspect.Signature(wanted)  # type: ignore[attr-defined]  # where pytest reads names of fixtures
    return [pytest.Function.from_parent(rows[0].parent, name=rows[0].originalname, callobj=test)]


def _shares_all(row: pytest.Function) -> bool:
    if {mark.name for mark in row.iter_markers()} != {"parametrize"} or is_hypothesis_test(row.obj):
        return False
    known = row._fixtureinfo
    for name in set(row.fixturenames) - row.callspec.params.keys():
        found = known.name2fixturedefs.get(name)
        # What plugins do around every test, they may do once around all rows.
        is_theirs = name not in known.argnames and not (found and found[-1].baseid)
        if not is_theirs and not (found and found[-1].scope in WIDE):
            return False
    return True


def run_rows(calls: Mapping[str, Callable[..., None]], fixtures: Mapping[str, Any]) -> None:
    """Run all rows, whichever fail, and name those that do; one that is skipped skips the item."""
    failures: list[BaseException] = []
    skipped: list[pytest.skip.Exception] = []
    for name, call in calls.items():
        try:
            call(**fixtures)
        except pytest.skip.Exception as skip:
            skipped.append(skip)
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001  # whatever it is, the other rows run
            error.add_note(f"in row {name}")
            failures.append(error)
    if len(failures) > 1:
        raise BaseExceptionGroup(f"{len(failures)} of {len(calls)} rows", failures)
    for each in failures + skipped:
        raise each
