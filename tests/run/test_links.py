"""Links of the chain that answers a case, each alone with a next link that the test sees."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from builders import Length, key_of, length_suite
from msgspec import structs
from pictures import in_memory, png
from project import Echo

from pytest_llmeval import Case, Evaluator, PredictionError
from pytest_llmeval.core import BudgetError
from pytest_llmeval.evaluators import CheckKind, CheckReader, Checks, TextEvaluator
from pytest_llmeval.evaluators.checks._reading import Unlocated
from pytest_llmeval.judges import Budget, JudgeOptions, SuiteJudges
from pytest_llmeval.run import Answers, Job, LoadedCase, Next
from pytest_llmeval.run import _links as links
from pytest_llmeval.run._answering import Opponents, chain
from pytest_llmeval.run._conversation import Conversations
from pytest_llmeval.run._job import Link, answer_to
from pytest_llmeval.run._links import (
    AskTarget,
    Batched,
    Budgeted,
    InWorld,
    Limited,
    OrphanedError,
    Recorded,
    Recording,
    Shared,
    traced,
)
from pytest_llmeval.services import Background, ThisThread
from pytest_llmeval.suites import ConversationSpec, LoadedSuite, Registry
from pytest_llmeval.targets import TargetSpec

PICTURE = png(2, 2)
CASES = [Case(name, input=name, expected="") for name in "abcde"]
SCRIPT = [{"role": "user", "content": "hello"}, {"role": "user", "content": "bye"}]
TALK = Case("talk", input=SCRIPT, expected="", conversation=True)


def answer_of(value: Any) -> str:
    return str(value).upper()


def job_for(case: Case = CASES[0], target: Any = answer_of, suite: LoadedSuite | None = None, **more: Any) -> Job:
    suite = suite or length_suite(*CASES)
    return Job(LoadedCase(suite, case, key_of(suite)), 0, lambda: target, **more)


@dataclass
class Following:
    """A next link that keeps its jobs, and answers by a function when it may."""

    reply: Callable[[Case], Case | PredictionError] = lambda case: case.answered(answer_of(case.id))
    fails: BaseException | None = None
    jobs: list[Job] = field(default_factory=list)
    may_answer: asyncio.Event | None = None

    async def __call__(self, job: Job) -> Answers:
        self.jobs.append(job)
        if self.may_answer is not None:
            await self.may_answer.wait()
        if self.fails is not None:
            raise self.fails
        return {case.id: self.reply(case) for case in job.cases}


async def all_of(link: Link, ask: Next, *jobs: Job) -> list[Any]:
    """Return what each of several jobs gets that are asked for at the same time: a prediction or an error."""
    results = await asyncio.gather(*(link(job, ask) for job in jobs), return_exceptions=True)
    return [
        each if isinstance(each, BaseException) else predictions(each)[job.case.id]
        for job, each in zip(jobs, results, strict=True)
    ]


def predictions(answers: Answers) -> Mapping[str, Any]:
    return {name: each if isinstance(each, PredictionError) else each.prediction for name, each in answers.items()}


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def test_links_are_asked_in_their_order_up_to_the_one_that_answers() -> None:
    asked: list[str] = []

    def link(name: str, *, answers: bool = False) -> Link:
        async def ask_or_answer(job: Job, ask: Next) -> Answers:
            asked.append(name)
            return {job.case.id: job.case.answered(name)} if answers else await ask(job)

        return ask_or_answer

    last = Following()
    assert predictions(run(chain([link("first"), link("second")], last)(job_for()))) == {"a": "A"}
    assert (asked, len(last.jobs)) == (["first", "second"], 1)
    found = run(chain([link("third"), link("fourth", answers=True), link("fifth")], last)(job_for()))
    assert predictions(found) == {"a": "fourth"}
    assert (asked[2:], len(last.jobs)) == (["third", "fourth"], 1)


def test_a_chain_that_is_cancelled_cancels_all_its_links() -> None:
    ended: list[str] = []

    def link(name: str) -> Link:
        async def ask_next(job: Job, ask: Next) -> Answers:
            try:
                return await ask(job)
            finally:
                ended.append(name)

        return ask_next

    async def cancel() -> None:
        last = Following(may_answer=asyncio.Event())
        task = asyncio.ensure_future(chain([link("outer"), link("inner")], last)(job_for()))
        while not last.jobs:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(cancel())
    assert ended == ["inner", "outer"]


def test_an_answer_that_the_case_carries_asks_nobody() -> None:
    ask, recorded = Following(), Recorded(None)
    assert predictions(run(recorded(job_for(CASES[0].answered("known")), ask))) == {"a": "known"}
    assert ask.jobs == []
    assert predictions(run(recorded(job_for(), ask))) == {"a": "A"}
    assert recorded.known(job_for()) is None


def test_a_block_is_asked_for_once_and_a_case_that_runs_again_alone() -> None:
    ask, batched = Following(), Batched(Recorded(None))
    jobs = [job_for(each, Echo(), shared=True) for each in CASES]
    assert run(all_of(batched, ask, *jobs)) == list("ABCDE")
    assert [[case.id for case in job.cases] for job in ask.jobs] == [["a", "b"], ["c", "d"], ["e"]]
    assert [job.case.id for job in ask.jobs] == ["a", "c", "e"]
    assert run(all_of(batched, ask, jobs[1])) == ["B"]
    assert ([case.id for case in ask.jobs[3].cases], ask.jobs[3].shared) == (["b"], False)


def test_a_case_that_is_cancelled_leaves_its_block_to_the_others() -> None:
    async def cancel() -> Any:
        ask, batched = Following(may_answer=asyncio.Event()), Batched(Recorded(None))
        first, second = (asyncio.ensure_future(batched(job_for(each, Echo()), ask)) for each in CASES[:2])
        await asyncio.sleep(0)
        first.cancel()
        assert ask.may_answer is not None
        ask.may_answer.set()
        return predictions(await second), len(ask.jobs)

    assert run(cancel()) == ({"a": "A", "b": "B"}, 1)


def test_plain_targets_and_turns_of_conversations_are_asked_for_one_by_one() -> None:
    ask, batched = Following(), Batched(Recorded(None))
    jobs = [job_for(), job_for(TALK, Echo())]
    run(all_of(batched, ask, *jobs))
    assert ask.jobs == jobs


def judges(calls: int) -> SuiteJudges:
    return SuiteJudges(JudgeOptions(concurrency=calls), Background())


@dataclass
class Store:
    """The working cache of a run whose processes have one thread, and what its budget counts."""

    answers: dict[str, str] = field(default_factory=dict)
    leases: set[str] = field(default_factory=set)
    orphaned: bool = False
    budget: Budget = field(default_factory=Budget)
    settled: list[Any] = field(default_factory=list)
    exhausted: bool = False
    run: str = "run"
    lease_s: float = 30.0

    @property
    def working(self) -> Any:
        return self

    heart = spending = coordination = store = working

    def beat(self) -> None:
        """Keep nothing alive."""

    def claim(self, key: str, seconds: float) -> bool:
        del seconds
        if key in self.leases or self.orphaned:
            return False
        self.leases.add(key)
        return True

    def release(self, key: str) -> None:
        self.leases.remove(key)

    def orphan(self, key: str) -> None:
        self.release(key)
        self.orphaned = True

    def is_orphaned(self, key: str) -> bool:
        del key
        return self.orphaned

    def get_answer(self, run: str, key: str) -> str | None:
        return self.answers.get(f"{run} {key}")

    def put_answer(self, run: str, key: str, text: str) -> None:
        self.answers[f"{run} {key}"] = text

    def get(self, key: str) -> str | None:
        return self.get_answer(self.run, key)

    def put(self, key: str, text: str) -> None:
        self.put_answer(self.run, key, text)

    async def reserve(self, **amounts: Any) -> str:
        del amounts
        if self.exhausted:
            raise BudgetError("spent")
        return "reservation"

    def settle(self, reservation: Any, *, tokens: int | None, usd: float | None) -> None:
        self.settled.append((reservation, tokens, usd))


def links_of_processes(store: Any) -> Sequence[Shared]:
    return Shared(store, Recorded(None)), Shared(store, Recorded(None))


def test_what_a_process_got_is_not_asked_for_by_another_one() -> None:
    ask = Following(lambda case: PredictionError("none") if case.id == "b" else case.answered(case.id))
    first, second = links_of_processes(Store())
    job = job_for(block=CASES[:2], shared=True)
    answers = [predictions(run(link(job, ask))) for link in (first, second)]
    assert [(each["a"], str(each["b"])) for each in answers] == [("a", "none")] * 2
    assert len(ask.jobs) == 1
    run(second(job, ask))  # the case runs again
    assert len(ask.jobs) == 2


def is_red(case: Any) -> bool:
    return bool(case.prediction == PICTURE)


def checks_of(*entries: Any) -> Evaluator:
    kinds = Checks.kinds({"is_red": CheckKind.from_case_function(is_red)})
    return Checks.of_checks(CheckReader(kinds, Unlocated()).read(list(entries), ()))


@pytest.mark.usefixtures(in_memory.__name__)
@pytest.mark.parametrize(
    ("evaluator", "answer", "calls"),
    [
        (TextEvaluator(), PICTURE, 1),
        (TextEvaluator(), {"answer": "red", "pictures": [PICTURE]}, 1),
        (TextEvaluator(), {"answer": "red", "picture": PICTURE, "state": object()}, 2),
        (checks_of({"at_least": {"of": [{"media_type": "image/png"}, {"equals": "b"}], "n": 1}}), PICTURE, 1),
        (checks_of({"any_of": ["is_red", {"equals": "b"}]}), PICTURE, 2),
        (Length(), PICTURE, 2),
    ],
    ids=["text", "text of parts", "no data", "checks", "a check of the user", "an evaluator of the user"],
)
def test_a_picture_that_no_evaluator_gets_as_an_object_is_not_asked_for_by_another_process(
    evaluator: Evaluator, answer: Any, calls: int
) -> None:
    ask = Following(lambda case: links.answered_with(case, answer))
    job = job_for(suite=length_suite(*CASES, evaluators={"own": evaluator}), shared=True)
    first, second = (predictions(run(link(job, ask)))["a"] for link in links_of_processes(Store()))
    assert first == second
    assert len(ask.jobs) == calls


def test_a_missing_prediction_is_shared_and_an_exception_of_the_target_is_not() -> None:
    store: Any = Store()
    first, second = links_of_processes(store)
    for error, calls in ((PredictionError("too slow"), 1), (ValueError("a bug"), 2)):
        ask = Following(fails=error)
        job = job_for(Case(str(error), input=str(error)), shared=True)
        for link in (first, second):
            with pytest.raises(type(error), match=str(error)):
                run(link(job, ask))
        assert len(ask.jobs) == calls
    assert store.leases == set()


def test_a_call_that_is_cut_off_is_begun_by_nobody_before_its_turn() -> None:
    store: Any = Store()

    async def cancel() -> None:
        task = asyncio.ensure_future(
            Shared(store, Recorded(None))(job_for(shared=True), Following(may_answer=asyncio.Event()))
        )
        await asyncio.sleep(0)
        assert len(store.leases) == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(cancel())
    assert (store.leases, store.answers, store.orphaned) == (set(), {}, True)
    with pytest.raises(OrphanedError):
        run(Shared(store, Recorded(None))(job_for(shared=True), Following()))


def test_an_answer_whose_process_died_is_asked_for_by_nobody_before_its_turn() -> None:
    store: Any = Store(orphaned=True)
    ask = Following()
    with pytest.raises(OrphanedError):
        run(Shared(store, Recorded(None))(job_for(shared=True), ask))
    assert ask.jobs == []
    assert predictions(run(Shared(store, Recorded(None))(job_for(), ask))) == {"a": "A"}


def test_a_suite_has_a_limit_of_its_own() -> None:
    async def most_at_once(suite: LoadedSuite) -> int:
        ask, limited = Following(may_answer=asyncio.Event()), Limited(judges(4))
        tasks = [asyncio.ensure_future(limited(job_for(each, suite=suite), ask)) for each in CASES]
        for _ in range(20):
            await asyncio.sleep(0)
        most = len(ask.jobs)
        assert ask.may_answer is not None
        ask.may_answer.set()
        await asyncio.gather(*tasks)
        assert len(ask.jobs) == len(CASES)
        return most

    assert run(most_at_once(length_suite(*CASES))) == 4
    assert run(most_at_once(length_suite(*CASES, target=TargetSpec(python="a:b", concurrency=2)))) == 2


def test_what_answers_took_is_settled_and_nothing_is_asked_when_the_budget_is_spent() -> None:
    usage = {"usage": {"input_tokens": 3, "output_tokens": 4, "cost_usd": 0.5}}
    store: Any = Store(budget=Budget(usd=1))
    ask = Following(lambda case: case.answered(usage))
    run(chain([Budgeted(store), Recording(None, store)], ask)(job_for(block=CASES[:2])))
    assert store.settled == [("reservation", 14, 1.0)]
    with pytest.raises(ValueError, match="a bug"):
        run(Budgeted(store)(job_for(), Following(fails=ValueError("a bug"))))
    assert store.settled[1:] == [("reservation", None, None)]
    store.exhausted = True
    with pytest.raises(BudgetError):
        run(Budgeted(store)(job_for(), ask))
    assert (len(ask.jobs), len(store.settled)) == (1, 2)


@dataclass
class Kept:
    rows: list[Mapping[str, Any]] = field(default_factory=list)
    mode: str = "auto"

    def keep(self, row: Mapping[str, Any]) -> None:
        self.rows.append(row)


def test_answers_are_written_with_their_latency_and_missing_ones_are_not() -> None:
    kept: Any = Kept()
    ask = Following(lambda case: PredictionError("none") if case.id == "b" else case.answered(case.id))
    answers = run(Recording(kept, judges(1))(job_for(block=CASES[:2]), ask))
    answered = answer_to(job_for(), answers)
    assert answered.origin is not None
    assert answered.origin.figures["latency_s"] == 0
    assert [(each["case"], each["prediction"]) for each in kept.rows] == [("a", "a")]
    with pytest.raises(PredictionError, match="none"):
        answer_to(job_for(CASES[1]), answers)


def talk_job(**more: Any) -> Job:
    return job_for(TALK, suite=length_suite(TALK, conversation=ConversationSpec()), **more)


def test_the_next_link_is_asked_for_each_reply_of_a_conversation() -> None:
    replies = iter(["hi", "see you"])
    ask = Following(lambda case: case.answered(next(replies)))
    answers = run(Conversations(judges(1), None)(talk_job(), ask))
    assert [len(job.messages or ()) for job in ask.jobs] == [1, 3]
    transcript = predictions(answers)["talk"]
    assert (transcript["answer"], transcript["turns"], transcript["stop"]) == ("see you", 2, "script")
    assert answer_to(talk_job(), answers).input == SCRIPT


def test_turns_that_a_killed_run_got_are_not_asked_for_again() -> None:
    store: Any = Store()
    kept: Any = Kept()
    conversations = Conversations(store, kept)
    replies = iter(["hi"])

    def reply(case: Case) -> Case | PredictionError:
        return case.answered(text) if (text := next(replies, None)) else PredictionError("killed")

    with pytest.raises(PredictionError, match="killed"):
        run(conversations(talk_job(), Following(reply)))
    ask = Following(lambda case: case.answered("see you"))
    answers = run(conversations(talk_job(), ask))
    assert [each["content"] for each in predictions(answers)["talk"]["messages"]] == ["hello", "hi", "bye", "see you"]
    assert len(ask.jobs) == 1
    world: Any = object()
    run(conversations(structs.replace(talk_job(), world=world), ask))
    assert len(ask.jobs) == 3


def test_what_is_no_conversation_is_passed_on() -> None:
    ask, job = Following(), job_for()
    for link in (Conversations(judges(1), None), InWorld(), Opponents(Recorded(None))):
        assert predictions(run(link(job, ask))) == {"a": "A"}
    assert ask.jobs == [job] * 3


def test_an_opponent_is_asked_once_for_itself_and_for_others() -> None:
    ask, opponents = Following(), Opponents(Recorded(None))
    rival = structs.replace(
        job_for(), loaded=structs.replace(job_for().loaded, key=key_of(length_suite(), variant="b"))
    )
    own, other = job_for(opponents={"b": rival}), structs.replace(rival, opponents={"a": job_for()})

    async def both() -> list[Any]:
        return await all_of(opponents, ask, own, other)

    assert run(both()) == ["A", "A"]
    assert [job.key.variant for job in ask.jobs] == ["", "b"]
    others = opponents.known(own)
    assert others is not None
    assert others["b"].prediction == "A"


@pytest.mark.parametrize("messages", [None, SCRIPT[:1]])
def test_the_target_gets_the_input_or_the_messages_of_its_turn(messages: list[Any] | None) -> None:
    inputs: list[Any] = []

    def target(value: Any) -> Any:
        inputs.append(value)
        return ("x", threading.current_thread() is threading.main_thread())

    job = job_for(target=target, messages=messages)
    assert predictions(run(AskTarget(judges(1))(job))) == {"a": ["x", False]}
    assert inputs == ["a" if messages is None else messages]


def test_a_plain_target_runs_in_the_thread_that_the_last_link_has() -> None:
    class Here(ThisThread):
        async def call(self, work: Callable[[], Any]) -> Any:
            return work()

    job = job_for(target=lambda _: threading.current_thread() is threading.main_thread())
    assert predictions(run(AskTarget(judges(1), Here())(job))) == {"a": True}


def test_a_service_gets_all_inputs_of_a_block_in_one_call() -> None:
    blocks = [Case(name, input=[{"content": name}]) for name in "ab"]
    assert predictions(run(AskTarget(judges(1))(job_for(target=Echo(), block=blocks)))) == {"a": "1 a", "b": "1 b"}
    turn = job_for(TALK, Echo(), messages=SCRIPT)
    assert predictions(run(AskTarget(judges(1))(turn))) == {"talk": "2 bye"}


async def coroutine(value: str) -> str:
    return value


def later(value: str) -> Coroutine[Any, Any, str]:
    return coroutine(value)


@pytest.mark.parametrize(("target", "times"), [(answer_of, 1), (coroutine, 1), (later, 2)])
def test_a_link_of_a_plugin_is_entered_around_targets_whose_suite_has_traces(
    monkeypatch: pytest.MonkeyPatch, target: Any, times: int
) -> None:
    entered: list[str] = []

    @contextmanager
    def around() -> Iterator[None]:
        entered.append(threading.current_thread().name)
        yield

    async def counting(job: Job, ask: Next) -> Answers:
        answers = await ask(structs.replace(job, around=around))
        return {name: each.answered(len(entered)) for name, each in answers.items() if isinstance(each, Case)}

    registry = Registry()
    registry.extend("traced", counting)
    monkeypatch.setattr(Registry, "installed", lambda: registry)
    ask = chain([traced], AskTarget(judges(1)))
    run(ask(job_for(target=target)))
    assert entered == []
    spec = TargetSpec(python="bot:answer", traces=True)
    assert predictions(run(ask(job_for(target=target, suite=length_suite(*CASES, target=spec))))) == {"a": times}
    is_thread = target is not coroutine
    assert entered[0].startswith("llmeval-target") is is_thread
