"""Asking judges: stores before models, nothing twice at a time, what failed kept nowhere, budgets kept to."""

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from llm_server import PATIENCE
from stored_judgements import question

from pytest_llmeval import LlmevalError
from pytest_llmeval.core.errors import BudgetError, JudgeError
from pytest_llmeval.judge import service as module
from pytest_llmeval.judge.budget import Budget
from pytest_llmeval.judge.contract import JudgeReply, JudgeRequest, Usage, Verdict
from pytest_llmeval.judge.limit import CallLimit
from pytest_llmeval.judge.recordings import Judgements
from pytest_llmeval.judge.service import BoundQuestion, Judgement, JudgeMode, JudgeOffError, JudgeService, SuiteJudge
from pytest_llmeval.judge.spec import Price
from pytest_llmeval.judge.store.working import WorkingCache

_T = TypeVar("_T")


@dataclass
class Scripted:
    """A judge that answers 0.5, or what it is told to; `gate` keeps its answers back."""

    answers: list[JudgeReply | BaseException] = field(default_factory=list)
    requests: list[JudgeRequest] = field(default_factory=list)
    gate: asyncio.Event | None = None

    async def complete(self, request: JudgeRequest) -> JudgeReply:
        self.requests.append(request)
        if self.gate is not None:
            await self.gate.wait()
        answer = self.answers.pop(0) if self.answers else JudgeReply("0.5", Usage(30, 4))
        if isinstance(answer, BaseException):
            raise answer
        return answer


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache.sqlite3"


@pytest.fixture
def judge() -> Scripted:
    return Scripted()


@pytest.fixture
def suite_judge(judge: Scripted, tmp_path: Path) -> SuiteJudge:
    return SuiteJudge(
        "openai:m", {"temperature": 0}, Judgements(tmp_path / "s.judgements.jsonl"), judge, Price(100, 1000)
    )


@pytest.fixture
def serve(path: Path) -> Iterator[Callable[..., JudgeService]]:
    made: list[WorkingCache] = []

    def make(mode: JudgeMode = "auto", owner: str = "me", run: str = "run", **more: Any) -> JudgeService:
        made.append(WorkingCache(path))
        return JudgeService(mode, more.pop("limit", CallLimit(4)), made[-1], run, owner, **more)

    yield make
    for each in made:
        each.close()


def run(work: Coroutine[Any, Any, _T]) -> _T:
    async def whole() -> _T:
        try:
            return await work
        finally:
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()

    return asyncio.run(asyncio.wait_for(whole(), PATIENCE))


async def reached(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0)


def asked(suite_judge: SuiteJudge, answer: str = "Paris", repeat: int = 0, case: str = "paris") -> BoundQuestion:
    return BoundQuestion(suite_judge, question(answer), case, repeat)


def verdict(told: Judgement) -> Verdict:
    assert isinstance(told.verdict, Verdict), told.verdict
    return told.verdict


def fault(told: Judgement) -> LlmevalError:
    assert isinstance(told.verdict, LlmevalError)
    return told.verdict


def test_a_verdict_is_asked_for_once_then_comes_from_the_cache(
    serve: Callable[..., JudgeService], suite_judge: SuiteJudge, judge: Scripted
) -> None:
    first = run(serve().judge(asked(suite_judge)))
    assert (verdict(first).score, len(judge.requests)) == (0.5, 1)
    assert first.call is not None
    assert (first.call.fresh, first.call.input_tokens, first.call.cost_usd) == (True, 30, pytest.approx(0.007))
    again = serve(run="later").known(asked(suite_judge))
    assert again is not None
    assert again.call is not None
    assert verdict(again).score == 0.5
    assert again.call == first.call._replace(fresh=False)
    assert again.entry == first.entry
    assert len(judge.requests) == 1


def test_the_request_has_prompt_model_and_parameters(
    serve: Callable[..., JudgeService], suite_judge: SuiteJudge, judge: Scripted
) -> None:
    run(serve().judge(asked(suite_judge)))
    (request,) = judge.requests
    assert (request.model, request.parameters) == ("m", {"temperature": 0})
    assert "Grade the answer." in str(request)
    assert "Paris" in str(request)


def test_repeats_are_questions_of_their_own(
    serve: Callable[..., JudgeService], suite_judge: SuiteJudge, judge: Scripted
) -> None:
    service = serve()

    async def work() -> list[Judgement]:
        return await asyncio.gather(*(service.judge(asked(suite_judge, repeat=number)) for number in (0, 1, 1)))

    told = run(work())
    assert len(judge.requests) == 2
    assert len({each.call.id for each in told if each.call is not None}) == 2


