"""What a case needs from outside: predictions and verdicts, from what is known, else from targets and judges."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from builders import key_of, question
from project import Echo, echoed
from servers import PATIENCE

from pytest_llmeval import Case, Evaluator, LlmevalError, Metric, Observation, PredictionError, Sums
from pytest_llmeval.core import BudgetError, FloatArray, JudgeError
from pytest_llmeval.judges import (
    Budget,
    CachePlace,
    JudgedEvaluator,
    JudgeMode,
    JudgeOptions,
    JudgeReply,
    JudgeRequest,
    Question,
    Verdict,
)
from pytest_llmeval.numbers import Repeats
from pytest_llmeval.run import CaseRunner, EarlyCalls, Execution, FromFixtures, LoadedCase
from pytest_llmeval.suites import LoadedSuite
from pytest_llmeval.targets import BatchTarget, Recordings, TargetSpec

NOW, EARLY = EarlyCalls(), EarlyCalls(target=True, judge=True)
WAYS = (NOW, EARLY)


@dataclass(frozen=True)
class Asks(JudgedEvaluator):
    """Asks as many questions as the expected answer says."""

    name = "asks"

    def describe(self) -> Sequence[Metric]:
        return [Metric("said")]

    def questions(self, case: Case) -> Sequence[Question]:
        if case.expected == "nonsense":
            raise ValueError("no such case")
        return [question(f"{case.prediction}{number}") for number in range(case.expected)]

    def measure_judged(self, case: Case, verdicts: Sequence[Verdict | JudgeError]) -> Observation:
        del case
        for each in verdicts:
            if isinstance(each, JudgeError):
                raise each
        return Observation({"said": sum(each.score for each in verdicts if isinstance(each, Verdict)), "n": 1})

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        return {"said": sums["said"] / sums["n"]}


@dataclass
class World:
    """A process of a run, a judge that answers 0.5, and a target that says the input in capitals."""

    path: Path
    mode: JudgeMode = "auto"
    budget: Budget = field(default_factory=Budget)
    recordings: Recordings | None = None
    concurrency: int = 4
    worker: str = ""
    fails: BaseException | None = None
    prompts: list[str] = field(default_factory=list)
    calls: list[tuple[Any, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        options = JudgeOptions(
            self.mode,
            concurrency=self.concurrency,
            budget=self.budget,
            cache=CachePlace(self.path),
            run="run",
            worker=self.worker,
        )
        self.runner = CaseRunner(options, self.recordings)

    def client(self) -> Any:
        return self.complete

    async def complete(self, request: JudgeRequest) -> JudgeReply:
        self.prompts.append(str(request))
        await asyncio.sleep(0)
        return JudgeReply("0.5")

    def target(self, value: Any) -> Any:
        self.calls.append((value, threading.current_thread().name))
        if self.fails is not None:
            raise self.fails
        return value.upper()

    def run(
        self, case: Case, early: EarlyCalls = EARLY, answers: Any = None, following: Sequence[Case] = (), **suite: Any
    ) -> Execution:
        """Run a case of a suite, before others of it."""
        content = {"evaluators": {"asks": Asks()}, "cases": (case, *following), **suite}
        made = LoadedSuite("s", Path("s.eval.yaml"), **content)
        first, *others = [LoadedCase(made, each, key_of(made)) for each in (case, *following)]
        return self.runner.run(first, FromFixtures(answers or self.target, self.client), others, early)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., World]]:
    made: list[World] = []

    def world(**more: Any) -> World:
        made.append(World(tmp_path / "cache.sqlite3", **more))
        return made[-1]

    yield world
    for each in made:
        each.runner.close(whole_run=False)


ASKED = Case("c", input="paris", expected=2)
KNOWN = Case("k", input="paris", expected=2, prediction="Lyon")
UNJUDGED: dict[str, Any] = {"evaluators": {}}


def said(execution: Execution) -> float:
    return float(execution.record.observations["asks"].counts["said"])


@pytest.mark.parametrize("early", WAYS)
def test_both_ways_of_asking_give_the_same_answer(make: Callable[..., World], early: EarlyCalls) -> None:
    execution = make().run(ASKED, early)
    assert (execution.case.prediction, execution.error, said(execution)) == ("PARIS", None, 1.0)
    assert (len(execution.record.calls), len(execution.entries)) == (2, 2)
    assert {entry.case for entry in execution.entries} == {"c"}
    assert len(execution.record.target_seconds) == 1


def test_in_turn_the_target_runs_in_the_calling_thread_and_in_advance_in_one_of_its_own(
    make: Callable[..., World],
) -> None:
    world = make()
    for early in WAYS:
        world.run(ASKED, early)
    assert [thread for _, thread in world.calls] == [threading.current_thread().name, "llmeval-target"]


@pytest.mark.parametrize("early", WAYS)
def test_what_is_known_is_answered_and_nobody_is_asked(make: Callable[..., World], early: EarlyCalls) -> None:
    first, again = make(), make()
    assert said(first.run(KNOWN, early)) == 1.0
    execution = again.run(KNOWN, early)
    assert (said(execution), execution.record.target_seconds) == (1.0, [])
    assert (len(first.prompts), first.calls, again.prompts, again.calls) == (2, [], [], [])


def test_recorded_predictions_are_found_by_repeat(make: Callable[..., World], tmp_path: Path) -> None:
    file = tmp_path / "p.jsonl"
    rows = [
        Recordings.row("s.eval.yaml", "", replace(ASKED, prediction=word), at) for at, word in enumerate(["one", "two"])
    ]
    Recordings.open(file, "auto").update(rows)
    world = make(recordings=Recordings.open(file, "auto"))
    answered = world.run(ASKED, NOW, repeats=Repeats(3)).answered
    assert ([each.prediction for each in answered], len(world.calls)) == (["one", "two", "PARIS"], 1)
    replaying = make(recordings=Recordings.open(file, "replay"))
    missing = replaying.run(replace(ASKED, id="other"))
    assert isinstance(missing.error, PredictionError)
    assert replaying.calls == []


class Pairs(BatchTarget):
    """Answers two inputs at a time with their capitals."""

    batch = 2

    def __init__(self) -> None:
        self.asked: list[list[Any]] = []

    async def answer(self, inputs: Sequence[Any]) -> list[Any]:
        self.asked.append(list(inputs))
        return [each.upper() for each in inputs]

    async def aclose(self) -> None:
        """There is nothing to let go of."""


@pytest.mark.parametrize("early", WAYS)
def test_cases_are_asked_in_the_batches_of_their_file(make: Callable[..., World], early: EarlyCalls) -> None:
    world, target = make(), Pairs()
    cases = [Case(word, input=word) for word in "abcdefg"]
    for place, case in enumerate(cases):
        suite = LoadedSuite("s", Path("s.eval.yaml"), evaluators={}, cases=tuple(cases))
        loaded = [LoadedCase(suite, each, key_of(suite)) for each in cases]
        execution = world.runner.run(loaded[place], FromFixtures(target), loaded[place + 1 :], early)
        assert execution.case.prediction == case.input.upper()
    assert target.asked == [["a", "b"], ["c", "d"], ["e", "f"], ["g"]]


def test_what_answers_say_that_they_cost_counts_against_the_budget(make: Callable[..., World]) -> None:
    world = make(budget=Budget(usd=0.5))
    costly = {"answer": "x", "usage": {"cost_usd": 0.3, "input_tokens": 1, "output_tokens": 1}}
    ways = {"a": NOW, "b": EARLY, "c": EARLY, "d": NOW}
    errors = [world.run(replace(ASKED, id=name), way, lambda _: costly, **UNJUDGED).error for name, way in ways.items()]
    assert [None if each is None else str(each) for each in errors] == [
        None,
        None,
        "the budget of 0.50 USD is spent",
        "the budget of 0.50 USD is spent",
    ]


@pytest.mark.parametrize("early", WAYS)
@pytest.mark.parametrize("target", [echoed, Echo()])
def test_a_conversation_is_led_in_every_way_of_asking_and_recorded_whole(
    make: Callable[..., World], tmp_path: Path, target: Any, early: EarlyCalls
) -> None:
    case = Case("talk", input=[{"role": "user", "content": word} for word in "ab"], conversation=True)
    answered = make().run(case, early, target, **UNJUDGED).case
    talk: Any = answered.prediction
    assert [each["content"] for each in talk["messages"]] == ["a", "1 a", "b", "3 b"]
    assert (talk["turns"], talk["stop"], talk["answer"]) == (2, "script", "3 b")
    file = tmp_path / "p.jsonl"
    Recordings.open(file, "auto").update([Recordings.row("s.eval.yaml", "", answered)])
    replayed = make(recordings=Recordings.open(file, "replay")).run(case, early, **UNJUDGED).case
    assert (replayed.prediction, dict(replayed.parts)) == (talk, dict(answered.parts))


@pytest.mark.parametrize("early", WAYS)
@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3), StopIteration("enough")])
def test_what_a_target_raises_costs_its_case_and_no_judge_is_asked(
    make: Callable[..., World], error: BaseException, early: EarlyCalls
) -> None:
    world = make(fails=error)
    execution = world.run(ASKED, early)
    assert execution.error is error or isinstance(execution.error, PredictionError | RuntimeError)
    assert (execution.record.outcome, world.prompts) == ("errored", [])
    world.fails = None
    assert world.run(replace(ASKED, id="next"), early).error is None


@pytest.mark.parametrize("early", WAYS)
def test_ctrl_c_in_a_target_ends_the_run_and_no_repeat_follows(make: Callable[..., World], early: EarlyCalls) -> None:
    world = make(fails=KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        world.run(ASKED, early, repeats=Repeats(2))
    assert len(world.calls) == (1 if early == NOW else 2)


@dataclass(frozen=True)
class Twice(Asks):
    """Asks one question, and another one once the first has its verdict."""

    rounds: list[str] = field(default_factory=list)

    def questions(self, case: Case) -> Sequence[Question]:
        self.rounds.append("first")
        return [question(str(case.prediction))]

    def follow_up(self, case: Case, verdicts: Sequence[Verdict | JudgeError]) -> Sequence[Question]:
        self.rounds.append(f"after {len(verdicts)}")
        return [question(f"{case.prediction}, surely")] if len(verdicts) == 1 else []


@pytest.mark.parametrize("early", WAYS)
def test_questions_are_put_once_and_those_that_several_ask_are_one_call(
    make: Callable[..., World], early: EarlyCalls
) -> None:
    stored, fresh = Twice(), Twice()
    world = make()
    evaluators: dict[str, Evaluator] = {"fresh": fresh, "stored": stored, "none": Asks()}
    execution = world.run(replace(KNOWN, expected="nonsense"), early, evaluators=evaluators)
    counts = {label: each.counts["said"] for label, each in execution.record.observations.items()}
    assert counts == {"fresh": 1.0, "stored": 1.0}
    assert execution.record.errors["none"].startswith("ValueError: no such case")
    assert len(world.prompts) == 2
    assert fresh.rounds[-3:] == stored.rounds[-3:] == ["first", "after 1", "after 2"]


def test_an_evaluator_that_cannot_put_its_questions_costs_only_itself(make: Callable[..., World]) -> None:
    evaluators = {"asks": Asks(), "more": Twice()}
    execution = make().run(replace(KNOWN, expected="nonsense"), NOW, evaluators=evaluators)
    assert (set(execution.record.errors), set(execution.record.observations)) == ({"asks"}, {"more"})


def test_a_case_without_questions_needs_nobody(make: Callable[..., World]) -> None:
    world = make()
    assert said(world.run(replace(KNOWN, expected=0))) == 0.0
    assert (world.prompts, world.path.exists()) == ([], False)


def test_a_spent_budget_is_the_error_of_the_answer(make: Callable[..., World]) -> None:
    execution = make(budget=Budget(calls=1)).run(KNOWN)
    assert isinstance(execution.error, BudgetError)
    assert (execution.record.outcome, len(execution.record.calls), len(execution.entries)) == ("not_run", 1, 1)


@pytest.mark.parametrize("early", WAYS)
def test_a_broken_cache_is_an_error_of_the_verdicts(
    make: Callable[..., World], monkeypatch: pytest.MonkeyPatch, early: EarlyCalls
) -> None:
    def broken(_: str) -> None:
        raise LlmevalError("no disk")

    world = make()
    monkeypatch.setattr(world.runner.judges.store.replies, "get", broken)
    assert "no disk" in world.run(KNOWN, early).record.errors["asks"]


def test_processes_that_share_ask_a_target_once(make: Callable[..., World]) -> None:
    worlds = [make(worker="gw0"), make(worker="gw1")]
    with ThreadPoolExecutor(2) as threads:
        answers = list(threads.map(lambda world: world.run(ASKED), worlds))
    assert [each.case.prediction for each in answers] == ["PARIS", "PARIS"]
    assert len({tuple(each.record.target_seconds) for each in answers}) == 1

    def asked() -> tuple[int, int]:
        return sum(len(each.calls) for each in worlds), sum(len(each.prompts) for each in worlds)

    assert asked() == (1, 2)
    worlds[0].run(replace(ASKED, input="rome"))  # another input
    worlds[0].run(ASKED, repeats=Repeats(2))  # again, and another repeat
    assert asked()[0] == 4


@pytest.mark.parametrize(
    ("fails", "calls"), [(PredictionError("took longer than 2 s"), 1), (ConnectionError("dropped"), 2)]
)
def test_processes_share_why_there_is_no_prediction_but_no_errors_of_the_target(
    make: Callable[..., World], fails: Exception, calls: int
) -> None:
    worlds = [make(fails=fails, worker="gw0"), make(fails=fails, worker="gw1")]
    assert [repr(each.run(ASKED).error) for each in worlds] == [repr(fails), repr(fails)]
    assert sum(len(each.calls) for each in worlds) == calls
    worlds[1].run(ASKED)  # the case runs again
    assert sum(len(each.calls) for each in worlds) == calls + 1


def test_what_a_process_died_of_is_asked_again_when_its_turn_comes(
    make: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    dead, world = make(fails=ConnectionError("killed"), worker="gw0"), make(worker="gw1")
    monkeypatch.setattr(dead.runner.judges.store.coordination, "release", lambda *_: None)
    dead.run(ASKED)
    world.runner.judges.store.coordination.end(dead.runner.judges.owner)
    other = Case("other", input="x", expected=0)
    world.run(other, following=[ASKED])
    world.runner.finish()
    assert [value for value, _ in world.calls] == ["x"]
    execution = world.run(ASKED)
    assert (execution.error, execution.case.prediction) == (None, "PARIS")
    assert world.calls[1] == ("paris", threading.current_thread().name)


@pytest.mark.parametrize(("early", "at_once"), [(NOW, 1), (EARLY, 2)])
def test_a_target_is_one_of_the_calls_in_flight_together_with_what_it_asks_a_judge(
    make: Callable[..., World], early: EarlyCalls, at_once: int
) -> None:
    world = make(concurrency=at_once)
    full, seen = threading.Barrier(at_once), []

    def target(value: Any) -> Any:
        full.wait(PATIENCE)  # no call is left for the judge but this one
        seen.append(said(world.run(replace(KNOWN, id=f"about {value}", prediction=value), NOW)))
        return value

    cases = [replace(ASKED, id=name, input=name) for name in "ab"[:at_once]]
    execution = world.run(cases[0], early, target, cases[1:], **UNJUDGED)
    assert (execution.error, execution.case.prediction) == (None, "a")
    world.runner.finish()
    assert seen == [1.0] * at_once


def test_a_suite_may_allow_fewer_calls_of_its_target_than_the_run(make: Callable[..., World]) -> None:
    lock = threading.Lock()
    counts = {"now": 0, "most": 0}
    crowd = threading.Barrier(2)

    def target(value: Any) -> Any:
        with lock:
            counts["now"] += 1
            counts["most"] = max(counts["most"], counts["now"])
        crowd.wait(PATIENCE)
        with lock:
            counts["now"] -= 1
        return value

    world = make()
    first, *others = [replace(ASKED, id=str(number)) for number in range(8)]
    spec = TargetSpec("bot:answer", concurrency=2)
    assert world.run(first, EARLY, target, others, target=spec, evaluators={}).error is None
    world.runner.finish()
    assert counts == {"now": 0, "most": 2}


@pytest.mark.parametrize("early", WAYS)
def test_what_a_target_returns_must_be_a_value(make: Callable[..., World], early: EarlyCalls) -> None:
    execution = make().run(ASKED, early, lambda _: len)
    assert str(execution.error).startswith("the target returned builtin_function_or_method, expected a value")
