"""Evaluator ``judge`` with criteria: the judge writes steps once, and grades every answer by them."""

import json
from typing import Any

import pytest

from pytest_llmeval import Case, EvaluatorError, JudgeReply, JudgeRequest, get_evaluator, score
from pytest_llmeval.core import JudgeError
from pytest_llmeval.evaluators import Judge
from pytest_llmeval.evaluators.judge._criteria import read_steps
from pytest_llmeval.judges import Verdict

CASES = [Case(name, input="Where?", prediction=name) for name in "abc"]
STEPS = ["Look.", "Compare\nboth."]


class Scripted:
    """A judge that writes steps and then gives 4 of 5."""

    def __init__(self, steps: str = json.dumps({"steps": STEPS}), probabilities: Any = None) -> None:
        self.steps = steps
        self.probabilities = probabilities
        self.asked: list[dict[str, str]] = []

    def __call__(self, request: JudgeRequest) -> JudgeReply | str:
        self.asked.append(json.loads(request.messages[1].content[6:-7]))
        if request.reply_schema is not None and "steps" in request.reply_schema["properties"]:
            return self.steps
        return JudgeReply(json.dumps({"reasoning": "r", "score": 4}), probabilities=self.probabilities)


def criteria(**options: Any) -> Judge:
    built = get_evaluator("judge", **{"criteria": "Short and right.", **options})
    assert isinstance(built, Judge)
    return built


def test_the_steps_are_written_once_and_every_answer_is_graded_by_them() -> None:
    judge = Scripted()
    found = score(criteria(), CASES, judge=judge, max_workers=1)
    assert found.metrics["judge_score"].value == 0.75
    assert judge.asked[0] == {"criteria": "Short and right.", "grades": "a whole number from 1 to 5"}
    assert [each["answer"] for each in judge.asked[1:]] == ["a", "b", "c"]
    assert {each["steps"] for each in judge.asked[1:]} == {"1. Look.\n2. Compare both."}
    assert found.cases[0].details["judge"]["steps"] == STEPS


def test_parts_of_a_run_need_steps_that_are_the_same_in_all() -> None:
    with pytest.raises(EvaluatorError, match="partial=True with steps that the judge writes anew for every part"):
        score(criteria(), CASES, judge=Scripted(), partial=True)
    given = score(criteria(steps=STEPS), CASES, judge=Scripted(), partial=True)
    assert given.result().metrics["judge_score"].value == 0.75


def test_the_signature_names_the_criteria_and_the_steps() -> None:
    def signature(judge: Scripted, **options: Any) -> str:
        return score(criteria(**options), CASES, judge=judge).metrics["judge_score"].signature

    one = signature(Scripted())
    assert one.startswith("mode:criteria@1-")
    assert signature(Scripted()) == one
    others = [signature(Scripted('{"steps": ["Look."]}')), signature(Scripted(), criteria="Long.")]
    others.append(signature(Scripted(), reply={"score": {"min": 0, "max": 9, "integer": True}}))
    assert len({one, *others}) == 4
    declared = criteria().describe()[0]
    assert one.startswith(declared.signature + "|steps:")
    assert declared.describes(one)
    assert not declared.describes(others[1])


def test_steps_of_the_suite_are_used_in_place_of_the_judges_and_are_part_of_the_signature() -> None:
    judge = Scripted()
    found = score(criteria(steps=["Read.", "Grade."]), CASES, judge=judge)
    assert {each["steps"] for each in judge.asked} == {"1. Read.\n2. Grade."}
    assert (len(judge.asked), found.metrics["judge_score"].value) == (3, 0.75)
    signature = found.metrics["judge_score"].signature
    assert signature == criteria(steps=["Read.", "Grade."]).describe()[0].signature
    assert signature not in (criteria(steps=["Read."]).describe()[0].signature, criteria().describe()[0].signature)
    assert criteria(steps=["Read."]).most_follow_ups(CASES[0]) == 0


@pytest.mark.parametrize(
    "reply",
    [
        '{"steps": []}',
        '{"steps": "Look."}',
        '{"steps": ["Look.", ""]}',
        '{"steps": ["Look.", 2]}',
        json.dumps({"steps": ["x"] * 13}),
        '{"step": ["Look."]}',
        '{"steps": ["Look."]} or {"steps": ["Think."]}',
        "1. Look.",
    ],
)
def test_steps_that_cannot_be_read_are_an_error_of_every_case_and_no_score(reply: str) -> None:
    with pytest.raises(JudgeError):
        read_steps(reply)
    judge = Scripted(reply)
    found = score(criteria(), CASES, judge=judge)
    assert (found.metrics["judge_score"].value, found.metrics["judge_score"].errored) == (None, 3)
    assert len(judge.asked) == 2  # asked once more, and no answer is graded without steps


