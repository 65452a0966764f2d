"""Laws of the stages of a run, and the extensions that map them."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from builders import KnownSuites, length_suite, parse_gate, recorded
from msgspec import structs

from pytest_llmeval.baselines import Keeper, SnapshotMode, Stamp
from pytest_llmeval.core import Case, CaseRecord, JudgeCall, LlmevalError, Observation
from pytest_llmeval.run import Collected, Reported, RunScope, RunTerms, finish_run
from pytest_llmeval.run import _finishing as finishing
from pytest_llmeval.run._finishing import report
from pytest_llmeval.run._judging import judge
from pytest_llmeval.run._stages import collect
from pytest_llmeval.suites import Registry

CASES = (Case("a"), Case("b"))
GATES = (parse_gate("length >= 4"), parse_gate("length >= 9"))


@pytest.fixture
def scope(tmp_path: Path) -> RunScope:
    """A run of a suite with a snapshot that is approved, and with gates."""
    suite = length_suite(*CASES, path=tmp_path / "s.eval.yaml", gates=GATES)
    run = recorded(
        suite, *(CaseRecord(each.id, observations={"length": Observation({"letters": 4})}) for each in CASES)
    )
    keeper = Keeper(SnapshotMode(update=True), always=True)
    return RunScope(run, RunTerms(), KnownSuites(tmp_path, {suite.path: suite}), keeper, Stamp("2026-01-02", None))


def test_judging_and_reporting_leave_the_stage_before_as_it_was(scope: RunScope) -> None:
    collected = collect(scope)
    before = deepcopy(collected)
    judged = judge(collected, scope)
    reported = report(judged, scope)
    assert collected == before
    assert [each.collected for each in judged.suites] == list(collected.suites)
    assert reported.judged is judged


def test_judging_twice_gives_the_same_verdicts(scope: RunScope) -> None:
    collected = collect(scope)
    first = judge(collected, scope)
    assert [each.outcome for _, each in first.verdicts] == ["passed", "failed", "passed", "passed"]
    second = judge(collected, scope)
    assert (second.verdicts, second.notes) == (first.verdicts, first.notes)
    assert [each.snapshot for each in second.suites] == [each.snapshot for each in first.suites]
    assert [each.result.metrics for each in second.suites] == [each.result.metrics for each in first.suites]


def test_a_suite_that_cannot_be_reported_fails_alone_and_is_not_approved(
    scope: RunScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("no baseline")

    monkeypatch.setattr(finishing, "report_suite", broken)
    done = finish_run(scope.run, RunTerms(snapshots=True), scope.suites, SnapshotMode(update=True))
    why = "not reported: ZeroDivisionError: no baseline"
    assert [verdict.reason[: len(why)] for _, verdict in done.verdicts if verdict.outcome == "failed"][-1:] == [why]
    assert (done.failed, list(done.report.suites), list(done.judged.suites)) == (True, [], [])
    assert [note.startswith(f"s.eval.yaml: {why}") for note in done.notes].count(True) == 1
    assert not list(scope.suites.root.rglob("*.scores.json"))


def test_no_field_of_a_stage_can_be_set(scope: RunScope) -> None:
    collected = collect(scope)
    judged = judge(collected, scope)
    for stage in (collected.suites[0], judged.suites[0], judged.suites[0].measured, collected, judged):
        with pytest.raises(AttributeError):
            setattr(stage, stage.__match_args__[0], ())


def without_last(collected: Collected, scope: RunScope) -> Collected:
    """Leave suites all but their last record."""
    del scope
    return Collected([structs.replace(each, records=each.records[:-1]) for each in collected.suites], collected.faults)


def without_first(collected: Collected, scope: RunScope) -> Collected:
    """Leave suites all but their first record."""
    del scope
    return Collected([structs.replace(each, records=each.records[1:]) for each in collected.suites], collected.faults)


def noted(reported: Reported, scope: RunScope) -> Reported:
    """Add a note."""
    return structs.replace(reported, notes=[*reported.notes, f"{len(scope.run.items)} items"])


def extended_by(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Registry, "installed_extensions", registry.extensions)


def test_extensions_map_stages_in_the_order_of_their_registration(
    scope: RunScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = Registry()
    registry.extend("collected", f"{__name__}:without_last")
    registry.extend("collected", "no_such_module:function", lambda *_: False)
    registry.extend("reported", noted)
    extended_by(registry, monkeypatch)
    run = finish_run(scope.run, scope.terms, scope.suites, SnapshotMode())
    (suite,) = run.judged.suites
    assert [each.id for each in suite.records] == ["a"]
    assert suite.incomplete == "1 of 2 cases ran"
    assert run.notes[-1] == "2 items"


def test_a_shared_call_belongs_to_a_case_that_counts(scope: RunScope, monkeypatch: pytest.MonkeyPatch) -> None:
    call = JudgeCall("c", fresh=True)
    suite = scope.suites.read(scope.suites.root / "s.eval.yaml")
    records = [CaseRecord(each.id, calls=[call]) for each in CASES]
    recorded(suite, *records, into=scope.run)
    registry = Registry()
    extended_by(registry, monkeypatch)
    assert [[call.fresh for call in each.calls] for each in collect(scope).suites[0].records] == [[True], [False]]
    registry.extend("collected", without_first)
    assert [[call.fresh for call in each.calls] for each in collect(scope).suites[0].records] == [[True]]


def test_an_extension_names_a_point_and_a_function() -> None:
    with pytest.raises(LlmevalError, match=r"unknown extension point colected, did you mean collected\?"):
        Registry().extend("colected", noted)
    with pytest.raises(LlmevalError, match=r"expected a function or 'package\.module:function'"):
        Registry().extend("reported", "package.module")


def test_a_copy_of_a_registry_has_extensions_of_its_own() -> None:
    registry = Registry()
    copied = registry.copy()
    registry.extend("reported", noted)
    assert copied.extensions("reported") == ()


def failing(*_: object) -> object:
    """Fail, as a plugin with a bug does."""
    raise KeyError("owner")


def forgetful(*_: object) -> None:
    """Return nothing."""


@pytest.mark.parametrize("point", ["collected", "reported"])
@pytest.mark.parametrize(
    ("function", "why"),
    [
        (failing, "KeyError: 'owner'"),
        (forgetful, "it returned NoneType, expected {stage}"),
        ("no_such_module:function", "ModuleNotFoundError: No module named 'no_such_module'"),
    ],
)
def test_results_outlive_an_extension_that_fails(
    point: str, function: Any, why: str, scope: RunScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = Registry()
    registry.extend(point, function)
    registry.extend("reported", noted)
    extended_by(registry, monkeypatch)
    run = finish_run(scope.run, scope.terms, scope.suites, SnapshotMode())
    assert [record.id for record in run.judged.suites[0].records] == ["a", "b"]
    assert run.notes[-1] == "2 items"
    name = function if isinstance(function, str) else f"{__name__}:{function.__name__}"
    (shortfall,) = run.shortfalls
    assert shortfall.startswith(f"the extension {name} ({point}) failed: {why.format(stage=point.capitalize())}")
