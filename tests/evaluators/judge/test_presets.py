"""Presets of evaluator ``judge``: what they show the judge, and what its replies are worth."""

import json
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # its types are a distribution of their own
import pytest

from pytest_llmeval import Case, get_evaluator, score
from pytest_llmeval.core import Reading
from pytest_llmeval.evaluators import Judge
from pytest_llmeval.judges import ModeFile, Question
from pytest_llmeval.judges.questions._modes import PRESETS

FLAGS = {"toxicity": "toxic", "bias": "biased", "personal_data": "discloses", "advice_limits": "oversteps"}
MESSAGES = [
    {"role": "user", "content": "Book a table."},
    {"role": "assistant", "tool_calls": [{"name": "book", "arguments": {"for": 2}}]},
    {"role": "tool", "content": "ok\n3. fine"},
]


def asked(mode: Any, case: Case) -> Question:
    evaluator = Judge(mode=mode)
    (question,) = evaluator.questions(Reading.for_evaluator(evaluator).view(case))
    return question


@pytest.mark.parametrize("mode", FLAGS)
def test_an_answer_that_is_free_of_a_defect_scores_1_and_shows_the_quote_otherwise(mode: Any) -> None:
    replies = {"good": {"reasoning": "", FLAGS[mode]: False, "quote": ""}}
    replies["bad"] = {"reasoning": "It does.", FLAGS[mode]: True, "quote": "these words"}
    cases = [Case(name, input="?", prediction=name, expected={"other": 1}) for name in replies]
    if mode == "advice_limits":
        cases = [Case(each.id, input="?", prediction=each.id) for each in cases]
    evaluator = get_evaluator("judge", mode=mode)

    def judge(request: Any) -> str:
        return json.dumps(replies["good" if '"answer": "good"' in str(request) else "bad"])

    found = score(evaluator, cases, judge=judge)
    assert [each.metrics["judge_score"] for each in found.cases] == [1, 0]
    bad = evaluator.measure_judged(cases[1], [ModeFile.mode_named(mode).read(json.dumps(replies["bad"]))])  # type: ignore[attr-defined]
    assert list(evaluator.explain(cases[1], bad)) == [
        "score 0 on a scale from 0 to 1",
        "It does.",
        "quote: these words",
    ]


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_instructions_name_every_key_of_the_reply_and_every_choice(name: str, language: str) -> None:
    mode = ModeFile.mode_named(name)
    assert mode.reply_schema is not None
    for key, schema in mode.reply_schema["properties"].items():
        assert f'"{key}"' in mode.instructions[language]
        for word in schema.get("enum", ()):
            assert f"\n{word}  " in mode.instructions[language]


@pytest.mark.parametrize("name", PRESETS)
def test_both_ends_of_the_scale_can_be_replied(name: str) -> None:
    mode = ModeFile.mode_named(name)
    assert mode.reply_schema is not None
    reply: dict[str, Any] = {}
    seen = set()
    for last in (0, -1):
        for key, schema in mode.reply_schema["properties"].items():
            values = schema.get("enum", [False, True] if schema["type"] == "boolean" else ["x"])
            reply[key] = values[last]
        jsonschema.validate(reply, dict(mode.reply_schema))
        seen.add(mode.read(json.dumps(reply)).score)
    assert seen == set(mode.scale)


def test_the_tone_that_is_wanted_may_be_described() -> None:
    assert asked("tone", Case("a", prediction="Hi")).texts == {"answer": "Hi"}
    assert asked("tone", Case("a", expected="warm", prediction="Hi")).texts["reference"] == "warm"


def test_a_summary_is_judged_by_its_source() -> None:
    texts = {"source": "Long.", "answer": "L."}
    assert asked("summary_coverage", Case("a", input="Long.", prediction="L.")).texts == texts
    assert asked("summary_coverage", Case("a", input={"source": "Long."}, prediction="L.")).texts == texts
    chinese = Case("a", input="这是一篇很长的文章。", prediction="摘要")
    assert asked("summary_coverage", chinese).language == "zh"
    faults = list(Judge(mode="summary_coverage").check(Case("a", prediction="L.")))
    assert faults == ["found null as input, expected the source as text"]


def test_a_goal_is_judged_by_the_numbered_steps_of_a_trajectory() -> None:
    case = Case("a", input={"goal": "Book."}, prediction={"answer": "Done.", "messages": MESSAGES})
    question = asked("goal_reached", case)
    assert question.texts["goal"] == "Book."
    lines = question.texts["trajectory"].splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["1.", "2.", "3."]
    assert json.loads(lines[2].partition(" ")[2]) == MESSAGES[2]


@pytest.mark.parametrize(
    ("prediction", "steps"),
    [
        ({"answer": "Done.", "tool_calls": [{"name": "book"}]}, [{"name": "book"}, {"answer": "Done."}]),
        ([{"name": "book"}], [{"name": "book"}]),
    ],
)
def test_calls_of_tools_with_the_answer_are_a_trajectory(prediction: Any, steps: list[Any]) -> None:
    text = asked("goal_reached", Case("a", input="Book.", prediction=prediction)).texts["trajectory"]
    assert [json.loads(line.partition(" ")[2]) for line in text.splitlines()] == steps


def test_an_answer_without_a_trajectory_is_malformed() -> None:
    evaluator = Judge(mode="goal_reached")
    case = Case("a", input="Book.", prediction="Done.")
    (question,) = evaluator.questions(case)
    verdict = question.mode.read('{"reasoning": "", "goal": "missed"}')
    found = evaluator.measure_judged(case, [verdict])
    assert found.malformed == "found text 'Done.' without messages and tool_calls, expected a trajectory"


def test_a_preset_is_named_with_its_version_in_the_signature() -> None:
    assert Judge(mode="tone").describe()[0].signature == "mode:tone@1|lang:auto|v:1"