def test_the_same_question_at_the_same_time_is_one_call(
    serve: Callable[..., JudgeService], suite_judge: SuiteJudge, judge: Scripted
) -> None:
    service = serve()

    async def work() -> list[Judgement]:
        judge.gate = asyncio.Event()
        waiting = [asyncio.ensure_future(service.judge(asked(suite_judge, case=name))) for name in "abc"]
        await reached(lambda: bool(judge.requests))
        waiting[0].cancel()  # who waits may give up; the others still get what was asked
        judge.gate.set()
        return await asyncio.gather(*waiting[1:])

    told = run(work())
    assert [verdict(each).score for each in told] == [0.5, 0.5]
    assert len(judge.requests) == 1


def test_two_processes_ask_once_and_the_cost_is_the_runs(
    serve: Callable[..., JudgeService], suite_judge: SuiteJudge, judge: Scripted
) -> None:
    one, two = (serve(owner=name, limit=CallLimit(4, Others())) for name in ("one", "two"))

    async def work() -> list[Judgement]:
        judge.gate = asyncio.Event()
        waiting = [asyncio.ensure_future(each.judge(asked(suite_judge))) for each in (one, two)]
        await reached(lambda: bool(judge.requests))
        judge.gate.set()
        return await asyncio.gather(*waiting)

    told = run(work())
    assert len(judge.requests) == 1
    assert [each.call.fresh for each in told if each.call is not None] == [True, True]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            JudgeReply("I refuse", stopped="refusal"),
            "found a refusal, expected a verdict; the judge replied 'I refuse'",
        ),
        (JudgeReply("0.", stopped="length"), "found a truncated reply, .*: raise max_tokens"),
        (JudgeReply("high"), "could not convert"),
        (JudgeError("no network"), "no network"),
    ],
)
def test_what_fails_is_an_error_kept_for_its_run_only(
    serve: Callable[..., JudgeService],
    suite_judge: SuiteJudge,
    judge: Scripted,
    answer: JudgeReply | Exception,
    message: str,
) -> None:
    service = serve()
    judge.answers = [answer]
    told = run(service.judge(asked_strictly(suite_judge)))
    with pytest.raises(JudgeError, match=message):
        raise fault(told)
    assert told.entry is None
    assert (told.call is not None) == isinstance(answer, JudgeReply)  # what was answered was paid for
    assert list(service.cache.entries()) == []
    assert verdict(run(serve(owner="next", run="next").judge(asked_strictly(suite_judge)))).score == 0.5
    assert len(judge.requests) == 2


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit("enough")])
@pytest.mark.parametrize("whose", ["judge", "mode"])
def test_a_judge_or_mode_that_wants_the_run_to_end_costs_its_case_and_not_the_event_loop(
    serve: Callable[..., JudgeService], suite_judge: SuiteJudge, judge: Scripted, error: BaseException, whose: str
) -> None:
    def read(_: str) -> Verdict:
        raise error

    judge.answers = [error] if whose == "judge" else []
    told = run(serve().judge(BoundQuestion(suite_judge, question(read=read), "paris")))
    assert str(fault(told)).startswith(f"the judge raised {type(error).__name__}: ")


def asked_strictly(suite_judge: SuiteJudge, case: str = "paris", asker: str = "") -> BoundQuestion:
    """Return a question whose reply must be a number and nothing else."""

    def read(text: str) -> Verdict:
        try:
            return Verdict(float(text))
        except ValueError as error:
            raise JudgeError(str(error), text) from None

    return BoundQuestion(suite_judge, question(read=read), case, asker=asker)


