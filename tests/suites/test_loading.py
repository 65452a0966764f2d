"""A suite file and the files that it names become a suite, or a list of everything that is wrong."""

from collections.abc import Callable
from pathlib import Path

import pytest
from builders import parse_gate

from pytest_llmeval import MISSING, Case, SuiteError
from pytest_llmeval.core import unknown_name
from pytest_llmeval.numbers import Threshold
from pytest_llmeval.suites import LoadedSuite, Registry, load_suite
from pytest_llmeval.targets import TargetSpec

Load = Callable[..., LoadedSuite]

F1 = "evaluators: [{text: {metrics: [f1]}}]\n"
ONE_CASE = "cases: [{id: a, expected: x, prediction: y}]\n"


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Write a suite file into the folder ``suites`` of the root and load it."""

    def write_and_load(text: str, name: str = "s.eval.yaml") -> LoadedSuite:
        path = tmp_path / "suites" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return load_suite(path, Registry.installed(), root=tmp_path, display_path=name)

    return write_and_load


@pytest.fixture
def faults(load: Load) -> Callable[[str], list[str]]:
    """Load a faulty suite and return its faults, whether they concern every case or some."""

    def of(text: str) -> list[str]:
        try:
            faults = load(text).faults
        except SuiteError as error:
            faults = error.faults
        return [str(fault) for fault in faults]

    return of


Faults = Callable[[str], list[str]]

EVERYTHING = """\
suite: capitals
description: Short questions
evaluators:
  - text: {metrics: [exact_match, f1]}
  - text: {as: words, metrics: [f1], tokenizer: whitespace}
  - classification
target: {python: "my_app.answers:App.answer", timeout: 2.5}
group_by: [kind]
mode: bulk
confidence: 0.9
thresholds: {f1: 0.5, words.f1: {min: 0.1, max: 0.9}}
gates:
  - mean(f1) >= 0.7
  - {metric: "recall[not good]", max: 1, by: year, min_cases: 3, max_errors: 1, partial: true}
cases:
  - id: paris
    input: {question: What is the capital of France?}
    expected: [Paris, paris]
    prediction: null
    labels: {kind: easy, year: 2022, sure: true}
    tags: [smoke, q-1]
    thresholds: {f1: {max: 0.4}}
  - {id: 7, expected: "no"}
  - {expected: no, prediction: 3}
"""


def test_everything_that_a_suite_file_can_say_arrives(load: Load) -> None:
    suite = load(EVERYTHING)
    assert (suite.name, suite.description, suite.bulk, suite.confidence) == ("capitals", "Short questions", True, 0.9)
    assert list(suite.evaluators) == ["text", "words", "classification"]
    assert suite.target == TargetSpec("my_app.answers:App.answer", 2.5)
    assert suite.group_by == ("kind", "year")
    assert suite.thresholds == {"f1": Threshold(min=0.5), "words.f1": Threshold(0.1, 0.9)}
    assert suite.gates[0] == parse_gate("mean(f1) >= 0.7")
    assert str(suite.gates[1]) == "recall[not good] <= 1 by year"
    assert (suite.gates[1].min_cases, suite.gates[1].max_errors, suite.gates[1].partial) == (3, 1, True)
    paris, seven, third = suite.cases
    assert paris == Case(
        "paris",
        input={"question": "What is the capital of France?"},
        expected=["Paris", "paris"],
        prediction=None,
        labels={"kind": "easy", "year": "2022", "sure": "true"},
        tags=("smoke", "q-1"),
        thresholds={"f1": Threshold(max=0.4)},
        line=16,
    )
    assert (seven.id, seven.prediction, third.id) == ("7", MISSING, "3")
    assert suite.limits(paris) == {"f1": Threshold(max=0.4), "words.f1": Threshold(0.1, 0.9)}
    assert suite.limits(seven) is suite.thresholds
    assert (suite.total, suite.faults) == (3, ())


@pytest.mark.parametrize(("name", "suite"), [("a.b.eval.yaml", "a.b"), ("x.eval.json", "x"), ("plain.yaml", "plain")])
def test_a_suite_is_called_as_its_file_unless_it_says_otherwise(load: Load, name: str, suite: str) -> None:
    text = '{"evaluators": ["text"], "cases": [{"id": "a", "expected": "x"}]}'
    assert load(text, name).name == suite


def test_no_and_its_like_stay_text(load: Load) -> None:
    answers = "[no, on, yes, off, 12:30:45, 010, 2024-01-01]"
    suite = load(f"{F1}cases: [{{id: a, expected: {answers}, prediction: off}}]\n")
    assert suite.cases[0].expected == ["no", "on", "yes", "off", "12:30:45", 10, "2024-01-01"]
    assert suite.cases[0].prediction == "off"


MANY_FAULTS = """\
suite: 3
evaluators:
  - text: {metrics: [f1], tokeniser: words}
  - clasification
  - text: {metrics: [f1]}
  - text: {metrics: [f1]}
  - text: {metrics: f1, as: other}
  - {text: {}, classification: {}}
