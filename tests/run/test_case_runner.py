"""Running cases in a process: whose target answers, what is called early, and what ends a run."""

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from builders import Length, key_of, length_suite

from pytest_llmeval import Case, Observation
from pytest_llmeval.judges import CachePlace, JudgeOptions
from pytest_llmeval.run import CaseRunner, EarlyCalls, FromFixtures, LoadedCase
from pytest_llmeval.suites import LoadedSuite
from pytest_llmeval.targets import Recordings, TargetSpec

EARLY = EarlyCalls(target=True, judge=True)


@dataclass
class Bot:
    """A target that notes what it is asked, and in which thread."""

    asked: list[tuple[str, bool]] = field(default_factory=list)

    def __call__(self, value: Any) -> str:
        self.asked.append((value, threading.current_thread() is threading.main_thread()))
        return f"{value}!"


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., CaseRunner]]:
    made: list[CaseRunner] = []

    def runner(concurrency: int = 4, **more: Any) -> CaseRunner:
        options = JudgeOptions(concurrency=concurrency, cache=CachePlace(tmp_path / "cache.sqlite3"))
        made.append(CaseRunner(options, **more))
        return made[-1]

    yield runner
    for each in made:
        each.close(whole_run=True)


def loaded(suite: LoadedSuite) -> list[LoadedCase]:
    return [LoadedCase(suite, case, key_of(suite)) for case in suite.cases]


def asking(*names: str, **more: Any) -> LoadedSuite:
    return length_suite(*(Case(name, input=name, expected="x") for name in names), **more)


def test_a_case_that_carries_its_prediction_is_scored_without_a_target(make: Callable[..., CaseRunner]) -> None:
    suite = length_suite(Case("c", expected="x", prediction="four"))
    execution = make().run(loaded(suite)[0])
    assert execution.scores(suite) == {"length": 4.0}
    assert (execution.record.outcome, execution.record.duration_s > 0) == ("passed", True)


def test_the_target_of_a_fixture_goes_before_that_of_the_suite(make: Callable[..., CaseRunner]) -> None:
    suite, bot = asking("abc", target=TargetSpec(python="nowhere:at_all")), Bot()
    execution = make().run(loaded(suite)[0], FromFixtures(bot))
    assert (execution.case.prediction, len(bot.asked)) == ("abc!", 1)


