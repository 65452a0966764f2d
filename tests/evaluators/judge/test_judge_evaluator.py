"""Evaluator ``judge``: what is asked about a case, and what verdicts mean."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval import Case, EvaluatorError, Observation, SuiteError, get_evaluator
from pytest_llmeval.core import JudgeError, Totals
from pytest_llmeval.evaluators import Judge
from pytest_llmeval.evaluators._rubric import Level, Rubric
from pytest_llmeval.judges import ModeFile, Question, TypedQuestion, Verdict
from pytest_llmeval.judges.questions._replies import FLAGS
from pytest_llmeval.suites import Registry, load_suite

RUBRIC = Rubric("Politeness", (Level(1, "rude"), Level(3, "neutral"), Level(5, "polite")), pass_mark=3)


def case(**changes: Any) -> Case:
    fields: dict[str, Any] = {"id": "a", "input": "Where?", "expected": "Paris", "prediction": "In Paris"}
    return Case(**{**fields, **changes})


def asked(evaluator: Judge, **changes: Any) -> Question:
    (question,) = evaluator.questions(case(**changes))
    return question


def measure(evaluator: Judge, *verdicts: Verdict | JudgeError, **changes: Any) -> Observation:
    return evaluator.measure_judged(case(**changes), verdicts)


def pooled(evaluator: Judge, observations: Sequence[Observation]) -> dict[str, float]:
    columns = evaluator.summarize(Totals.add_up(observations).sums())
    return {name: float(column[0]) for name, column in columns.items()}


CONTINUOUS = Judge(mode="continuous")


@pytest.mark.parametrize(
    ("changes", "texts"),
    [
        ({}, {"question": "Where?", "reference": "Paris", "answer": "In Paris"}),
        ({"input": {"question": "Where?", "conversation": ["x"]}}, {"question": "Where?"}),
        ({"input": {"q": "什么"}}, {"question": '{"q": "什么"}'}),
        ({"input": ["a", 1]}, {"question": '["a", 1]'}),
        ({"input": 7}, {"question": "7"}),
        ({"expected": ["Paris", "Lutetia"]}, {"reference": "- Paris\n- Lutetia"}),
        ({"expected": ["Paris", " "]}, {"reference": "Paris"}),
        ({"expected": 7.5}, {"reference": "7.5"}),
        ({"prediction": ""}, {"answer": ""}),
        ({"prediction": True}, {"answer": "true"}),
        ({"prediction": {"city": "巴黎"}}, {"answer": '{"city": "巴黎"}'}),
        ({"prediction": None}, {"answer": ""}),
    ],
)
def test_a_judge_sees_question_reference_and_answer_as_text(changes: dict[str, Any], texts: dict[str, str]) -> None:
    assert texts.items() <= asked(CONTINUOUS, **changes).texts.items()


@pytest.mark.parametrize("question_type", TypedQuestion.MODES)
def test_mode_auto_routes_by_question_type(question_type: str) -> None:
    labels = {"question_type": question_type}
    names = [each.mode.name for each in Judge().questions(case(labels=labels))]
    assert names == ([] if question_type == "adversarial" else [TypedQuestion.MODES[question_type]])
    assert asked(Judge(), id="a_abs", labels=labels).mode.name == "abstention"


@pytest.mark.parametrize(
    ("options", "changes", "language"),
    [
        ({}, {}, "en"),
        ({}, {"input": "他住在哪里？"}, "zh"),
        ({}, {"labels": {"language": "zh-CN"}}, "zh"),
        ({}, {"input": "他住在哪里？", "labels": {"language": "en"}}, "en"),
        ({"language": "en"}, {"input": "他住在哪里？", "labels": {"language": "zh"}}, "en"),
        ({"language": "zh"}, {}, "zh"),
    ],
)
def test_the_language_is_that_of_the_option_the_label_or_the_script(
    options: dict[str, Any], changes: dict[str, Any], language: str
) -> None:
    assert asked(Judge(mode="continuous", **options), **changes).language == language


@pytest.mark.parametrize(
    ("options", "changes", "fault"),
    [
        ({}, {"labels": {"question_type": "single-hop"}}, "unknown question type single-hop"),
        ({"mode": "continuous"}, {"expected": {"a": 1}}, "found an object as expected, expected text or a list"),
        ({"mode": "continuous"}, {"input": None}, "found null as input, expected the question as text"),
        ({"mode": "explanation"}, {"input": ""}, "found text '' as input, expected the claim as text"),
        ({"mode": "explanation"}, {"expected": [1]}, "found a list as expected, expected text or {verdict, just"),
    ],
)
def test_a_case_that_cannot_be_judged_is_a_fault(options: dict[str, Any], changes: dict[str, Any], fault: str) -> None:
    evaluator = Judge(**options)
    (found,) = evaluator.check(case(**changes))
    assert fault in found
    with pytest.raises(EvaluatorError, match=r"found|unknown"):
        evaluator.questions(case(**changes))


def test_a_case_that_can_be_judged_has_no_fault() -> None:
    assert list(CONTINUOUS.check(case())) == []
    assert list(Judge().check(case(id="x_abs"))) == []
    assert list(Judge(mode="adversarial").check(case(input=None, expected=None))) == []
    assert list(Judge(mode="rubric", rubric=RUBRIC).check(case(input=None, expected=None))) == []


def test_the_value_of_a_suite_is_the_mean_score() -> None:
    scores = [measure(CONTINUOUS, Verdict(score, "why")) for score in (0.2, 0.4, 0.9)]
    assert pooled(CONTINUOUS, scores) == {"judge_score": pytest.approx(0.5)}
    assert scores[0].details == {"mode": "continuous", "reasoning": "why"}


def test_details_keep_those_of_the_verdict() -> None:
    details = measure(CONTINUOUS, Verdict(1.0, "", {"tone": 1.7})).details
    assert details == {"mode": "continuous", "tone": 1.7}


def test_details_keep_the_beginning_of_long_reasons() -> None:
    reasoning = measure(CONTINUOUS, Verdict(1.0, "why " * 10_000)).details["reasoning"]
    assert reasoning == "why " * 500 + "..."


@pytest.mark.parametrize(("prediction", "score"), [("Not mentioned.", 1.0), ("In Paris", 0.0), ("", 1.0), (None, 1.0)])
def test_an_adversarial_question_is_judged_by_rule(prediction: str | None, score: float) -> None:
    labels = {"question_type": "adversarial"}
    observation = Judge().measure(case(prediction=prediction, expected=None, labels=labels))
    assert Judge().scores(observation) == {"judge_score": score}
    assert observation.details == {"mode": "adversarial"}
    assert (observation.malformed is None) is (prediction is not None)


@pytest.mark.parametrize("expected", [None, "", " ", [], [" "]])
def test_a_case_without_reference_is_undefined_and_asks_nothing(expected: Any) -> None:
    observation = CONTINUOUS.measure(case(expected=expected))
    assert observation == Observation({}, undefined={"judge_score": "no expected answer"})
    assert CONTINUOUS.scores(observation) == {"judge_score": None}


@pytest.mark.parametrize("evaluator", [Judge(mode="abstention"), Judge(mode="rubric", rubric=RUBRIC)])
def test_some_modes_can_do_without_a_reference(evaluator: Judge) -> None:
    assert set(asked(evaluator, expected=None).texts) == {"question", "answer"}


def test_an_answer_that_needs_a_judge_cannot_be_measured_alone() -> None:
    with pytest.raises(EvaluatorError, match="evaluator 'judge' needs a judge"):
        CONTINUOUS.evaluate("In Paris", "Paris", "Where?")
    assert Judge(mode="adversarial").evaluate("unknown", None)["judge_score"] == 1.0


def test_a_judge_without_verdict_is_an_error_and_not_a_score() -> None:
    with pytest.raises(JudgeError, match="no"):
        measure(CONTINUOUS, JudgeError("no"))


@pytest.mark.parametrize(("prediction", "found"), [(None, "null"), (Case("x").prediction, "nothing")])
def test_no_answer_is_malformed_and_judged_as_the_empty_one(prediction: Any, found: str) -> None:
    assert asked(CONTINUOUS, prediction=prediction).texts["answer"] == ""
    observation = measure(CONTINUOUS, Verdict(0.0), prediction=prediction)
    assert observation.malformed == f"found {found}, expected an answer"
    assert observation.counts == {"score": 0.0, "n": 1}


def test_levels_of_a_rubric_are_brought_to_the_range_from_0_to_1_and_compared_with_the_pass_mark() -> None:
    evaluator = Judge(mode="rubric", rubric=RUBRIC)
    observations = [measure(evaluator, Verdict(score)) for score in (1.0, 3.0, 5.0)]
    assert [evaluator.scores(each) for each in observations] == [
        {"judge_score": 0.0, "judge_pass": 0.0},
        {"judge_score": 0.5, "judge_pass": 1.0},
        {"judge_score": 1.0, "judge_pass": 1.0},
    ]
    assert observations[1].details == {"mode": "rubric", "raw_score": 3.0}
    assert pooled(evaluator, observations) == {"judge_score": 0.5, "judge_pass": pytest.approx(2 / 3)}


def explained(score: float, *found: str) -> Verdict:
    return Verdict(score, "why", {flag: flag in found for flag in FLAGS})


@pytest.mark.parametrize(
    ("prediction", "texts", "malformed"),
    [
        ("Because.", {"justification": "Because."}, None),
        ({"verdict": "Refuted", "justification": "So."}, {"verdict": "Refuted", "justification": "So."}, None),
        ({"verdict": "Refuted"}, {"verdict": "Refuted", "justification": ""}, "an object without a justification"),
        ({"justification": "So.", "evidence_sources": ["x"]}, {"justification": "So.", "sources": "x"}, None),
        (["x"], {"justification": ""}, "a list"),
        (None, {"justification": ""}, "null"),
    ],
)
def test_an_explanation_is_a_justification_with_or_without_a_verdict(
    prediction: Any, texts: dict[str, str], malformed: str | None
) -> None:
    evaluator = Judge(mode="explanation")
    changes = {"input": {"claim": "It rains."}, "expected": None, "prediction": prediction}
    assert asked(evaluator, **changes).texts == {"claim": "It rains.", **texts}
    observation = measure(evaluator, explained(50), **changes)
    assert observation.malformed == (malformed and f"found {malformed}, expected text or {{verdict, justification}}")


@pytest.mark.parametrize(
    ("expected", "texts"),
    [
        ("Since.", {"gold_justification": "Since."}),
        ({"verdict": "Supported", "more": 1}, {"gold_verdict": "Supported"}),
        (
            {"verdict": "Supported", "justification": "Since."},
            {"gold_verdict": "Supported", "gold_justification": "Since."},
        ),
        ({"evidence_sources": ["Chart of\nthe bay", " ", 7]}, {"gold_sources": "Chart of the bay"}),
        ({"evidence_sources": "a text"}, {}),
    ],
)
def test_an_explanation_is_shown_beside_what_people_wrote(expected: Any, texts: dict[str, str]) -> None:
    question = asked(Judge(mode="explanation"), input="It rains.", expected=expected, prediction="x")
    assert question.texts == {"claim": "It rains.", "justification": "x", **texts}


def test_defects_are_shares_of_explanations() -> None:
    evaluator = Judge(mode="explanation")
    observations = [measure(evaluator, explained(80, "fabrication")), measure(evaluator, explained(100))]
    values = pooled(evaluator, observations)
    assert values.pop("judge_score") == 0.9
    assert values == {f"defect[{flag}]": 0.5 if flag == "fabrication" else 0.0 for flag in FLAGS}
    assert observations[0].details == {
        "mode": "explanation",
        "reasoning": "why",
        "flags": ["fabrication"],
        "raw_score": 80,
    }
    assert [(each.name, each.higher_is_better) for each in evaluator.describe()] == [
        ("judge_score", True),
        ("defect[label]", False),
    ]


def test_prompts_of_question_types_and_the_original_rule_are_options(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("Is {{ answer }} near {{ expected }}?")
    judge = Judge(prompts={"temporal_reasoning": str(tmp_path / "t.txt")}, unanswerable="original")
    dated = Case("c", "When?", "May", "June", labels={"question_type": "temporal_reasoning"})
    (question,) = judge.questions(dated)
    assert (question.mode.instructions["en"], question.texts) == (
        "Is `answer` near `expected`?",
        {"answer": "June", "expected": "May"},
    )
    assert judge.measure_judged(dated, [question.mode.read("yes")]).counts["score"] == 1
    asked = Case("a", "Where?", "", "I don't know", labels={"question_type": "adversarial"})
    assert judge.measure_judged(asked, []).counts["score"] == 0
    assert Judge().measure_judged(asked, []).counts["score"] == 1
    assert "|unanswerable:original|" in judge.signature()
    assert "|prompts:temporal_reasoning@" in judge.signature()
    with pytest.raises(ValueError, match="expected prompts with mode auto"):
        Judge(mode="continuous", prompts={"temporal": "t.txt"})


def test_the_signature_names_modes_with_their_versions() -> None:
    def signatures(**options: Any) -> list[str]:
        return [metric.signature for metric in Judge(**options).describe()]

    assert signatures(mode="continuous") == ["mode:continuous@1|lang:auto|v:1"]
    assert signatures(mode="adversarial", language="zh") == ["mode:adversarial@2|lang:zh|v:1"]
    routed = "abstention@1,adversarial@2,continuous@1,default_binary@1,knowledge_update@1,preference@1"
    assert signatures() == [f"mode:auto({routed},temporal_reasoning@1)|lang:auto|v:1"]
    score, passed = signatures(mode="rubric", rubric=RUBRIC)
    assert score.startswith("mode:rubric@1-")
    assert passed == f"pass_mark:3|{score}"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "rubric"}, "found no rubric with mode rubric, expected both or neither"),
        (
            {"rubric": {"criteria": "c", "levels": [{"score": 0, "meaning": "a"}], "pass_mark": 1}},
            "rubric: found levels",
        ),
        (
            {"mode": "continous"},
            r"mode: found the text 'continous' \(did you mean 'continuous'\?\), expected one of 'auto'",
        ),
        ({"mode": "rubric", "rubric": {"criteria": "c", "pass_mark": 1}}, "levels is missing"),
        ({"mode": "rubric", "rubric": {"criterion": "c"}}, "unknown key criterion"),
    ],
)
def test_wrong_options_are_told(options: dict[str, Any], message: str) -> None:
    with pytest.raises(EvaluatorError, match=message):
        get_evaluator("judge", **options)


def test_a_rubric_without_its_mode_is_told() -> None:
    with pytest.raises(ValueError, match="found a rubric with mode continuous, expected both or neither"):
        Judge(mode="continuous", rubric=RUBRIC)


SUITE = """\
evaluators:
  - judge:
      mode: rubric
      rubric:
        criteria: Is the answer polite?
        levels:
          - {score: 0, meaning: rude}
          - {score: 1, meaning: polite}
        pass_mark: 1
