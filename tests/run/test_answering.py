"""What a case needs from outside: predictions and verdicts, at once where they are known, else asked for."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from echo_targets import Echo, echoed
from llm_server import PATIENCE
from stored_judgements import question

from pytest_llmeval import Case, LlmevalError, Metric, Observation, PredictionError, Sums
from pytest_llmeval.core.errors import BudgetError, JudgeError
from pytest_llmeval.core.observation import FloatArray
from pytest_llmeval.judge.asking import JudgePanel, Juror
from pytest_llmeval.judge.budget import Budget
from pytest_llmeval.judge.contract import JudgeReply, JudgeRequest, Question, Verdict
from pytest_llmeval.judge.judged_evaluator import JudgedEvaluator
from pytest_llmeval.judge.judges import JudgeAccess, SuiteJudges
from pytest_llmeval.judge.limit import CallLimit
from pytest_llmeval.judge.options import JudgeMode, JudgeOptions
from pytest_llmeval.judge.recordings import Judgements
from pytest_llmeval.judge.service import JudgeService
from pytest_llmeval.judge.spec import JudgeSpec
from pytest_llmeval.judge.store.run_store import RunStore
from pytest_llmeval.judge.store.working import WorkingCache
from pytest_llmeval.run.answering import Answering, PendingAnswer, Prefetch
from pytest_llmeval.run.job import CaseAnswer, EarlyCalls, GivenTarget, Job, LoadedCase
from pytest_llmeval.run.sharing import OrphanedError
from pytest_llmeval.services.background import Background
from pytest_llmeval.suite.suite import Suite, SuiteKey
from pytest_llmeval.targets.contract import BatchTarget
from pytest_llmeval.targets.python import Recordings, recording
from pytest_llmeval.targets.spec import TargetSpec


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
        raise NotImplementedError

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        raise NotImplementedError


@dataclass
class World:
    """A background, a judge that answers 0.5, and a target that says the input in capitals."""

    path: Path
    mode: JudgeMode = "auto"
    budget: Budget = field(default_factory=Budget)
    recordings: Recordings | None = None
    suite: Suite = field(default_factory=lambda: Suite("s", Path("s.eval.yaml"), {"asks": Asks()}, ()))
    prompts: list[str] = field(default_factory=list)
    calls: list[tuple[Any, str]] = field(default_factory=list)
    fails: BaseException | None = None
    concurrency: int = 4
    owner: str = "me"

    def __post_init__(self) -> None:
        self.background = Background()
        self.working = WorkingCache(self.path)
        self.cache = self.working.open()
        self.limit = CallLimit(self.concurrency)
        store = RunStore(self.mode, self.limit, self.working, "run", self.owner, self.budget)
        service = JudgeService(self.limit, store)
        self.answering = Answering(self.background, self.limit, self.recordings, service, store)

    async def complete(self, request: JudgeRequest) -> JudgeReply:
        self.prompts.append(str(request))
        await asyncio.sleep(0)
        return JudgeReply("0.5")

    def target(self, value: Any) -> Any:
        self.calls.append((value, threading.current_thread().name))
        if self.fails is not None:
            raise self.fails
        return value.upper()

    def job(self, case: Case, *, judged: bool = True, target: Any = None, repeat: int = 0, shared: bool = False) -> Job:
        loaded = LoadedCase(self.suite, case, SuiteKey(str(self.suite.path), "s.eval.yaml"))
        return Job(loaded, repeat, GivenTarget(target or self.target), self.access() if judged else None, shared)

    def access(self) -> JudgeAccess:
        # Connected already, and so never opened through these judges, which would ask nobody anyway.
        judges = SuiteJudges(JudgeOptions(mode="off"), self.background)
        juror = Juror("openai:m", {}, Judgements(Path("s.jsonl")), self)
        return JudgeAccess(JudgePanel.of_one(juror), judges, self.suite.path, JudgeSpec())

    def later(self, job: Job) -> CaseAnswer:
        return self.background.submit(self.answering.answer(job)).result(PATIENCE)

    def close(self) -> None:
        self.background.close()
        self.cache.close()


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., World]]:
    made: list[World] = []

    def world(**more: Any) -> World:
        made.append(World(tmp_path / "cache.sqlite3", **more))
        return made[-1]

    yield world
    for each in made:
        each.close()


ASKED = Case("c", input="paris", expected=2)
KNOWN = Case("k", input="paris", expected=2, prediction="Lyon")


def test_both_ways_of_asking_give_the_same_answer(make: Callable[..., World]) -> None:
    for way in ("now", "later"):
        world = make()
        job = world.job(replace(ASKED, id=way, input=way))
        answer = world.answering.now(job) if way == "now" else world.later(job)
        assert (answer.case.prediction, answer.error) == (way.upper(), None)
        assert [each.score for each in answer.verdicts["asks"][0] if isinstance(each, Verdict)] == [0.5, 0.5]
        assert (len(answer.calls), len(answer.entries), answer.case.parts.get("latency_s", -1) >= 0) == (2, 2, True)
        assert {entry.case for entry in answer.entries} == {way}


def test_in_turn_the_target_runs_in_the_calling_thread_and_in_advance_in_one_of_its_own(
    make: Callable[..., World],
) -> None:
    world = make()
    world.answering.now(world.job(ASKED))
    world.later(world.job(ASKED))
    assert [thread for _, thread in world.calls] == [threading.current_thread().name, "llmeval-target"]


def test_what_is_known_is_answered_at_once_and_nobody_is_asked(make: Callable[..., World]) -> None:
    world = make()
    assert world.answering.at_once(world.job(ASKED)) is None
    assert isinstance(world.answering.at_once(world.job(KNOWN)), PendingAnswer)  # its verdicts are not known yet
    assert (world.calls, world.prompts) == ([], [])
    first = world.answering.now(world.job(KNOWN))
    again = world.answering.at_once(world.job(KNOWN))
    assert isinstance(again, CaseAnswer)
    assert again.verdicts == first.verdicts
    assert ("latency_s" in again.case.parts, len(world.prompts)) == (False, 2)
    plain = world.answering.at_once(world.job(KNOWN, judged=False))
    assert isinstance(plain, CaseAnswer)
    assert plain.verdicts == {}


def test_recorded_predictions_are_found_by_repeat(make: Callable[..., World], tmp_path: Path) -> None:
    recordings = Recordings(tmp_path / "p.jsonl", "auto")
    for repeat, word in enumerate(["one", "two"]):
        row = recording("s.eval.yaml", "", replace(ASKED, prediction=word), repeat)
        recordings._rows["s.eval.yaml", "", "c", repeat] = row
    world = make(recordings=recordings)
    jobs = [world.job(ASKED, repeat=repeat) for repeat in range(3)]
    assert [world.answering.now(job).case.prediction for job in jobs] == ["one", "two", "PARIS"]
    assert [world.answering.at_once(job) is None for job in jobs] == [False, False, True]
    replaying = make(recordings=Recordings(tmp_path / "p.jsonl", "replay"))
    told = replaying.answering.at_once(replaying.job(ASKED))
    assert isinstance(told, CaseAnswer)
    assert isinstance(told.error, PredictionError)


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


class Walked(tuple[Case, ...]):
    """Cases that count how often somebody goes through all of them."""

    walks = 0

    def __iter__(self) -> Iterator[Case]:
        Walked.walks += 1
        return super().__iter__()


def test_batches_are_cut_once_for_all_cases_of_a_suite(
    make: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Walked, "walks", 0)
    cases = Walked([Case(word, input=word) for word in "abcdefg"])
    world = make(suite=Suite("s", Path("s.eval.yaml"), {}, cases))
    target = Pairs()
    jobs = [world.job(cases[place], judged=False, target=target) for place in range(7)]
    assert [world.later(job).case.prediction for job in jobs] == list("ABCDEFG")
    assert target.asked == [["a", "b"], ["c", "d"], ["e", "f"], ["g"]]
    assert Walked.walks == 1


def test_what_answers_say_that_they_cost_counts_against_the_budget(make: Callable[..., World]) -> None:
    world = make(budget=Budget(usd=0.5))
    costly = {"answer": "x", "usage": {"cost_usd": 0.3, "input_tokens": 1, "output_tokens": 1}}
    jobs = [world.job(replace(ASKED, id=name), judged=False, target=lambda _: costly) for name in "abc"]
    first, second, third = world.answering.now(jobs[0]), world.later(jobs[1]), world.later(jobs[2])
    assert (first.error, second.error) == (None, None)
    assert str(third.error) == "the budget of 0.50 USD is spent"
    assert str(world.answering.now(jobs[2]).error) == "the budget of 0.50 USD is spent"


@pytest.mark.parametrize("target", [echoed, Echo()])
def test_a_conversation_is_led_in_every_way_of_asking_and_recorded_whole(
    make: Callable[..., World], tmp_path: Path, target: Any
) -> None:
    script = [{"role": "user", "content": word} for word in "ab"]
    case = Case("talk", input=script, conversation=True)
    other = Case("other", input="x")
    world = make(suite=Suite("s", Path("s.eval.yaml"), {}, (case, other)))
    for way in (world.answering.now, world.later):
        answer = way(world.job(case, judged=False, target=target))
        assert answer.error is None
        told = answer.case.prediction
        assert [each["content"] for each in told["messages"]] == ["a", "1 a", "b", "3 b"]
        assert (told["turns"], told["stop"], told["answer"]) == (2, "script", "3 b")
        file = tmp_path / "p.jsonl"
        Recordings.open(file, "auto").update([recording("s.eval.yaml", "", answer.case)])
        replayed = make(recordings=Recordings.open(file, "replay"))
        again = replayed.answering.at_once(replayed.job(case, judged=False))
        assert again is not None
        assert (again.case.prediction, dict(again.case.parts)) == (told, dict(answer.case.parts))


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3)])
def test_what_a_target_raises_is_in_the_answer_and_no_judge_is_asked(
    make: Callable[..., World], error: BaseException
) -> None:
    world = make(fails=error)
    for answer in (world.answering.now(world.job(ASKED)), world.later(world.job(ASKED))):
        assert answer.error is error or isinstance(answer.error, PredictionError)
        assert (answer.verdicts, answer.case.origin) == ({}, None)
    assert world.prompts == []


@dataclass(frozen=True)
class Twice(Asks):
    """Asks one question, and another one when it has heard what came of it."""

    rounds: list[str] = field(default_factory=list)

    def questions(self, case: Case) -> Sequence[Question]:
        self.rounds.append("first")
        return [question(str(case.prediction))]

    def follow_up(self, case: Case, verdicts: Sequence[Verdict | JudgeError]) -> Sequence[Question]:
        self.rounds.append(f"after {len(verdicts)}")
        return [question(f"{case.prediction}, surely")] if len(verdicts) == 1 else []


def test_what_has_been_looked_up_is_asked_without_putting_the_questions_again(make: Callable[..., World]) -> None:
    stored, fresh, none = Twice(), Twice(), Asks()
    evaluators = {"fresh": fresh, "stored": stored, "none": none}
    world = make(suite=Suite("s", Path("s.eval.yaml"), evaluators, ()))
    job = world.job(replace(KNOWN, expected="nonsense"))
    pending = world.answering.at_once(job)
    assert isinstance(pending, PendingAnswer)
    answer = world.background.submit(world.answering.answer(job, pending)).result(PATIENCE)
    assert {label: len(views[0]) for label, views in answer.verdicts.items()} == {"fresh": 2, "stored": 2}
    assert str(answer.failed["none"]) == "no such case"
    assert fresh.rounds == stored.rounds == ["first", "after 1", "after 2"]
    assert len(world.prompts) == 2


def test_ctrl_c_in_a_target_ends_the_run(make: Callable[..., World]) -> None:
    world = make(fails=KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        world.answering.now(world.job(ASKED))


def test_an_evaluator_that_cannot_put_its_questions_costs_only_itself(make: Callable[..., World]) -> None:
    suite = Suite("s", Path("s.eval.yaml"), {"asks": Asks(), "more": Asks()}, ())
    world = make(suite=suite)
    answer = world.answering.now(world.job(replace(KNOWN, expected="nonsense")))
    assert set(answer.failed) == {"asks", "more"}
    assert str(answer.failed["asks"]) == "no such case"
    assert (answer.error, answer.verdicts) == (None, {})


def test_a_case_without_questions_needs_nobody(make: Callable[..., World]) -> None:
    world = make()
    answer = world.answering.at_once(world.job(replace(KNOWN, expected=0)))
    assert isinstance(answer, CaseAnswer)
    assert answer.verdicts == {"asks": [[]]}


def test_a_spent_budget_is_the_error_of_the_answer(make: Callable[..., World]) -> None:
    world = make(budget=Budget(calls=1))
    answer = world.later(world.job(KNOWN))
    assert isinstance(answer.error, BudgetError)
    assert sum(isinstance(each, Verdict) for each in answer.verdicts["asks"][0]) == 1
    assert (len(answer.calls), len(answer.entries)) == (1, 1)


def test_a_broken_cache_is_told_when_it_is_used_not_when_it_is_looked_at(
    make: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: str) -> None:
        raise LlmevalError("no disk")

    world = make()
    monkeypatch.setattr(world.cache, "get", broken)
    assert isinstance(world.answering.at_once(world.job(KNOWN)), PendingAnswer)
    answer = world.later(world.job(KNOWN))
    assert [str(each) for each in answer.verdicts["asks"][0]] == ["no disk", "no disk"]


def test_processes_that_share_ask_a_target_once(make: Callable[..., World]) -> None:
    world, other = make(), make(owner="other")

    job, same = world.job(ASKED, shared=True), other.job(ASKED, shared=True)
    waiting = [
        world.background.submit(world.answering.answer(job)),
        other.background.submit(other.answering.answer(same)),
    ]
    answers = [each.result(PATIENCE) for each in waiting]
    assert [each.case.prediction for each in answers] == ["PARIS", "PARIS"]
    assert len(world.calls) + len(other.calls) == 1
    assert len(world.prompts) + len(other.prompts) == 2
    assert len({each.case.parts["latency_s"] for each in answers}) == 1
    # Another input, another repeat and another case are other answers.
    world.later(world.job(replace(ASKED, input="rome"), shared=True))
    world.later(world.job(ASKED, shared=True, repeat=1))
    assert len(world.calls) + len(other.calls) == 3


@pytest.mark.parametrize(
    ("fails", "calls"), [(PredictionError("took longer than 2 s"), 1), (ConnectionError("dropped"), 2)]
)
def test_processes_share_why_there_is_no_prediction_but_no_errors_of_the_target(
    make: Callable[..., World], fails: Exception, calls: int
) -> None:
    ahead, own = make(fails=fails), make(fails=fails, owner="own")

    early = ahead.later(ahead.job(ASKED, shared=True))
    answer = own.later(own.job(ASKED, shared=True))
    assert [repr(each.error) for each in (early, answer)] == [repr(fails), repr(fails)]
    assert len(ahead.calls) + len(own.calls) == calls
    own.later(own.job(ASKED, shared=True))  # the case runs again
    assert len(ahead.calls) + len(own.calls) == calls + 1


def test_what_a_process_died_of_is_asked_again_when_its_turn_comes(
    make: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    dead, world = make(fails=ConnectionError("killed"), owner="dead"), make()
    monkeypatch.setattr(dead.cache, "release", lambda *_: None)
    dead.later(dead.job(ASKED, shared=True))
    world.cache.end("dead")
    job = world.job(ASKED, shared=True)
    early = world.later(job)
    assert isinstance(early.error, OrphanedError)
    assert world.calls == []
    ahead = Prefetch(world.answering, 1)
    (answer,) = ahead.take([job], [], EarlyCalls(target=True, judge=True))
    assert (answer.error, answer.case.prediction, len(world.calls)) == (None, "PARIS", 1)


@pytest.mark.parametrize("way", ["now", "later"])
def test_a_target_is_one_of_the_calls_in_flight_together_with_what_it_asks_a_judge(
    make: Callable[..., World], way: str
) -> None:
    world = make(concurrency=1)
    other = world.job(replace(KNOWN, id="other"))
    seen: list[Any] = []

    def target(value: Any) -> Any:
        seen.append(world.limit._in_use)
        seen.append(len(world.later(other).verdicts["asks"][0]))
        return value

    job = world.job(ASKED, judged=False, target=target)
    answer = world.answering.now(job) if way == "now" else world.later(job)
    assert (answer.error, answer.case.prediction) == (None, "paris")
    assert (seen, world.limit._in_use) == ([1, 2], 0)


def test_a_suite_may_allow_fewer_calls_of_its_target_than_the_run(make: Callable[..., World]) -> None:
    suite = Suite("s", Path("s.eval.yaml"), {"asks": Asks()}, (), target=TargetSpec("bot:answer", concurrency=2))
    world = make(suite=suite)
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

    jobs = [world.job(replace(ASKED, id=str(number)), target=target, judged=False) for number in range(8)]
    waiting = [world.background.submit(world.answering.answer(job)) for job in jobs]
    assert [each.result(PATIENCE).error for each in waiting] == [None] * 8
    assert counts["most"] == 2


def test_what_a_target_returns_must_be_json(make: Callable[..., World]) -> None:
    world = make()
    job = world.job(ASKED, target=lambda _: {1, 2})
    for answer in (world.answering.now(job), world.later(job)):
        assert str(answer.error).startswith("the target returned set, expected text or JSON data")