class Others:
    """Says that other processes take part in the run."""

    def take(self) -> int:
        return 0

    def free(self, slot: int) -> None: ...

    def slow_down(self) -> None: ...

    def speed_up(self) -> None: ...


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("answer", [JudgeReply("high", Usage(30, 4)), JudgeError("no network")])
def test_what_got_no_verdict_is_asked_again_only_when_its_case_runs_again(
    serve: Callable[..., JudgeService],
    suite_judge: SuiteJudge,
    judge: Scripted,
    answer: JudgeReply | Exception,
    workers: int,
) -> None:
    names = ("one", "two") if workers == 2 else ("one", "one")
    made = {name: serve(owner=name, limit=CallLimit(4, Others() if workers == 2 else None)) for name in names}
    first, second = (made[name] for name in names)
    judge.answers = [answer, answer]
    ahead = run(first.judge(asked_strictly(suite_judge, "neighbour")))  # looks at the same question for another case
    own = run(second.judge(asked_strictly(suite_judge)))
    assert len(judge.requests) == 1
    assert str(fault(own)) == str(fault(ahead))
    assert vars(fault(own)) == vars(fault(ahead))  # the reply
    assert own.call == ahead.call
    assert fault(run(second.judge(asked_strictly(suite_judge, asker="another suite")))) is not None
    assert len(judge.requests) == 1
    rerun = run(second.judge(asked_strictly(suite_judge)))
    assert len(judge.requests) == 2
    assert (rerun.call is None) or rerun.call != own.call
    assert verdict(run(second.judge(asked_strictly(suite_judge)))).score == 0.5
    assert verdict(run(first.judge(asked_strictly(suite_judge, "third")))).score == 0.5
    assert len(judge.requests) == 3


def test_a_case_of_another_suite_or_variant_is_no_case_that_runs_again(
    serve: Callable[..., JudgeService], suite_judge: SuiteJudge, judge: Scripted
) -> None:
    service = serve()
    judge.answers = [JudgeError("no network")]
    told = [run(service.judge(asked_strictly(suite_judge, asker=each))) for each in ("a.eval.yaml", "b.eval.yaml")]
    assert [str(fault(each)) for each in told] == ["no network"] * 2
    assert len(judge.requests) == 1


@pytest.mark.parametrize("together", [True, False])
def test_what_fails_at_one_address_is_asked_at_another(
    serve: Callable[..., JudgeService], suite_judge: SuiteJudge, judge: Scripted, together: bool
) -> None:
    service = serve()
    dead = Scripted([JudgeError("nobody there")])
    asking = [asked_strictly(replace(suite_judge, client=dead, way="dead")), asked_strictly(suite_judge, "other")]

    async def work() -> list[Judgement]:
        if together:
            return await asyncio.gather(*map(service.judge, asking))
        return [await service.judge(each) for each in asking]

    failed, told = run(work())
    assert str(fault(failed)) == "nobody there"
    assert verdict(told).score == 0.5
    assert (len(dead.requests), len(judge.requests)) == (1, 1)


def test_recordings_go_before_the_cache_and_replay_reads_nothing_else(
    serve: Callable[..., JudgeService], suite_judge: SuiteJudge, judge: Scripted
) -> None:
    made = run(serve().judge(asked(suite_judge))).entry
    assert made is not None
    recorded = replace(suite_judge, recordings=Judgements(Path("s.jsonl"), [replace(made, reply="0.9")]))
    for mode in ("auto", "record", "replay"):
        told = serve(mode).known(asked(recorded))
        assert told is not None
        assert verdict(told).score == 0.9
    missing = serve("replay").known(asked(suite_judge))
    assert missing is not None
    assert str(fault(missing)) == (
        "case 'paris': no recorded verdict of mode 'strict' (no verdict is recorded for this case); "
        "run once with --llmeval-judge=record"
    )
    assert len(judge.requests) == 1


def test_replay_and_off_open_no_cache(serve: Callable[..., JudgeService], suite_judge: SuiteJudge, path: Path) -> None:
    told = [serve(mode).known(asked(suite_judge)) for mode in ("replay", "off")]
    assert isinstance(told[1].verdict if told[1] else None, JudgeOffError)
    assert None not in told
    assert not path.exists()


def test_refresh_reads_nothing_old_and_asks_for_everything_once(
    serve: Callable[..., JudgeService], suite_judge: SuiteJudge, judge: Scripted
) -> None:
    run(serve().judge(asked(suite_judge)))
    judge.answers = [JudgeReply("0.1")]
    service = serve("refresh", run="second")
    assert service.known(asked(suite_judge)) is None
    assert verdict(run(service.judge(asked(suite_judge)))).score == 0.1
    known = service.known(asked(suite_judge))
    assert known is not None
    assert verdict(known).score == 0.1
    assert len(judge.requests) == 2


@pytest.mark.parametrize(
    ("mode", "asks", "records"),
    [
        ("auto", True, False),
        ("replay", False, False),
        ("record", True, True),
        ("refresh", True, True),
        ("off", False, False),
    ],
)
def test_modes_ask_and_record(serve: Callable[..., JudgeService], mode: JudgeMode, asks: bool, records: bool) -> None:
    assert (serve(mode).asks, serve(mode).records) == (asks, records)


