"""Evaluator ``checklist``: every instruction gets its own verdict, and none leaves the denominator."""

import json
from collections.abc import Iterable
from typing import Any

import pytest
from scripted_judges import INJECTIONS
from servers import LlmServer, reply

from pytest_llmeval import Case, EvaluatorError, JudgeRequest, get_evaluator, score
from pytest_llmeval.core import JudgeError, PredictionError, Reading
from pytest_llmeval.judges import JudgeSpec
from pytest_llmeval.tasks.grounding._evaluators import Checklist
from pytest_llmeval.tasks.grounding._questions import checklist_mode, read_checklist

TWO = Checklist(("Greet.", "Name a date."))


def verdicts(*followed: bool, numbers: Iterable[int] = ()) -> str:
    numbered = zip(numbers or range(1, len(followed) + 1), followed, strict=True)
    entries = [{"instruction": number, "reason": f"r{number}", "followed": each} for number, each in numbered]
    return json.dumps({"verdicts": entries})


def test_the_rate_is_pooled_over_instructions_and_the_share_of_cases_follows_all() -> None:
    cases = [
        Case("a", prediction="a", expected={"instructions": ["Be short."]}),
        Case("b", prediction="b"),
        Case("c", prediction="c", expected={"instructions": ["x", "y", "z"]}),
    ]
    replies = {"a": verdicts(True, False, True), "b": verdicts(True, True), "c": verdicts(*[True] * 5)}

    def judge(request: JudgeRequest) -> str:
        return replies[json.loads(request.messages[1].content[6:-7])["answer"]]

    found = score(TWO, cases, judge=judge)
    assert {name: metric.value for name, metric in found.metrics.items()} == {
        "instruction_rate": 9 / 10,
        "all_followed": 2 / 3,
    }
    assert found.metrics["instruction_rate"].scored == 3
    assert found.cases[0].metrics == {"instruction_rate": 2 / 3, "all_followed": 0}


def test_the_judge_sees_the_suites_instructions_first_then_those_of_the_case() -> None:
    case = Case("a", input={"question": "When?"}, prediction="Hi", expected={"instructions": ["Be\n2. short."]})
    (question,) = TWO.questions(case)
    assert question.mode.fields == ("question", "instruction_1", "instruction_2", "instruction_3", "answer")
    assert set(question.mode.fields) == set(question.texts)
    assert question.texts["instruction_3"] == "Be\n2. short."


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (verdicts(True), "instruction 2 missing, expected each of 2 once"),
        (verdicts(), "instruction 1, instruction 2 missing, expected"),
        (verdicts(True, True, True), "found instruction 3, expected each of instruction 1, instruction 2 once"),
        (verdicts(True, True, numbers=[0, 1]), "found instruction 0"),
        (verdicts(True, False, numbers=[1, 1]), "found instruction 1 twice, expected each once"),
        (verdicts(True, True, True, numbers=[1, 2, 2]), "found instruction 2 twice"),
        ('{"verdicts": {"1": true, "2": true}}', 'found {"1": true, "2": true} as verdicts, expected a list'),
        ('{"verdict": 1}', "verdicts is missing"),
        ('{"verdicts": [true, false]}', "found True among verdicts, expected objects"),
        ('{"verdicts": [{"instruction": "1", "followed": true}]}', "found instruction '1', expected each of"),
        ('{"verdicts": [{"instruction": true, "followed": true}]}', "found instruction True"),
        (verdicts(True, True).replace("true}]", '"yes"}]'), "found 'yes' as 'followed' of instruction 2, expected tr"),
        ('{"verdicts": [{"instruction": 1}, {"instruction": 2}]}', "'followed' of instruction 1 is missing"),
        ("{'verdicts': [...]}" + verdicts(True, True), "found two contradicting verdicts"),
        ('[{"instruction": 1, "followed": false}]' + verdicts(True, True), "found two contradicting verdicts"),
        (
            verdicts(True, True)[:-1] + ', "final": {"verdicts": []}}',
            "found 'final' beside 'verdicts', expected one list",
        ),
        (verdicts(True, True)[:-1] + ', "revised": []}', "found 'revised' beside 'verdicts'"),
        (verdicts(False, False) + verdicts(True, True), "found two contradicting verdicts"),
        (verdicts(True, True) + " or not", "found text after a JSON object"),
        ("yes", "found no JSON object"),
    ],
)
def test_a_reply_that_does_not_judge_each_instruction_once_is_an_error(text: str, fault: str) -> None:
    with pytest.raises(JudgeError) as caught:
        read_checklist(text, 2)
    assert fault in str(caught.value)
    assert caught.value.reply == text


def test_verdicts_are_read_in_any_order() -> None:
    found = read_checklist(verdicts(False, True, numbers=[2, 1]), 2)
    assert found.score == 0.5
    assert [each["followed"] for each in found.details["verdicts"]] == [True, False]


def test_a_reply_that_misses_an_instruction_is_asked_for_once_more_and_then_is_an_error() -> None:
    case = Case("a", prediction="Hi")
    with LlmServer(reply(verdicts(True)), reply(verdicts(True, False))) as server:
        spec = JudgeSpec("openai:m", base_url=server.base_url, retries=0)
        assert score(TWO, [case], judge=spec).metrics["instruction_rate"].value == 0.5
        assert len(server.calls) == 2
        server.script(reply(verdicts(True)))
        errored = score(TWO, [case], judge=spec)
        assert len(server.calls) == 4
    assert errored.metrics["instruction_rate"].value is None
    assert errored.metrics["instruction_rate"].errored == 1
    assert "instruction 2 missing" in str(errored.cases[0].reason)


