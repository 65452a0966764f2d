"""Modes that ask once more for a reply that cannot be read."""

from collections.abc import Callable

import pytest
from builders import Chain, question
from scripted_judges import OneJudge, Scripted, ask_of, fault, run, verdict

from pytest_llmeval import BudgetError, JudgeError, score
from pytest_llmeval.core import Case
from pytest_llmeval.judges import Budget, JudgeReply, PanelQuestion, Question, Usage
from pytest_llmeval.judges._panel import Juror

GARBLED = JudgeReply("high", Usage(20, 2))


def asked(juror: Juror, case: str = "paris") -> PanelQuestion:
    return ask_of(juror, question(asks_again=True), case)


def test_a_reply_that_cannot_be_read_is_asked_for_once_more_and_both_calls_are_counted(
    serve: Callable[..., OneJudge], juror: Juror, judge: Scripted
) -> None:
    judge.answers = [GARBLED]
    service = serve()
    told = run(service.judge(asked(juror)))
    assert verdict(told).score == 0.5
    assert [(call.fresh, call.input_tokens) for call in told.calls] == [(True, 20), (True, 30)]
    assert len({call.id for call in told.calls}) == 2
    assert [entry.reply for entry in service.cache.entries()] == ["0.5"]
    assert told.entry is not None
    assert told.entry.reply == "0.5"


def test_a_second_reply_that_cannot_be_read_is_the_error(
    serve: Callable[..., OneJudge], juror: Juror, judge: Scripted
) -> None:
    judge.answers = [GARBLED, JudgeReply("higher"), JudgeReply("never asked for")]
    service = serve()
    told = run(service.judge(asked(juror)))
    assert "higher" in str(fault(told))
    assert (len(told.calls), told.entry, len(judge.requests)) == (2, None, 2)
    assert list(service.cache.entries()) == []
    neighbour = run(service.judge(asked(juror, "another case")))
    assert len(judge.requests) == 2, "what cannot be read is asked for once more, not once more for every case"
    assert neighbour.calls == [told.call]


@pytest.mark.parametrize(
    ("second", "budget", "message"),
    [(JudgeError("no network"), Budget(), "no network"), (JudgeReply("0.5"), Budget(calls=1), "is spent")],
)
def test_what_keeps_the_second_question_from_being_answered_leaves_the_first_call_counted(
    serve: Callable[..., OneJudge],
    juror: Juror,
    judge: Scripted,
    second: JudgeReply | Exception,
    budget: Budget,
    message: str,
) -> None:
    judge.answers = [GARBLED, second]
    told = run(serve(budget=budget).judge(asked(juror)))
    assert message in str(fault(told))
    assert isinstance(fault(told), JudgeError) is not bool(budget)
    assert isinstance(fault(told), BudgetError) is bool(budget)
    assert [call.input_tokens for call in told.calls] == [20]


def test_other_modes_do_not_ask_again(serve: Callable[..., OneJudge], juror: Juror, judge: Scripted) -> None:
    judge.answers = [GARBLED]
    told = run(serve().judge(ask_of(juror, question(), "paris")))
    assert fault(told) is not None
    assert len(judge.requests) == len(told.calls) == 1


@pytest.mark.parametrize(("replies", "errored"), [(["?", "0.5"], 0), (["?", "!"], 1)])
def test_scores_from_python_ask_once_more_too(replies: list[str], errored: int) -> None:
    left = list(replies)
    evaluator = Chain(("a",), asks_again=True)
    result = score(evaluator, [Case("c", prediction="x")], judge=lambda _: left.pop(0))
    assert (result.metrics["links"].errored, left) == (errored, [])


def test_questions_of_such_a_mode_have_the_keys_of_others(juror: Juror) -> None:
    plain: Question = question()
    assert ask_of(juror, plain, "c").key == ask_of(juror, question(asks_again=True), "c").key