def test_a_stored_reply_that_cannot_be_read_any_more_is_told_as_such(
    serve: Callable[..., JudgeService], suite_judge: SuiteJudge
) -> None:
    run(serve().judge(asked(suite_judge)))

    def read(_: str) -> Verdict:
        raise JudgeError("found nothing")

    told = serve().known(BoundQuestion(suite_judge, question(read=read), "paris"))
    assert told is not None
    said = "the cached reply cannot be read (replace it with --llmeval-judge=refresh): found nothing"
    assert str(fault(told)) == said


def test_nobody_to_ask_is_an_error_that_says_how_to_name_someone(
    serve: Callable[..., JudgeService], suite_judge: SuiteJudge
) -> None:
    suite_judge.client = None
    assert "no judge is configured: add 'judge: {model: PROVIDER:NAME}'" in str(
        fault(run(serve().judge(asked(suite_judge))))
    )


def test_a_cache_that_cannot_be_opened_is_an_error_of_the_question(suite_judge: SuiteJudge, tmp_path: Path) -> None:
    service = JudgeService("auto", CallLimit(1), WorkingCache(tmp_path), "run", "me")  # a folder is no database
    assert str(fault(run(service.judge(asked(suite_judge))))).endswith("(--llmeval-cache=PATH)")


@pytest.mark.parametrize("budget", [Budget(calls=3), Budget(tokens=3 * 1200), Budget(usd=3 * 1.2)])
def test_a_budget_is_never_exceeded_and_calls_under_way_are_waited_for(
    serve: Callable[..., JudgeService], suite_judge: SuiteJudge, judge: Scripted, budget: Budget
) -> None:
    # What is set aside is more than the 1034 tokens that a call takes, so more than one at a time would not fit.
    judge.answers = [JudgeReply("0.5", Usage(134, 1000)) for _ in range(20)]
    service = serve(budget=budget)

    async def work() -> list[Judgement]:
        return await asyncio.gather(*(service.judge(asked(suite_judge, f"a{number}")) for number in range(8)))

    told = run(work())
    spent = [each for each in told if isinstance(each.verdict, BudgetError)]
    assert len(judge.requests) == 8 - len(spent) == 3
    assert {str(each.verdict) for each in spent} == {f"the budget of {budget} is spent"}
    # What is stored costs nothing.
    assert verdict(run(service.judge(asked(suite_judge, "a0")))).score == 0.5


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        (Budget(tokens=900), r"the budget of 900 tokens is too small for a call of up to 1\d{3} tokens"),
        (Budget(usd=0.9), r"the budget of 0.90 USD is too small for a call that may cost up to 1\.\d{6} USD"),
    ],
)
def test_a_budget_too_small_for_any_call_is_told_as_that(
    serve: Callable[..., JudgeService], suite_judge: SuiteJudge, judge: Scripted, budget: Budget, said: str
) -> None:
    assert re.fullmatch(said, str(fault(run(serve(budget=budget).judge(asked(suite_judge))))))
    assert judge.requests == []


def test_a_call_that_failed_counts_as_spent_and_max_tokens_bounds_what_is_set_aside(
    serve: Callable[..., JudgeService], suite_judge: SuiteJudge, judge: Scripted
) -> None:
    suite_judge.parameters["max_tokens"] = 10
    judge.answers = [JudgeError("dropped")]
    service = serve(budget=Budget(tokens=500))
    assert str(fault(run(service.judge(asked(suite_judge, "a"))))) == "dropped"
    assert run(service.judge(asked(suite_judge, "b"))).entry is not None
    service = serve(run="other", budget=Budget(calls=1))
    judge.answers = [JudgeError("dropped")]
    run(service.judge(asked(suite_judge, "c")))
    assert isinstance(run(service.judge(asked(suite_judge, "d"))).verdict, BudgetError)


def test_leases_are_kept_alive_while_a_call_takes_its_time(
    serve: Callable[..., JudgeService], suite_judge: SuiteJudge, judge: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LEASE_S", 0.2)
    service, other = serve(), serve(owner="other")

    async def work() -> None:
        judge.gate = asyncio.Event()
        slow = asyncio.ensure_future(service.judge(asked(suite_judge)))
        late = asyncio.ensure_future(other.judge(asked(suite_judge)))
        ends: set[Any] = set()

        def renewed_eight_times() -> bool:  # twice as long as a lease lasts
            ends.update(service.cache._rows("SELECT expires FROM leases"))
            return len(ends) > 8

        await reached(renewed_eight_times)
        judge.gate.set()
        await asyncio.gather(slow, late)

    run(work())
    assert len(judge.requests) == 1
