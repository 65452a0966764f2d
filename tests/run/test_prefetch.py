"""Prefetching: what is asked early, in which order, and what is left to the case's own turn."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_llmeval import Case
from pytest_llmeval.judge.limit import CallLimit
from pytest_llmeval.run.answering import PendingAnswer, Prefetch
from pytest_llmeval.run.job import CaseAnswer, EarlyCalls, Job, LoadedCase
from pytest_llmeval.suite.suite import Suite, SuiteKey

if TYPE_CHECKING:
    from pytest_llmeval.judge.judges import JudgeAccess

SUITE = Suite("s", Path("s.eval.yaml"), {}, ())
EARLY = EarlyCalls(target=True, judge=True)


@dataclass
class Answers:
    """Answers that note where they were asked for.

    Attributes:
        known: Cases that can be answered at once.
        predicted: Cases that need no target.
        log: What happened.
        limit: On calls in flight, which it counts.
        submitted: How many answers were asked for at a time.
    """

    known: set[str] = field(default_factory=set)
    predicted: set[str] = field(default_factory=set)
    log: list[str] = field(default_factory=list)
    limit: CallLimit = field(default_factory=lambda: CallLimit(1))
    submitted: list[int] = field(default_factory=list)

    @property
    def background(self) -> "Answers":
        return self

    def at_once(self, job: Job) -> CaseAnswer | PendingAnswer | None:
        answer = CaseAnswer(job.case)
        if job.case.id in self.known:
            return answer
        return PendingAnswer(answer, {}) if job.case.id in self.predicted else None

    def now(self, job: Job) -> CaseAnswer:
        self.log.append(f"now {job.case.id}{job.repeat}")
        return CaseAnswer(job.case)

    def answer(self, job: Job, pending: PendingAnswer | None) -> Job:
        assert (pending is not None) == (job.case.id in self.predicted)
        return job

    def submit_all(self, work: "Sequence[tuple[Job, Future[CaseAnswer]]]") -> None:
        self.submitted.append(len(work))
        for job, result in work:
            self.log.append(f"early {job.case.id}{job.repeat}")
            result.set_result(CaseAnswer(job.case))

    def give_way(self) -> None:
        self.log.append("give way")

    def load(self) -> Any:
        self.log.append("load target")

    def open(self) -> None:
        self.log.append("open judge")


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest.fixture
def prefetch(answers: Answers) -> Prefetch:
    return Prefetch(answers, 4)  # type: ignore[arg-type]  # it answers to the same calls


def case(name: str, variant: str = "", test: str = "") -> LoadedCase:
    return LoadedCase(SUITE, Case(name), SuiteKey(str(SUITE.path), "s.eval.yaml", test, variant))


def jobs(answers: Answers, name: str, repeats: int = 1, variant: str = "", test: str = "") -> list[Job]:
    # The answers stand for the target and the judge too, and note when they are made ready.
    loaded, judge = case(name, variant, test), cast("JudgeAccess", answers)
    return [Job(loaded, each, answers, judge) for each in range(repeats)]


def test_what_may_not_be_asked_early_is_asked_in_its_turn(prefetch: Prefetch, answers: Answers) -> None:
    told = prefetch.take(jobs(answers, "a", 2), [], EarlyCalls())
    assert [each.case.id for each in told] == ["a", "a"]
    assert answers.log == ["now a0", "now a1"]


def test_the_case_itself_goes_first_then_those_to_come_and_nothing_is_asked_twice(
    prefetch: Prefetch, answers: Answers
) -> None:
    following = [jobs(answers, name, 2) for name in "bc"]
    prefetch.take(jobs(answers, "a", 2), following, EARLY)
    asked = [line for line in answers.log if line.startswith("early")]
    assert asked == ["early a0", "early a1", "early b0", "early b1", "early c0", "early c1"]
    assert answers.log[:2] == ["load target", "open judge"]
    assert answers.submitted == [6]
    assert [prefetch.considered(case(name)) for name in "abcd"] == [False, True, True, False]
    assert [each.case.id for each in prefetch.take(jobs(answers, "b", 2), [], EARLY)] == ["b", "b"]
    assert len([line for line in answers.log if line.startswith("early")]) == 6
    assert not prefetch.considered(case("b"))


def test_an_answer_is_given_out_once(prefetch: Prefetch, answers: Answers) -> None:
    prefetch.take(jobs(answers, "a"), [jobs(answers, "b")], EARLY)
    prefetch.take(jobs(answers, "b"), [], EARLY)
    prefetch.take(jobs(answers, "b"), [], EARLY)  # a case that is run again is asked again
    assert answers.log.count("early b0") == 2


def test_a_judge_may_be_asked_early_where_a_target_may_not(prefetch: Prefetch, answers: Answers) -> None:
    answers.predicted = {"b", "c"}
    following = [jobs(answers, name) for name in ("b", "x", "c")]
    prefetch.take(jobs(answers, "a"), following, EarlyCalls(target=False, judge=True))
    assert answers.log == ["open judge", "open judge", "early b0", "early c0", "now a0"]
    assert prefetch.considered(case("x"))  # so that it is not considered again and again
    prefetch.take(jobs(answers, "x"), [], EarlyCalls(target=False, judge=True))
    assert answers.log[-1] == "now x0"


def test_what_is_known_is_neither_prepared_nor_asked(prefetch: Prefetch, answers: Answers) -> None:
    answers.known = {"a", "b"}
    told = prefetch.take(jobs(answers, "a"), [jobs(answers, "b")], EARLY)
    assert [each.case.id for each in told + prefetch.take(jobs(answers, "b"), [], EARLY)] == ["a", "b"]
    assert answers.log == []


def test_what_was_asked_early_for_an_item_of_the_suite_is_no_answer_for_a_python_test(
    prefetch: Prefetch, answers: Answers
) -> None:
    prefetch.take(jobs(answers, "a"), [jobs(answers, "b")], EARLY)
    prefetch.take(jobs(answers, "b", test="test_it"), [], EarlyCalls())
    assert answers.log[-1] == "now b0"


def test_variants_of_a_target_are_considered_one_by_one(prefetch: Prefetch, answers: Answers) -> None:
    prefetch.take(jobs(answers, "a"), [jobs(answers, "b", variant="gpt")], EARLY)
    assert (prefetch.considered(case("b", "gpt")), prefetch.considered(case("b"))) == (True, False)
    prefetch.take(jobs(answers, "b"), [], EARLY)
    assert answers.log.count("early b0") == 2


def test_a_case_lets_calls_that_are_under_way_go_on_before_it_is_scored(prefetch: Prefetch, answers: Answers) -> None:
    prefetch.take(jobs(answers, "a"), [], EARLY)
    assert "give way" not in answers.log
    answers.limit.activity.in_flight = 1
    prefetch.take(jobs(answers, "b"), [], EARLY)
    assert answers.log[-2:] == ["early b0", "give way"]


def test_what_a_user_interrupts_is_under_way_as_far_as_it_got(prefetch: Prefetch, answers: Answers) -> None:
    def following() -> Iterator[list[Job]]:
        yield jobs(answers, "b")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prefetch.take(jobs(answers, "a"), following(), EARLY)
    assert answers.submitted == [2]
    prefetch.finish()  # would wait for ever for what was never begun


def test_cases_to_come_are_looked_at_in_portions_and_at_once_by_a_case_that_was_not_foreseen(answers: Answers) -> None:
    prefetch = Prefetch(answers, 32)  # type: ignore[arg-type]  # it answers to the same calls
    prefetch.take(jobs(answers, "0"), [jobs(answers, str(number)) for number in range(1, 6)], EARLY)
    looks = []
    for number in (1, 2, 3, 9, 4):
        looks.append(prefetch.looks_ahead(case(str(number))))
        prefetch.take(jobs(answers, str(number)), [], EARLY)
    assert looks == [False, False, True, True, False]
