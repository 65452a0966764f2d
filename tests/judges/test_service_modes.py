"""What the service asks, records and spends, by mode and budget."""

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import question
from msgspec import structs
from scripted_judges import OneJudge, Scripted, ask_of, asked, fault, reached, run, verdict

from pytest_llmeval.core import BudgetError, JudgeError
from pytest_llmeval.judges import (
    Budget,
    CachePlace,
    Judgements,
    JudgeMode,
    JudgeOptions,
    JudgeReply,
    JudgeRequest,
    UnaskedError,
    Usage,
    Verdict,
)
from pytest_llmeval.judges._panel import Juror, JurorVerdict
from pytest_llmeval.judges._run_store import RunStore, WorkingCache
from pytest_llmeval.judges._service import CallLimit


def test_recordings_go_before_the_cache_and_replay_reads_nothing_else(
    serve: Callable[..., OneJudge], juror: Juror, judge: Scripted
) -> None:
    made = run(serve().judge(asked(juror))).entry
    assert made is not None
    recorded = replace(juror, recordings=Judgements(Path("s.jsonl"), [structs.replace(made, reply="0.9")]))
    for mode in ("auto", "record", "replay"):
        told = serve(mode).known(asked(recorded))
        assert told is not None
        assert verdict(told).score == 0.9
    missing = serve("replay").known(asked(juror))
    assert missing is not None
    assert str(fault(missing)) == (
        "case 'paris': no recorded verdict of mode 'strict' (no verdict is recorded for this case); "
        "run once with --llmeval-judge=record"
    )
    assert len(judge.requests) == 1


def test_replay_and_off_open_no_cache(serve: Callable[..., OneJudge], juror: Juror, path: Path) -> None:
    told = [serve(mode).known(asked(juror)) for mode in ("replay", "off")]
    assert isinstance(told[1].verdict if told[1] else None, UnaskedError)
    assert None not in told
    assert not path.exists()


def test_refresh_reads_nothing_old_and_asks_for_everything_once(
    serve: Callable[..., OneJudge], juror: Juror, judge: Scripted
) -> None:
    run(serve().judge(asked(juror)))
    judge.answers = [JudgeReply("0.1")]
    service = serve("refresh", run="second")
    assert service.known(asked(juror)) is None
    assert verdict(run(service.judge(asked(juror)))).score == 0.1
    known = service.known(asked(juror))
    assert known is not None
    assert verdict(known).score == 0.1
    assert len(judge.requests) == 2


def test_a_verdict_that_another_run_has_kept_meanwhile_counts(
    serve: Callable[..., OneJudge], juror: Juror, judge: Scripted
) -> None:
    judge.answers = [JudgeReply("0.9")]
    stopped, other = serve(run="first", owner="stopped"), serve(run="second", owner="other")

    class Slow:
        """A judge whose process is stopped for longer than its lease, so that another run asks the same."""

        async def complete(self, request: JudgeRequest) -> JudgeReply:
            del request
            stopped.store.coordination.release(asked(juror).key, "stopped")
            assert verdict(await other.judge(asked(juror))).score == 0.9
            return JudgeReply("0.2", Usage(10, 1))

        async def aclose(self) -> None: ...

    late = run(stopped.judge(asked(replace(juror, client=Slow()))))
    assert verdict(late).score == 0.9
    assert late.call is not None
    assert (late.call.fresh, late.call.input_tokens) == (True, 10)  # it has been paid for
    known = serve(run="third").known(asked(juror))
    assert known is not None
    assert verdict(known).score == 0.9


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
def test_modes_ask_and_record(serve: Callable[..., OneJudge], mode: JudgeMode, asks: bool, records: bool) -> None:
    assert (serve(mode).store.asks, JudgeOptions(mode).records) == (asks, records)


def test_a_stored_reply_that_cannot_be_read_any_more_is_told_as_such(
    serve: Callable[..., OneJudge], juror: Juror
) -> None:
    run(serve().judge(asked(juror)))

    def read(_: str) -> Verdict:
        raise JudgeError("found nothing")

    told = serve().known(ask_of(juror, question(read=read), "paris"))
    assert told is not None
    said = "the cached reply cannot be read (replace it with --llmeval-judge=refresh): found nothing"
    assert str(fault(told)) == said


def test_nobody_to_ask_is_an_error_that_says_how_to_name_someone(serve: Callable[..., OneJudge], juror: Juror) -> None:
    juror.client = None
    assert "no judge is configured: add 'judge: {model: PROVIDER:NAME}'" in str(fault(run(serve().judge(asked(juror)))))