gates: [judge_pass >= 0.5, judge_score >= 0.5]
cases:
  - {id: a, input: Hello?, prediction: Good morning}
"""


def test_a_case_without_a_question_type_is_judged_right_or_wrong() -> None:
    assert asked(Judge()).mode == ModeFile.mode_named("default_binary")
    assert asked(Judge(), labels={"question_type": "knowledge_update"}).mode == ModeFile.mode_named("knowledge_update")


def test_a_suite_file_can_say_a_rubric(tmp_path: Path) -> None:
    path = tmp_path / "s.eval.yaml"
    path.write_text(SUITE)
    suite = load_suite(path, Registry.installed(), root=tmp_path)
    assert suite.faults == ()
    (evaluator,) = suite.evaluators.values()
    assert isinstance(evaluator, Judge)
    assert evaluator.questions(suite.cases[0])[0].mode.scale == (0.0, 1.0)


def test_faults_of_a_suite_have_their_place(tmp_path: Path) -> None:
    path = tmp_path / "s.eval.yaml"
    path.write_text(SUITE.replace("pass_mark: 1", "pass_mark: 2"))
    with pytest.raises(SuiteError, match=r"s\.eval\.yaml:5:9  evaluators\[0\]\.judge\.rubric: found pass_mark 2"):
        load_suite(path, Registry.installed(), root=tmp_path)
    path.write_text("evaluators: [judge]\ncases:\n  - {id: a, input: q, expected: {n: 1}, prediction: x}\n")
    with pytest.raises(
        SuiteError, match=r"s\.eval\.yaml:3:5  cases\[0\]: .*found an object as expected, expected text"
    ):
        load_suite(path, Registry.installed(), root=tmp_path)
