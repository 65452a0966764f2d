"""What workers of pytest-xdist cost: a run that is faster without them says so."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from pytest_llmeval.plugin._progress import WorkerTime

if TYPE_CHECKING:
    from conftest import Project


def noted(
    durations: Sequence[float],
    *,
    start: float = 1.0,
    running: float = 0.5,
    error: object = None,
    verbosity: int = 0,
    exitstatus: int = 0,
    results: Sequence[str] = ("a",),
) -> list[str]:
    """Return what a run with two workers notes.

    Args:
        durations: Of its tests.
        start: Seconds until the last worker has started.
        running: Seconds from the first test to the last.
        error: Why a worker ended.
        verbosity: Of the run.
        exitstatus: Of the run.
        results: Of cases.
    """
    ticks = iter([10.0, 10.0 + start / 2, 10.0 + start, 20.0, *[20.0 + running] * len(durations)])
    run: Any = SimpleNamespace(notes=[], record=SimpleNamespace(items=results))
    session: Any = SimpleNamespace(config=SimpleNamespace(get_verbosity=lambda: verbosity))
    times = WorkerTime(run, 2, lambda: next(ticks))
    for _ in range(2):
        times.pytest_testnodeready()
    for duration in durations:
        times.pytest_runtest_logstart()
        report: Any = SimpleNamespace(duration=duration, worker_id="gw0")
        times.pytest_runtest_logreport(report)
    gate: Any = SimpleNamespace(duration=99.0)
    times.pytest_runtest_logreport(gate)
    times.pytest_testnodedown(error)
    times.pytest_sessionfinish(session, exitstatus)
    return run.notes  # type: ignore[no-any-return]  # a namespace


def test_a_run_whose_tests_took_less_than_its_workers_cost_says_so() -> None:
    tests, workers = "its tests took 1.00 s together", "starting 2 workers and running tests in them 1.50 s"
    assert noted([0.25] * 4) == [f"this run is faster without -n: {tests}, {workers}"]


def test_nothing_is_said_where_workers_may_have_saved_time() -> None:
    assert noted([0.25] * 4, running=0.3) == []
    assert noted([30.0] * 4, running=61.0) == []


def test_nothing_is_said_of_runs_that_are_quiet_cut_short_or_without_cases() -> None:
    assert noted([0.1], verbosity=-1) == []
    assert noted([0.1], exitstatus=2) == []
    assert noted([0.1], error="killed") == []
    assert noted([0.1], results=()) == []
    assert noted([]) == []
    assert noted([0.1], exitstatus=1)


def test_workers_for_a_handful_of_recorded_answers_are_advised_against_but_not_with_q(capitals: "Project") -> None:
    advice = "this run is faster without -n: its tests took"
    assert advice in capitals.run(workers=2).text
    assert advice not in capitals.run("-q", workers=2).text
    assert advice not in capitals.run().text