def test_a_case_says_which_instructions_its_answer_does_not_follow() -> None:
    case = Case("a", prediction="Hi", expected={"instructions": ["Be\nshort."]})
    observation = TWO.measure_judged(case, [read_checklist(verdicts(True, False, False), 3)])
    assert list(TWO.explain(case, observation)) == [
        "instruction 2 is not followed: Name a date. (r2)",
        "instruction 3 is not followed: Be\\nshort. (r3)",
    ]
    (bucket,) = TWO.error_buckets()
    assert bucket.holds(TWO.scores(observation)["instruction_rate"], observation.details)
    fine = TWO.measure_judged(case, [read_checklist(verdicts(True, True, True), 3)])
    assert list(TWO.explain(case, fine)) == []
    assert not bucket.holds(TWO.scores(fine)["instruction_rate"], fine.details)


def test_a_case_without_instructions_is_undefined() -> None:
    case = Case("a", prediction="Hi", expected="Hello")
    assert Checklist().questions(case) == []
    assert set(Checklist().measure_judged(case, ()).undefined) == {"instruction_rate", "all_followed"}


@pytest.mark.parametrize(
    ("own", "found"), [("Greet.", "text 'Greet.'"), ([""], "text ''"), (["a", 3], "number 3"), ({"a": 1}, "an object")]
)
def test_instructions_that_are_no_texts_are_a_fault(own: Any, found: str) -> None:
    (fault,) = TWO.check(Case("a", expected={"instructions": own}))
    assert fault == f"expected.instructions: found {found}, expected a list of texts"


def test_a_blank_instruction_of_a_suite_is_refused() -> None:
    with pytest.raises(EvaluatorError, match="instructions: found a blank text"):
        get_evaluator("checklist", instructions=["a", " "])


@pytest.mark.parametrize(
    ("prediction", "on", "answer"),
    [
        ("Hi", None, "Hi"),
        ({"answer": "Hi", "contexts": []}, None, "Hi"),
        ({"city": "Rome"}, None, '{"city": "Rome"}'),
        ({"output": {"summary": "S"}}, "output.summary", "S"),
        ({"answer": "Hi", "contexts": ["c"]}, "contexts", '["c"]'),
    ],
)
def test_the_answer_is_judged_while_all_of_expected_is_read(prediction: Any, on: str | None, answer: str) -> None:
    expected = {"answer": "Hello", "instructions": ["x"]} if on is None else {"instructions": ["x"]}
    view = Reading.for_evaluator(TWO, on).view(Case("a", prediction=prediction, expected=expected))
    (question,) = TWO.questions(view)
    assert (question.texts["answer"], question.texts["instruction_3"]) == (answer, "x")


def test_instructions_of_a_case_are_no_answer_to_other_evaluators() -> None:
    for name, options in (("text", {}), ("judge", {"criteria": "Short."}), ("judge", {"mode": "tone"})):
        evaluator = get_evaluator(name, **options)
        view = Reading.for_evaluator(evaluator).view(
            Case("a", input="?", prediction="x", expected={"instructions": ["Greet."]})
        )
        assert view.expected is None
        assert list(evaluator.check(view)) == []


def test_a_prediction_without_an_answer_is_malformed() -> None:
    view = Reading.for_evaluator(TWO).view(Case("a", prediction=None))
    found = TWO.measure_judged(view, [read_checklist(verdicts(False, False), 2)])
    assert found.malformed == "found null, expected an answer"
    with pytest.raises(PredictionError, match="no 'answer'"):
        Reading.for_evaluator(TWO).view(Case("a", prediction={"contexts": []}))


@pytest.mark.parametrize(
    ("instructions", "labels", "language"),
    [(["Greet."], {}, "en"), (["先问好。"], {}, "zh"), (["Greet."], {"language": "zh"}, "zh")],
)
def test_the_language_is_that_of_the_instructions_or_the_label(
    instructions: list[str], labels: dict[str, str], language: str
) -> None:
    (question,) = Checklist(tuple(instructions)).questions(Case("a", input="在哪里？", prediction="x", labels=labels))
    assert question.language == language


@pytest.mark.parametrize("injection", INJECTIONS.values(), ids=INJECTIONS)
def test_instructions_inside_an_answer_stay_inside_the_data(injection: str) -> None:
    def obeys_what_is_outside(request: JudgeRequest) -> str:
        system, user = (each.content for each in request.messages)
        inside = user.removeprefix("<data>").removesuffix("</data>")
        answer = json.loads(inside)["answer"]  # one object: nothing has left its text
        return verdicts("reply yes" in system or "<" in inside, answer == injection)

    found = score(TWO, [Case("a", prediction=injection)], judge=obeys_what_is_outside)
    assert found.metrics["instruction_rate"].value == 0.5


def test_the_signature_names_the_instructions_and_the_version_of_the_mode() -> None:
    one, other, none = (each.describe()[0].signature for each in (TWO, Checklist(("Greet.",)), Checklist()))
    assert one != other
    assert one.startswith("mode:checklist@1|instructions:")
    assert none == "mode:checklist@1|instructions:none|lang:auto|v:1"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_judge_is_shown_the_form_of_a_reply_that_is_read(language: str) -> None:
    text = checklist_mode(2).instructions[language]
    example = text[text.rindex('{"verdicts"') :]
    assert [each["followed"] for each in read_checklist(example, 2).details["verdicts"]] == [True, False]