def test_a_cache_that_cannot_be_opened_is_an_error_of_the_question(juror: Juror, tmp_path: Path) -> None:
    folder = WorkingCache(CachePlace(tmp_path), "run", "me")  # no database
    service = OneJudge(RunStore("auto", CallLimit(1), folder))
    assert str(fault(run(service.judge(asked(juror))))).endswith("(--llmeval-cache=PATH)")


def test_a_process_without_the_shared_database_works_alone_in_its_part_of_the_limit(tmp_path: Path) -> None:
    folder = WorkingCache(CachePlace(tmp_path), "run", "me", ceiling=4, processes=2)  # no database
    folder.put("key", "text")
    assert folder.get("key") == "text"
    assert folder.claim("answer", 30)
    assert not folder.is_orphaned("answer")
    assert folder.take(3) == [0, 1]
    folder.slow_down()
    folder.free([1])
    assert folder.take(3) == [1]


def test_a_database_that_fails_in_a_run_is_given_up(path: Path) -> None:
    working = WorkingCache(CachePlace(path), "run", "me", ceiling=2)
    assert working.take(1) == [0]
    assert not working.is_alone
    working.close()
    path.write_bytes(b"no database")
    assert working.get("key") is None
    assert working.is_alone


@pytest.mark.parametrize("budget", [Budget(calls=3), Budget(tokens=3 * 1200), Budget(usd=3 * 1.2)])
def test_a_budget_is_never_exceeded_and_calls_under_way_are_waited_for(
    serve: Callable[..., OneJudge], juror: Juror, judge: Scripted, budget: Budget
) -> None:
    # What is set aside is more than the 1034 tokens that a call takes, so more than one at a time would not fit.
    judge.answers = [JudgeReply("0.5", Usage(134, 1000)) for _ in range(20)]
    service = serve(budget=budget)

    async def work() -> list[JurorVerdict]:
        return await asyncio.gather(*(service.judge(asked(juror, f"a{number}")) for number in range(8)))

    told = run(work())
    spent = [each for each in told if isinstance(each.verdict, BudgetError)]
    assert len(judge.requests) == 8 - len(spent) == 3
    assert {str(each.verdict) for each in spent} == {f"the budget of {budget} is spent"}
    # What is stored costs nothing.
    assert verdict(run(service.judge(asked(juror, "a0")))).score == 0.5


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        (Budget(tokens=900), r"the budget of 900 tokens is too small for a call of up to 1\d{3} tokens"),
        (Budget(usd=0.9), r"the budget of 0.90 USD is too small for a call that may cost up to 1\.\d{6} USD"),
    ],
)
def test_a_budget_too_small_for_any_call_is_told_as_that(
    serve: Callable[..., OneJudge], juror: Juror, judge: Scripted, budget: Budget, said: str
) -> None:
    assert re.fullmatch(said, str(fault(run(serve(budget=budget).judge(asked(juror))))))
    assert judge.requests == []


def test_a_call_that_failed_counts_as_spent_and_max_tokens_bounds_what_is_set_aside(
    serve: Callable[..., OneJudge], juror: Juror, judge: Scripted
) -> None:
    juror.parameters["max_tokens"] = 10
    judge.answers = [JudgeError("dropped")]
    service = serve(budget=Budget(tokens=500))
    assert str(fault(run(service.judge(asked(juror, "a"))))) == "dropped"
    assert run(service.judge(asked(juror, "b"))).entry is not None
    service = serve(run="other", budget=Budget(calls=1))
    judge.answers = [JudgeError("dropped")]
    run(service.judge(asked(juror, "c")))
    assert isinstance(run(service.judge(asked(juror, "d"))).verdict, BudgetError)


def test_leases_are_kept_alive_while_a_call_takes_its_time(
    serve: Callable[..., OneJudge], juror: Juror, judge: Scripted
) -> None:
    service, other = serve(lease_s=0.6), serve(owner="other", lease_s=0.6)

    async def work() -> None:
        judge.gate = asyncio.Event()
        slow = asyncio.ensure_future(service.judge(asked(juror)))
        late = asyncio.ensure_future(other.judge(asked(juror)))
        ends: set[Any] = set()

        def renewed_eight_times() -> bool:  # twice as long as a lease lasts
            ends.update(service.store.coordination._rows("SELECT expires FROM leases"))
            return len(ends) > 8

        await reached(renewed_eight_times)
        judge.gate.set()
        await asyncio.gather(slow, late)

    run(work())
    assert len(judge.requests) == 1