targets: my_app:answer
target: my_app.answer
group_by: question_type
mode: item
confidence: 95
thresholds: {f1: high}
gates:
  - f1 > = 3
  - {metric: f1, by: x}
  - 7
source: {format: jsnol, path: x}
cases:
  - {id: a, expected: x, predicton: y}
  - 5
"""

EVALUATORS = sorted(Registry.installed())

GOLDEN = f"""\
s.eval.yaml:1:8  suite: found the number 3, expected text
s.eval.yaml:3:27  evaluators[0].text.tokeniser: unknown key tokeniser, did you mean tokenizer?
s.eval.yaml:4:5  evaluators[1]: unknown evaluator clasification, did you mean classification?
s.eval.yaml:6:5  evaluators[3]: found 'text' twice, expected distinct names: rename one with 'as' (as_= in Python)
s.eval.yaml:7:21  evaluators[4].text.metrics: found the text 'f1', expected a list
s.eval.yaml:8:5  evaluators[5]: found a mapping with 'text', 'classification', expected NAME or {{NAME: options}}
s.eval.yaml:9:1  targets: unknown key targets, did you mean target?
s.eval.yaml:10:9  target: found 'my_app.answer', expected MODULE:NAME such as 'my_app.answers:answer'
s.eval.yaml:11:11  group_by: found the text 'question_type', expected a list
s.eval.yaml:12:7  mode: found the text 'item' (did you mean 'items'?), expected one of 'items', 'bulk', 'test'
s.eval.yaml:13:13  confidence: found 95.0, expected a number between 0 and 1, such as 0.95
s.eval.yaml:14:18  thresholds.f1: found the text 'high', expected a number or {{min, max}}
s.eval.yaml:16:5  gates[0]: found 'f1 > = 3', expected METRIC OPERATOR NUMBER such as 'f1 >= 0.7' or 'mean(f1) >= 0.7' \
(operators >= > <= < ==; statistics mean, median, min, max, low, high, p0 to p100) (did you mean 'f1 >= 0.03'?)
s.eval.yaml:17:5  gates[1]: min or max is missing
s.eval.yaml:18:5  gates[2]: found the number 7, expected text such as 'f1 >= 0.7' or a mapping with 'metric'
s.eval.yaml:19:18  source.format: {unknown_name("format", "jsnol", Registry.installed().sources)}
s.eval.yaml:21:26  cases[0].predicton: unknown key predicton, did you mean prediction?
s.eval.yaml:22:5  cases[1]: found the number 5, expected a mapping"""


def test_all_faults_of_a_file_are_told_at_once_with_line_and_column(load: Load) -> None:
    with pytest.raises(SuiteError) as caught:
        load(MANY_FAULTS)
    assert str(caught.value) == GOLDEN


@pytest.mark.parametrize(("written", "id"), [("264.0", "264"), ("1e3", "1000"), ("'264.0'", "264.0"), ("-0.0", "0")])
def test_a_whole_number_is_an_id_however_it_is_written(load: Load, written: str, id: str) -> None:  # noqa: A002 (its name)
    assert [each.id for each in load(f"{F1}cases: [{{id: {written}, expected: x}}]\n").cases] == [id]


@pytest.mark.parametrize(
    ("case", "fault"),
    [
        ("{id: good, expected: x}", "4:5  cases[1]: found the id 'good' twice, expected it once (first in line 3)"),
        (
            "{id: a, expected: {a: 1}}",
            "4:5  cases[1]: case 'a', evaluator 'text': found an object, expected text or a list",
        ),
        ("{id: 'a::b'}", "4:5  cases[1]: found the id 'a::b' with '::', which pytest splits at"),
        ("{id: ''}", "4:5  cases[1]: found an empty id"),
        ("{id: 1.5}", "4:10  cases[1].id: found the number 1.5, expected text or a whole number"),
        ("{id: true}", "4:10  cases[1].id: found true, expected text or a whole number"),
        ("{tags: [not good]}", "4:5  cases[1]: found the tag 'not good', expected letters, digits, '-' and '_'"),
        ("{tags: [parametrize]}", "4:5  cases[1]: found the tag 'parametrize', which pytest reserves"),
        ("{tags: smoke}", "4:12  cases[1].tags: found the text 'smoke', expected a list"),
        (
            "{id: 'gate[f1 > 0]'}",
            "4:5  cases[1]: found the id 'gate[f1 > 0]', expected one that does not begin with 'gate[' or 'snapshot['",
        ),
        ("{labels: {a: [x]}}", "4:18  cases[1].labels.a: found a list of 1, expected text"),
        (
            "{thresholds: {f2: 1}}",
            "4:19  cases[1].thresholds.f2: unknown metric f2, did you mean f1?",
        ),
        ("{thresholds: {f1: {mni: 1}}}", "4:24  cases[1].thresholds.f1.mni: unknown key mni"),
        ("{thresholds: {f1: true}}", "4:23  cases[1].thresholds.f1: found true, expected a number or {min, max}"),
        ("null", "4:5  cases[1]: found nothing (null), expected a mapping"),
    ],
)
def test_a_faulty_case_is_told_and_the_others_run(load: Load, case: str, fault: str) -> None:
    suite = load(f"{F1}cases:\n  - {{id: good, expected: x}}\n  - {case}\n")
    assert [each.id for each in suite.cases] == ["good"]
    assert (suite.total, suite.faulty) == (2, 1)
    assert [str(each)[: len("s.eval.yaml:") + len(fault)] for each in suite.faults] == [f"s.eval.yaml:{fault}"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("- a\n", "1:1  found a list of 1, expected a mapping with 'evaluators' and 'cases' or 'source'"),
        (ONE_CASE, "1:1  evaluators or checks is missing"),
        ("evaluators: []\n" + ONE_CASE, "1:13  evaluators: found an empty list, expected at least one evaluator"),
        (F1 + "cases: []\n", "1:1  the suite has no case: add 'cases', or a 'source' with at least one"),
        (F1, "1:1  the suite has no case: add 'cases', or a 'source' with at least one"),
        (
            F1 + ONE_CASE + "group by: [x]\n",
            "3:1  ['group by']: unknown key 'group by', did you mean group_by?",
        ),
        (F1 + ONE_CASE + "confidence: 1\n", "3:13  confidence: found 1.0, expected a number between 0 and 1"),
        (
            F1 + ONE_CASE + "target: {python: 'a:b', timeout: 0}\n",
            "3:34  target.timeout: found 0.0, expected seconds above 0",
        ),
        (F1 + ONE_CASE + "target: 'a:b c'\n", "3:9  target: found 'a:b c', expected MODULE:NAME"),
        (F1 + ONE_CASE + "target: ':b'\n", "3:9  target: found ':b', expected MODULE:NAME"),
        (
            F1 + ONE_CASE + "gates: [f2 > 0]\n",
            "3:9  gates[0]: unknown metric f2, did you mean f1?",
        ),
        (F1 + ONE_CASE + "gates: [{metric: f2, min: 0}]\n", "3:18  gates[0].metric: unknown metric f2"),
        (F1 + ONE_CASE + "gates: [{min: 0}]\n", "3:9  gates[0]: metric is missing"),
        (
            F1 + ONE_CASE + "gates: [{metric: f1, min: 1, min_cases: 0}]\n",
            "3:9  gates[0]: found min_cases 0, expected at least 1",
        ),
        (
            F1 + ONE_CASE + "gates: [f1 > 0, f1 > 0.0]\n",
            "3:17  gates[1]: found the gate 'f1 > 0' twice, expected it once",
        ),
        (
            F1 + ONE_CASE + "thresholds: {f1: {min: 1, max: 0}}\n",
            "3:18  thresholds.f1: found min 1.0 above max 0.0, expected min <= max",
        ),
        (
            F1 + ONE_CASE + "thresholds: {f1: {}}\n",
            "3:18  thresholds.f1: min or max is missing",
        ),
        (
            F1 + ONE_CASE + "source: x.jsonl\n",
            "3:9  source: found the text 'x.jsonl', expected a mapping with 'format' and 'path'",
        ),
        (
            F1 + ONE_CASE + "source: {path: x}\n",
            "3:9  source: format is missing",
        ),
        (F1 + ONE_CASE + "source: {format: jsonl}\n", "3:9  source: path is missing"),
        (
            "evaluators: [{text: {as: 3}}]\n" + ONE_CASE,
            "1:26  evaluators[0].text.as: found the number 3, expected a name",
        ),
        (
            "evaluators: [{text: [f1]}]\n" + ONE_CASE,
            "1:21  evaluators[0].text: found a list of 1, expected a mapping of options",
        ),
    ],
)
def test_what_concerns_every_case_stops_the_suite(faults: Faults, text: str, fault: str) -> None:
    found = faults(text)
    assert len(found) == 1
    assert found[0].startswith(f"s.eval.yaml:{fault}")