def test_the_target_of_a_suite_is_imported_once(
    make: Callable[..., CaseRunner], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.path", [*sys.path])
    (tmp_path / "once_only.py").write_text("def answer(value): return value * 2\n")
    suite = asking("ab", "cd", path=tmp_path / "s.eval.yaml", target=TargetSpec(python="once_only:answer"))
    runner = make()
    first, second = loaded(suite)
    assert runner.run(first).case.prediction == "abab"
    (tmp_path / "once_only.py").unlink()
    monkeypatch.delitem(sys.modules, "once_only")
    assert runner.run(second).case.prediction == "cdcd"


def test_without_any_target_a_case_is_errored_and_told_what_to_add(make: Callable[..., CaseRunner]) -> None:
    record = make().run(loaded(asking("c"))[0]).record
    assert record.outcome == "errored"
    assert record.reason is not None
    assert "or define llmeval_target in a conftest.py" in record.reason


@pytest.mark.parametrize(
    ("runs", "target", "early", "called"),
    [
        ({}, None, EARLY, True),
        ({}, None, EarlyCalls(target=False, judge=True), False),
        ({"in_turn": True}, None, EARLY, False),
        ({"concurrency": 1}, None, EARLY, False),
        ({}, TargetSpec(python="bot:answer", concurrency=1), EARLY, False),
    ],
    ids=["allowed", "fixtures forbid it", "debugger", "one call at a time", "target one by one"],
)
def test_the_next_cases_are_asked_for_early_only_where_nothing_forbids_it(
    make: Callable[..., CaseRunner], runs: dict[str, Any], target: TargetSpec | None, early: EarlyCalls, called: bool
) -> None:
    runner, bot = make(**runs), Bot()
    first, *others = loaded(asking("a", "b", "c", target=target))
    runner.run(first, FromFixtures(bot), others, early)
    runner.finish()
    assert sorted(bot.asked) == ([("a", False), ("b", False), ("c", False)] if called else [("a", True)])
    runner.run(others[0], FromFixtures(bot), others[1:], early)
    assert [value for value, _ in bot.asked].count("b") == 1


def test_a_case_that_runs_late_asks_for_none_that_had_its_turn(make: Callable[..., CaseRunner]) -> None:
    runner, bot = make(), Bot()
    first, *others = loaded(asking("a", "b", "c"))
    for place, case in enumerate(others):
        runner.run(case, FromFixtures(bot), others[place + 1 :], EARLY)
    runner.run(first, FromFixtures(bot), others, EARLY)
    runner.finish()
    assert sorted(value for value, _ in bot.asked) == ["a", "b", "c"]


@pytest.mark.parametrize(("may_stop", "called"), [(True, 5), (False, 9)])
def test_a_run_looks_far_ahead_unless_it_may_stop_at_a_failure(
    make: Callable[..., CaseRunner], may_stop: bool, called: int
) -> None:
    runner, bot = make(concurrency=2, may_stop=may_stop), Bot()
    first, *others = loaded(asking(*"abcdefghi"))
    runner.run(first, FromFixtures(bot), others, EARLY)
    runner.finish()
    assert len(bot.asked) == called


class Skipped(BaseException):
    pass


class Ended(BaseException):
    pass


def raising(error: BaseException) -> FromFixtures:
    def target(_: Any) -> Any:
        raise error

    return FromFixtures(target)


def test_a_target_can_skip_its_case_and_end_the_run(make: Callable[..., CaseRunner]) -> None:
    runner = make(ends=(Ended,), skips=(Skipped,))
    (case,) = loaded(asking("c"))
    skipped = runner.run(case, raising(Skipped("no GPU"))).record
    assert (skipped.outcome, skipped.errors) == ("skipped", {})
    assert runner.run(case, raising(ValueError("no"))).record.outcome == "errored"
    with pytest.raises(Ended):
        runner.run(case, raising(Ended()))


def test_ctrl_c_in_a_target_ends_the_run(make: Callable[..., CaseRunner]) -> None:
    with pytest.raises(KeyboardInterrupt):
        make().run(loaded(asking("c"))[0], raising(KeyboardInterrupt()))


@dataclass(frozen=True)
class Pairs(Length):
    """Measures two cases at a time, and says in whose company."""

    batch = 2
    met: list[list[str]] = field(default_factory=list)

    def measure_many(self, cases: Sequence[Case]) -> Sequence[Observation]:
        self.met.append([each.id for each in cases])
        return [self.measure(each) for each in cases]


def test_recorded_predictions_are_measured_in_blocks_of_the_file_whatever_runs_first(
    make: Callable[..., CaseRunner],
) -> None:
    pairs = Pairs()
    suite = length_suite(
        *(Case(name, expected="x", prediction=name * 2) for name in "ab"),
        Case("asks", input="q", expected="x"),
        *(Case(name, expected="x", prediction=name * 3) for name in "cd"),
        evaluators={"length": pairs},
    )
    runner, cases = make(), {each.case.id: each for each in loaded(suite)}
    scores = [runner.run(cases[name]).scores(suite)["length"] for name in ("d", "a", "c")]
    assert (scores, pairs.met) == ([3.0, 2.0, 3.0], [["c", "d"], ["a", "b"]])


@pytest.mark.parametrize(("mode", "records"), [("auto", True), ("record", True), ("refresh", True), ("replay", False)])
def test_predictions_are_recorded_except_in_a_replay(
    make: Callable[..., CaseRunner], tmp_path: Path, mode: Any, records: bool
) -> None:
    assert make(recordings=Recordings(tmp_path / "p.jsonl", mode)).records is records
    assert make().records is False
