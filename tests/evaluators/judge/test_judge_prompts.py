"""Evaluator ``judge`` with a prompt and a form of replies of the user's own."""

import json
from pathlib import Path
from typing import Any

import pytest
from project import load_text

from pytest_llmeval import MISSING, Case, EvaluatorError, JudgeRequest, SuiteError, get_evaluator, score
from pytest_llmeval.core import Reading
from pytest_llmeval.evaluators import Judge
from pytest_llmeval.judges import Question

REPLY = {"reason": "text", "score": {"min": 1, "max": 5, "integer": True}, "clear": {"good": False}}
SUITE = """
evaluators:
  - judge: {prompt: prompts/my_judge.md, reply: {score: {min: 1, max: 5}, reason: text}}
cases:
  - {id: a, input: {question: Where?}, prediction: Here.}
"""


def written(folder: Path, text: str = "Grade {{ answer }} to {{ input.question }}.") -> Path:
    path = folder / "prompts" / "my_judge.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def judge(folder: Path, text: str = "Grade {{ answer }} to {{ input.question }}.", **options: Any) -> Judge:
    built = get_evaluator("judge", prompt=str(written(folder, text)), reply=options.pop("reply", REPLY), **options)
    assert isinstance(built, Judge)
    return built


def asked(evaluator: Judge, **changes: Any) -> Question:
    fields: dict[str, Any] = {"id": "a", "input": {"question": "Where?"}, "prediction": "Here."}
    (question,) = evaluator.questions(Reading.for_evaluator(evaluator).view(Case(**{**fields, **changes})))
    return question


def test_scores_are_shares_of_the_scale_and_further_fields_are_metrics(tmp_path: Path) -> None:
    replies = iter(
        ["""{"reason": "ok", "score": 4, "clear": false}""", """{"reason": "", "score": 2, "clear": true}"""]
    )
    cases = [Case(name, input={"question": "?"}, prediction=name) for name in "ab"]

    def answer(request: JudgeRequest) -> str:
        assert '"input.question": "?"' in str(request)
        return next(replies)

    found = score(judge(tmp_path), cases, judge=answer, max_workers=1)
    values = {name: metric.value for name, metric in found.metrics.items()}
    assert values == {"judge_score": (0.75 + 0.25) / 2, "judge_field[clear]": 0.5}
    assert found.cases[0].details["judge"] == {"mode": "prompt", "reasoning": "ok", "reply": {"clear": False}} | {
        "raw_score": 4.0
    }


def test_a_case_below_the_best_grade_shows_reason_and_fields(tmp_path: Path) -> None:
    evaluator = judge(tmp_path)
    case = Case("a", input={"question": "Where?"}, prediction="Here.")
    verdict = asked(evaluator).mode.read('{"reason": "Vague.", "score": 2, "clear": true}')
    lines = evaluator.explain(case, evaluator.measure_judged(case, [verdict]))
    assert lines == ["score 2 on a scale from 1 to 5", "Vague.", "clear: true"]


@pytest.mark.parametrize(
    ("name", "changes", "text"),
    [
        ("answer", {"prediction": {"answer": ["x"], "contexts": ["c"]}}, '["x"]'),
        ("contexts", {"prediction": {"answer": "x", "contexts": ["c"]}}, '["c"]'),
        ("contexts.0", {"prediction": {"answer": "x", "contexts": ["c"]}}, "c"),
        ("prediction.meta.n", {"prediction": {"answer": "x", "meta": {"n": 3}}}, "3"),
        ("expected.tone", {"expected": {"tone": "warm"}}, "warm"),
        ("labels.kind", {"labels": {"kind": "faq"}}, "faq"),
        ("input", {}, '{"question": "Where?"}'),
        ("question", {}, "Where?"),
        ("reference", {"expected": ["a", "b"]}, "- a\n- b"),
    ],
)
def test_a_placeholder_names_a_part_of_the_case(tmp_path: Path, name: str, changes: dict[str, Any], text: str) -> None:
    evaluator = judge(tmp_path, f"{{{{ answer }}}} {{{{ {name} }}}}")
    assert asked(evaluator, **changes).texts[name] == text


@pytest.mark.parametrize("name", ["input.topic", "labels.kind"])
def test_a_case_that_lacks_what_the_prompt_names_is_a_fault(tmp_path: Path, name: str) -> None:
    evaluator = judge(tmp_path, f"{{{{ answer }}}} {{{{ {name} }}}}")
    case = Case("a", input={"question": "Where?"}, prediction=MISSING)
    assert list(evaluator.check(case)) == [f"{name} is missing, and my_judge.md names it"]
    with pytest.raises(EvaluatorError, match=f"{name} is missing"):
        evaluator.questions(case)


