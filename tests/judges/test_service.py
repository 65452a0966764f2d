"""Asking judges: stores before models, nothing twice at a time, what failed kept nowhere, budgets kept to."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from builders import question
from scripted_judges import OneJudge, Scripted, ask_of, asked, fault, reached, run, verdict

from pytest_llmeval.core import JudgeError
from pytest_llmeval.judges import JudgeReply, PanelQuestion, Usage, Verdict
from pytest_llmeval.judges._panel import Juror, JurorVerdict
from pytest_llmeval.judges._service import CallLimit


def test_a_verdict_is_asked_for_once_then_comes_from_the_cache(
    serve: Callable[..., OneJudge], juror: Juror, judge: Scripted
) -> None:
    first = run(serve().judge(asked(juror)))
    assert (verdict(first).score, len(judge.requests)) == (0.5, 1)
    assert first.call is not None
    assert (first.call.fresh, first.call.input_tokens, first.call.cost_usd) == (True, 30, pytest.approx(0.007))
    again = serve(run="later").known(asked(juror))
    assert again is not None
    assert again.call is not None
    assert verdict(again).score == 0.5
    assert again.call == first.call._replace(fresh=False)
    assert again.entry == first.entry
    assert len(judge.requests) == 1


def test_the_request_has_prompt_model_and_parameters(
    serve: Callable[..., OneJudge], juror: Juror, judge: Scripted
) -> None:
    run(serve().judge(asked(juror)))
    (request,) = judge.requests
    assert (request.model, request.parameters) == ("m", {"temperature": 0})
    assert "Grade the answer." in str(request)
    assert "Paris" in str(request)


def test_repeats_are_questions_of_their_own(serve: Callable[..., OneJudge], juror: Juror, judge: Scripted) -> None:
    service = serve()

    async def work() -> list[JurorVerdict]:
        return await asyncio.gather(*(service.judge(asked(juror, repeat=number)) for number in (0, 1, 1)))

    told = run(work())
    assert len(judge.requests) == 2
    assert len({each.call.id for each in told if each.call is not None}) == 2


def test_the_same_question_at_the_same_time_is_one_call(
    serve: Callable[..., OneJudge], juror: Juror, judge: Scripted
) -> None:
    service = serve()

    async def work() -> list[JurorVerdict]:
        judge.gate = asyncio.Event()
        waiting = [asyncio.ensure_future(service.judge(asked(juror, case=name))) for name in "abc"]
        await reached(lambda: bool(judge.requests))
        waiting[0].cancel()  # who waits may give up; the others still get what was asked
        judge.gate.set()
        return await asyncio.gather(*waiting[1:])

    told = run(work())
    assert [verdict(each).score for each in told] == [0.5, 0.5]
    assert len(judge.requests) == 1


def test_two_processes_ask_once_and_the_cost_is_the_runs(
    serve: Callable[..., OneJudge], juror: Juror, judge: Scripted
) -> None:
    one, two = (serve(owner=name, limit=CallLimit(4, Others())) for name in ("one", "two"))

    async def work() -> list[JurorVerdict]:
        judge.gate = asyncio.Event()
        waiting = [asyncio.ensure_future(each.judge(asked(juror))) for each in (one, two)]
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
    serve: Callable[..., OneJudge],
    juror: Juror,
    judge: Scripted,
    answer: JudgeReply | Exception,
    message: str,
) -> None:
    service = serve()
    judge.answers = [answer]
    told = run(service.judge(asked_strictly(juror)))
    with pytest.raises(JudgeError, match=message):
        raise fault(told)
    assert told.entry is None
    assert (told.call is not None) == isinstance(answer, JudgeReply)  # what was answered was paid for
    assert list(service.cache.entries()) == []
    assert verdict(run(serve(owner="next", run="next").judge(asked_strictly(juror)))).score == 0.5
    assert len(judge.requests) == 2


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit("enough")])
@pytest.mark.parametrize("whose", ["judge", "mode"])
def test_a_judge_or_mode_that_wants_the_run_to_end_costs_its_case_and_not_the_event_loop(
    serve: Callable[..., OneJudge], juror: Juror, judge: Scripted, error: BaseException, whose: str
) -> None:
    def read(_: str) -> Verdict:
        raise error

    judge.answers = [error] if whose == "judge" else []
    told = run(serve().judge(ask_of(juror, question(read=read), "paris")))
    assert str(fault(told)).startswith(f"the judge raised {type(error).__name__}")


def asked_strictly(juror: Juror, case: str = "paris", asker: str = "") -> PanelQuestion:
    """Return a question whose reply must be a number and nothing else."""

    def read(text: str) -> Verdict:
        try:
            return Verdict(float(text))
        except ValueError as error:
            raise JudgeError(str(error), text) from None

    return ask_of(juror, question(read=read), case, asker=asker)


class Others:
    """Says that other processes take part in the run."""

    def take(self, wanted: int) -> Sequence[int]:
        return range(wanted)

    def free(self, slots: Sequence[int]) -> None: ...

    def slow_down(self) -> None: ...

    def speed_up(self) -> None: ...


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("answer", [JudgeReply("high", Usage(30, 4)), JudgeError("no network")])
def test_what_got_no_verdict_is_asked_again_only_when_its_case_runs_again(
    serve: Callable[..., OneJudge],
    juror: Juror,
    judge: Scripted,
    answer: JudgeReply | Exception,
    workers: int,
) -> None:
    names = ("one", "two") if workers == 2 else ("one", "one")
    made = {name: serve(owner=name, limit=CallLimit(4, Others() if workers == 2 else None)) for name in names}
    first, second = (made[name] for name in names)
    judge.answers = [answer, answer]
    ahead = run(first.judge(asked_strictly(juror, "neighbour")))  # looks at the same question for another case
    own = run(second.judge(asked_strictly(juror)))
    assert len(judge.requests) == 1
    assert str(fault(own)) == str(fault(ahead))
    assert vars(fault(own)) == vars(fault(ahead))  # the reply
    assert own.call == ahead.call
    assert fault(run(second.judge(asked_strictly(juror, asker="another suite")))) is not None
    assert len(judge.requests) == 1
    rerun = run(second.judge(asked_strictly(juror)))
    assert len(judge.requests) == 2
    assert (rerun.call is None) or rerun.call != own.call
    assert verdict(run(second.judge(asked_strictly(juror)))).score == 0.5
    assert verdict(run(first.judge(asked_strictly(juror, "third")))).score == 0.5
    assert len(judge.requests) == 3


def test_a_case_of_another_suite_or_variant_is_no_case_that_runs_again(
    serve: Callable[..., OneJudge], juror: Juror, judge: Scripted
) -> None:
    service = serve()
    judge.answers = [JudgeError("no network")]
    told = [run(service.judge(asked_strictly(juror, asker=each))) for each in ("a.eval.yaml", "b.eval.yaml")]
    assert [str(fault(each)) for each in told] == ["no network"] * 2
    assert len(judge.requests) == 1


@pytest.mark.parametrize("together", [True, False])
def test_what_fails_at_one_address_is_asked_at_another(
    serve: Callable[..., OneJudge], juror: Juror, judge: Scripted, together: bool
) -> None:
    service = serve()
    dead = Scripted([JudgeError("nobody there")])
    asking = [asked_strictly(replace(juror, client=dead, way="dead")), asked_strictly(juror, "other")]

    async def work() -> list[JurorVerdict]:
        if together:
            return await asyncio.gather(*map(service.judge, asking))
        return [await service.judge(each) for each in asking]

    failed, told = run(work())
    assert str(fault(failed)) == "nobody there"
    assert verdict(told).score == 0.5
    assert (len(dead.requests), len(judge.requests)) == (1, 1)
