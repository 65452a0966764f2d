"""Questions in rounds: what is asked next depends on what was said."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from builders import Chain

from pytest_llmeval import Case, JudgedEvaluator, JudgeError, JudgeRequest, LlmevalError, Question, Verdict, score
from pytest_llmeval.core import BudgetError, Reading
from pytest_llmeval.judges import Asking, Judgement, Judgements, JudgePanel, JudgeReply, PanelQuestion
from pytest_llmeval.judges._panel import Juror
from pytest_llmeval.run._measuring import measure_answered

CASE = Case("c", prediction="x")


PANEL = JudgePanel.of_one(Juror("openai:m", {}, Judgements(Path("s.jsonl"))))


def about(evaluator: JudgedEvaluator, *views: Case) -> Asking:
    return Asking(evaluator, views, PANEL, "c")


def links(questions: Sequence[PanelQuestion]) -> list[str]:
    return [f"{each.question.texts['answer']} {each.question.texts['link']}" for each in questions]


def add(asking: Asking, *verdicts: Verdict | LlmevalError) -> None:
    asking.add([Judgement(each) for each in verdicts])


def test_each_round_sees_the_verdicts_of_all_before_it_and_an_empty_one_ends() -> None:
    asking = about(Chain(), CASE)
    assert links(asking.next()) == ["x first"]
    add(asking, Verdict(2))
    assert links(asking.next()) == ["x second"]
    add(asking, Verdict(0))
    assert asking.next() == []
    assert asking.verdicts == [[Verdict(2), Verdict(0)]]
    assert asking.next() == [], "what has ended does not begin again"


def test_turns_have_rounds_of_their_own() -> None:
    asking = about(Chain(), *(replace(CASE, prediction=each) for each in "ab"))
    assert links(asking.next()) == ["a first", "b first"]
    add(asking, Verdict(0), Verdict(1))
    assert links(asking.next()) == ["b second"]
    add(asking, Verdict(3))
    assert links(asking.next()) == ["b third"]
    add(asking, Verdict(5))
    assert asking.next() == []
    assert asking.verdicts == [[Verdict(0)], [Verdict(1), Verdict(3), Verdict(5)]]
    whole = [{"role": role, "content": said} for said in "ab" for role in ("user", "assistant")]
    talk = Case("t", prediction={"messages": whole}, conversation=True)
    measured = measure_answered(Chain(), talk, Reading.for_evaluator(Chain(), turn="each"), asking.verdicts)
    assert not isinstance(measured, Exception)
    assert dict(measured.counts) == {"links": 9, "n": 2}


def test_a_turn_about_which_nothing_was_asked_is_not_followed_up() -> None:
    class Silent(Chain):
        def questions(self, case: Case) -> Sequence[Question]:
            return super().questions(case) if case.prediction else []

    asking = about(Silent(), *(replace(CASE, prediction=each) for each in ("", "b")))
    assert links(asking.next()) == ["b first"]
    add(asking, Verdict(1))
    assert links(asking.next()) == ["b second"]


def test_whatever_keeps_a_question_from_being_answered_is_an_error_of_the_judge_to_what_follows() -> None:
    seen: list[Verdict | JudgeError] = []

    class Watching(Chain):
        def follow_up(self, case: Case, verdicts: Sequence[Verdict | JudgeError]) -> Sequence[Question]:
            seen.extend(verdicts)
            return super().follow_up(case, verdicts)

    asking = about(Watching(), CASE)
    asking.next()
    add(asking, BudgetError("spent"))
    assert asking.next() == []
    assert [(type(each), str(each)) for each in seen] == [(JudgeError, "spent")]


def test_an_evaluator_that_never_ends_to_ask_is_stopped() -> None:
    asking = about(Chain(("again",) * 100), CASE)
    rounds = 0
    while put := asking.next():
        rounds += 1
        add(asking, *[Verdict(1)] * len(put))
    assert (rounds, str(asking.error)) == (8, "evaluator 'chain' asks in more than 8 rounds")


def test_scores_from_python_ask_in_rounds_and_a_case_that_cannot_go_on_costs_no_other() -> None:
    asked: list[str] = []

    def judge(request: JudgeRequest) -> JudgeReply:
        asked.append(request.messages[-1].content)
        return JudgeReply("0" if '"stop"' in asked[-1] else "1")

    cases = [Case(each, prediction=each) for each in ("stop", "go")]
    result = score(Chain(), cases, judge=judge)
    assert [each.metrics["links"] for each in result.cases] == [0.0, 3.0]
    assert len(asked) == 4
    broken = score(Chain(("first", "broken")), cases, judge=judge)
    assert [each.metrics.get("links") for each in broken.cases] == [0.0, None]
    assert str(broken.cases[1].reason).startswith("ValueError: no such link")