def test_a_case_without_the_expected_part_is_undefined(tmp_path: Path) -> None:
    evaluator = judge(tmp_path, "{{ answer }} {{ expected.tone }}")
    case = Case("a", expected={"other": 1}, prediction="x")
    assert evaluator.questions(case) == []
    observation = evaluator.measure_judged(case, ())
    assert observation.undefined == {"judge_score": "no expected.tone"}
    assert list(evaluator.check(case)) == []


@pytest.mark.parametrize(
    ("prediction", "malformed"),
    [
        (None, "found null, expected answer, as my_judge.md names it"),
        ({"answer": "x"}, "found a prediction without contexts, expected contexts, as my_judge.md names it"),
    ],
)
def test_a_prediction_that_lacks_what_the_prompt_names_is_malformed(
    tmp_path: Path, prediction: Any, malformed: str
) -> None:
    evaluator = judge(tmp_path, "{{ answer }}" if prediction is None else "{{ answer }} {{ contexts }}")
    case = Reading.for_evaluator(evaluator).view(Case("a", prediction=prediction))
    (question,) = evaluator.questions(case)
    verdict = question.mode.read('{"reason": "", "score": 1, "clear": true}')
    assert evaluator.measure_judged(case, [verdict]).malformed == malformed


@pytest.mark.parametrize(
    ("text", "options", "language"),
    [
        ("Grade {{ answer }}.", {}, "en"),
        ("请为 {{ answer }} 评分。", {}, "zh"),
        ("Grade {{ answer }}.", {"language": "zh"}, "zh"),
    ],
)
def test_the_language_is_that_of_the_prompt(tmp_path: Path, text: str, options: dict[str, Any], language: str) -> None:
    assert asked(judge(tmp_path, text, **options), input="在哪里？", labels={"language": "zh"}).language == language


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"prompt": "p.md"}, "found a prompt without reply, expected both"),
        ({"reply": REPLY}, "found reply without prompt or criteria"),
        (
            {"prompt": "p.md", "reply": REPLY, "mode": "tone"},
            "found prompt and mode, expected one of prompt, criteria and mode",
        ),
        ({"prompt": "p.md", "reply": {"score": "txt"}}, "found the text 'txt' (did you mean 'text'?), expected"),
        ({"prompt": "p.md", "reply": {"score": {"mni": 1}}}, "unknown key mni, did you mean min?"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(EvaluatorError) as caught:
        get_evaluator("judge", **options)
    assert message in str(caught.value)


def test_a_suite_names_its_prompt_relative_to_itself(tmp_path: Path) -> None:
    path = written(tmp_path)
    suite = load_text(SUITE, tmp_path)
    evaluator = suite.evaluators["judge"]
    before = evaluator.describe()[0].signature
    assert evaluator.questions(suite.cases[0])[0].texts == {"answer": "Here.", "input.question": "Where?"}  # type: ignore[attr-defined]
    path.write_text("Be strict with {{ answer }}.", encoding="utf-8")
    assert load_text(SUITE, tmp_path).evaluators["judge"].describe()[0].signature != before


def faults(text: str, folder: Path) -> list[str]:
    with pytest.raises(SuiteError) as caught:
        load_text(text, folder)
    return [str(fault) for fault in caught.value.faults]


def test_faults_of_a_prompt_name_its_file_and_line(tmp_path: Path) -> None:
    written(tmp_path, "Grade\n{{ anwser }}.")
    (fault,) = faults(SUITE, tmp_path)
    assert "my_judge.md:2:1  unknown placeholder anwser" in fault
    assert "did you mean answer?" in fault


def test_a_prompt_outside_the_folder_and_a_missing_one_are_faults_of_the_suite(tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("{{ answer }}", encoding="utf-8")
    inner = tmp_path / "suites"
    inner.mkdir()
    (fault,) = faults(SUITE.replace("prompts/my_judge.md", "../secret.md"), inner)
    assert "evaluators[0].judge.prompt: found '../secret.md', which is outside the folder 'suites'" in fault
    (fault,) = faults(SUITE, inner)
    assert "my_judge.md  cannot be read" in fault


def test_a_form_that_cannot_be_used_is_a_fault_with_its_place(tmp_path: Path) -> None:
    written(tmp_path)
    (fault,) = faults(SUITE.replace("{min: 1, max: 5}", "{min: 5, max: 1}"), tmp_path)
    assert ":3:" in fault
    assert "reply.score: found min 5 and max 1, expected min < max" in fault


def test_people_are_compared_on_the_grades_of_the_form(tmp_path: Path) -> None:
    written(tmp_path)
    compared = get_evaluator("judge_agreement", prompt=str(written(tmp_path)), reply=REPLY)
    signature = compared.describe()[0].signature
    assert signature.startswith("levels:1,2,3,4,5|mode:prompt@")
    case = Case("a", input={"question": "?"}, prediction="x", expected={"reference": None, "human": 5})
    found = score(compared, [case], judge=lambda _: json.dumps({"reason": "", "score": 4, "clear": True}))
    assert found.metrics["bias"].value == -1