def test_the_language_is_that_of_the_criteria() -> None:
    case = Case("a", input="Where?", prediction="x")
    chinese = criteria(criteria="回答要简短。")
    (steps,) = chinese.questions(case)
    (grade,) = chinese.follow_up(case, [Verdict(1.0, "", {"steps": ["看。"]})])
    assert (steps.language, grade.language) == ("zh", "zh")
    assert steps.texts["grades"] == "1 到 5 的整数"
    assert steps.shared
    assert not grade.shared


def test_nothing_is_asked_about_a_case_after_its_grade() -> None:
    case, evaluator = CASES[0], criteria()
    steps, grade = Verdict(1.0, "", {"steps": ["x"]}), Verdict(4.0)
    assert evaluator.follow_up(case, [steps, grade]) == ()
    assert evaluator.follow_up(case, [JudgeError("down")]) == ()
    assert Judge(mode="continuous").follow_up(case, [grade]) == ()
    assert (evaluator.most_follow_ups(case), Judge(mode="tone").most_follow_ups(case)) == (1, 0)


def test_people_are_compared_with_grades_by_criteria() -> None:
    cases = [Case("a", input="?", prediction="x", expected={"reference": "y", "human": 4})]
    found = score(get_evaluator("judge_agreement", criteria="Short."), cases, judge=Scripted())
    assert found.metrics["agreement"].value == 1
    assert found.metrics["agreement"].signature.startswith("levels:1,2,3,4,5|mode:criteria@1-")
    assert "|steps:" in found.metrics["agreement"].signature


def test_the_expected_score_is_the_mean_over_token_probabilities() -> None:
    judge = Scripted(probabilities={"4": 0.6, "5": 0.2})
    found = score(criteria(score="expected"), CASES, judge=judge)
    assert found.metrics["judge_score"].value == pytest.approx((4.25 - 1) / 4)
    assert found.cases[0].details["judge"]["chosen"] == 4
    assert "+expected|" in found.metrics["judge_score"].signature


def test_a_preset_or_a_rubric_with_whole_numbers_has_expected_scores() -> None:
    levels = [{"score": 1, "meaning": "bad"}, {"score": 3, "meaning": "good"}]
    rubric = {"criteria": "Short.", "levels": levels, "pass_mark": 3}
    for mode, options, field in (("rubric", {"rubric": rubric}, "score"), ("summary_coverage", {}, "coverage")):
        asked: list[JudgeRequest] = []

        def judge(request: JudgeRequest, field: str = field, asked: list[JudgeRequest] = asked) -> JudgeReply:
            asked.append(request)
            return JudgeReply(json.dumps({"reasoning": "r", field: 3}), probabilities={"3": 0.5, "1": 0.5})

        found = score(get_evaluator("judge", mode=mode, score="expected", **options), CASES[:1], judge=judge)
        assert found.cases[0].details["judge"]["raw_score"] == 2
        assert asked[0].expected_of == field


def test_a_judge_without_probabilities_is_an_error_and_never_its_bare_score() -> None:
    found = score(criteria(score="expected"), CASES, judge=Scripted())
    assert (found.metrics["judge_score"].value, found.metrics["judge_score"].errored) == (None, 3)
    assert "the probabilities of the score's tokens are missing" in str(found.cases[0].reason)


def test_a_judge_of_the_users_own_that_returns_other_probabilities_is_an_error() -> None:
    found = score(criteria(score="expected"), CASES[:1], judge=Scripted(probabilities={"4": 3}))
    assert "JudgeReply with probabilities {'4': 3}, expected digits" in str(found.cases[0].reason)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "tone"}, "found criteria and mode, expected one of prompt, criteria and mode"),
        ({"prompt": "p.md", "reply": {"score": "boolean"}}, "found prompt and criteria, expected one"),
        ({"criteria": " "}, "criteria: found a blank text"),
        ({"steps": [" "]}, "steps: expected texts that are not blank, with criteria"),
        ({"steps": ["x"], "criteria": None}, "steps: expected texts that are not blank, with criteria"),
        (
            {"score": "expected", "reply": {"score": {"min": 0, "max": 1}}},
            "score: found 'expected', expected a score of",
        ),
        (
            {"score": "expected", "reply": {"score": {"min": 1, "max": 10, "integer": True}}},
            "whole numbers from 0 to 9 (integer: true)",
        ),
        ({"score": "expected", "reply": {"score": "boolean"}}, "whole numbers from 0 to 9 (integer: true)"),
        ({"score": "expected", "criteria": None, "mode": "tone"}, "whole numbers from 0 to 9 (integer: true)"),
        (
            {"score": "expected", "criteria": None, "mode": "continuous"},
            "expected it with prompt, criteria, a rubric or",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(EvaluatorError) as caught:
        criteria(**options)
    assert message in str(caught.value)
