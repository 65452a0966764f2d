"""Hypothesis strategies that several test files share, and parametrised tests as one item."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from hypothesis import is_hypothesis_test
from hypothesis import strategies as st

from pytest_llmeval import Case, Evaluator, Metric, Observation, Sums, Totals
from pytest_llmeval.core import CaseRecord, FloatArray

NAMES = ("a", "b", "n", "tp[joy]", "等")
AWKWARD = (0.1, 0.2, 0.3, 1e16, -1e16, 1e-17, -1e-17, 1 / 3, 1e308 / 4, 5e-324, -0.0)

counts = st.one_of(
    st.sampled_from(AWKWARD),
    st.integers(min_value=-(2**53), max_value=2**53),
    st.floats(min_value=-1e300, max_value=1e300, allow_nan=False),
)
"""Counts whose sums of a few dozen stay finite, awkward ones among them."""

_scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
details = st.dictionaries(
    st.text(), st.recursive(_scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=6)
)
"""What JSON can carry."""

observations = st.builds(
    Observation,
    counts=st.dictionaries(st.sampled_from(NAMES), counts),
    details=details,
    undefined=st.dictionaries(st.sampled_from(NAMES), st.text()),
    malformed=st.none() | st.text(),
)

counted = st.builds(Observation, counts=st.dictionaries(st.sampled_from(NAMES), counts, max_size=3))
"""Observations that only count."""

totals = st.lists(counted, max_size=5).map(Totals.add_up)


@dataclass(frozen=True)
class SplitAverage(Evaluator):
    """Weighted and plain averages of the case's prediction, a pair ``[sum, weight]``: pooled and mean values differ."""

    name = "split"

    def describe(self) -> Sequence[Metric]:
        return (Metric("ratio", low=None, high=None), Metric("sum", low=None, high=None))

    def measure(self, case: Case) -> Observation:
        if case.expected is None:
            return Observation({}, undefined={"ratio": "no gold", "sum": "no gold"})
        total, weight = case.prediction
        return Observation({"total": total, "weight": weight})

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        return {"ratio": sums["total"] / sums["weight"], "sum": sums["total"]}


_outcomes = st.sampled_from(("measured", "undefined", "errored", "missing"))
_pairs = st.tuples(st.one_of(st.sampled_from(AWKWARD[:8]), st.floats(-1e6, 1e6)), st.integers(0, 5))


@st.composite
def records(draw: st.DrawFn, max_size: int = 12) -> list[CaseRecord]:
    """Records of `SplitAverage` with distinct ids: measured, undefined, errored and missing ones."""
    out = []
    for number, (kind, pair) in enumerate(draw(st.lists(st.tuples(_outcomes, _pairs), max_size=max_size))):
        name, labels = str(number), {"kind": kind}
        if kind == "measured":
            measured = {"split": Observation({"total": pair[0], "weight": pair[1]})}
            out.append(CaseRecord(name, labels, observations=measured))
        elif kind == "undefined":
            undefined = {"split": Observation({}, undefined={"ratio": "no gold", "sum": "no gold"})}
            out.append(CaseRecord(name, labels, observations=undefined))
        elif kind == "errored":
            out.append(CaseRecord(name, labels, "errored", errors={"split": "ValueError: no"}))
        else:
            out.append(CaseRecord(name, labels, "not_run"))
    return out


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
