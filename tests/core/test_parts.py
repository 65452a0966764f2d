"""Parts of a prediction: where they are, what is missing, and what an evaluator sees."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from pytest_llmeval.core import MISSING, Case, Evaluator, Parts, PredictionError, Reading, Reads
from pytest_llmeval.core._case import record_in

RAG = {"answer": "Paris", "contexts": ["a", "b"], "usage": {"input_tokens": 3}}


@pytest.mark.parametrize(
    ("parts", "part", "prediction", "found"),
    [
        (Parts(), "answer", RAG, "Paris"),
        (Parts(), "contexts", RAG, ["a", "b"]),
        (Parts(), "answer", "Paris", "Paris"),
        (Parts(), "answer", 3, 3),
        (Parts(), "answer", {"answer": None}, None),
        (Parts(answer="output.text"), "answer", {"output": {"text": "Paris"}}, "Paris"),
        (Parts(contexts="hits[].text"), "contexts", {"hits": [{"text": "a"}, {"text": "b"}]}, ["a", "b"]),
        (Parts(contexts="hits[].text"), "contexts", {"hits": []}, []),
        (Parts(tool_calls="trace[?type=='tool']"), "tool_calls", {"trace": [{"type": "x"}]}, []),
        (Parts(answer="a"), "contexts", RAG, ["a", "b"]),
        (Parts(), "outcome", {"answer": "done", "outcome": {"status": "open"}}, {"status": "open"}),
        (Parts(outcome="state"), "outcome", {"answer": "done", "state": {"status": "open"}}, {"status": "open"}),
    ],
)
def test_a_part_is_what_its_expression_finds_or_the_key_of_its_name(
    parts: Parts, part: str, prediction: Any, found: Any
) -> None:
    assert parts.read(part, prediction) == found


@pytest.mark.parametrize(
    ("parts", "part", "prediction", "message"),
    [
        (
            Parts(),
            "contexts",
            {"answer": "Paris", "sources": []},
            "the prediction has the keys answer, sources; no 'contexts'; set parts.contexts",
        ),
        (Parts(), "contexts", "Paris", "the prediction is text; no 'contexts'; set parts.contexts"),
        (Parts(), "answer", {}, "the prediction is an empty object; no 'answer'; set parts.answer"),
        (
            Parts(answer="output.text"),
            "answer",
            {"output": {"txt": "Paris"}},
            "the prediction has the keys output; nothing at 'output.text', which parts.answer names",
        ),
        (Parts(answer="text"), "answer", None, "the prediction is null; nothing at 'text', which parts.answer names"),
        (
            Parts(),
            "answer",
            {f"k{number}": 0 for number in range(12)},
            (
                "the prediction has the keys k0, k1, k2, k3, k4, k5, k6, k7, k8, k9 and 2 more; "
                "no 'answer'; set parts.answer"
            ),
        ),
        (
            Parts(),
            "answer",
            {"a\x1b[31m": 0},
            r"the prediction has the keys a\x1b[31m; no 'answer'; set parts.answer",
        ),
    ],
)
def test_a_missing_part_is_an_error_that_says_what_the_prediction_has(
    parts: Parts, part: str, prediction: Any, message: str
) -> None:
    with pytest.raises(PredictionError) as caught:
        parts.read(part, prediction)
    assert str(caught.value) == message


def test_an_expression_that_cannot_be_evaluated_on_a_prediction_is_the_error_of_the_case() -> None:
    with pytest.raises(PredictionError, match="length"):
        Parts(answer="length(n)").read("answer", {"n": 3})


@pytest.mark.parametrize(
    ("parts", "expected", "seen"),
    [
        (Parts(), "Paris", "Paris"),
        (Parts(), {"answer": "Paris", "tool_calls": []}, "Paris"),
        (Parts(answer="output.text"), {"answer": "Paris"}, "Paris"),
        (Parts(answer="output.text"), {"output": {"text": "Paris"}}, "Paris"),
        (Parts(answer="output.text"), {"verdict": "no"}, {"verdict": "no"}),
        (Parts(), {"total": 3}, {"total": 3}),
        (Parts(), {"tool_calls": []}, None),
        (Parts(), {}, {}),
    ],
)
def test_what_is_expected_of_a_part_is_that_part_of_the_expectation_or_else_the_whole(
    parts: Parts, expected: Any, seen: Any
) -> None:
    reading = Reading(Reads("answer"), parts=parts)
    case = Case("a", expected=expected, prediction={"answer": "x", "output": {"text": "x"}})
    assert reading.view(case).expected == seen
    assert [each.expected for each in reading.expecting(Case("a", expected=expected))] == [seen]


@pytest.mark.parametrize(
    ("on", "prediction", "expected"),
    [
        ("contexts", ["a", "b"], "Paris"),
        ("output.summary", "short", "Paris"),
        ("prediction", {**RAG, "output": {"summary": "short"}}, "Paris"),
        ("@", {**RAG, "output": {"summary": "short"}}, "Paris"),
    ],
)
def test_an_entry_reads_another_part_or_any_expression(on: str, prediction: Any, expected: Any) -> None:
    case = Case("a", expected="Paris", prediction={**RAG, "output": {"summary": "short"}})
    view = Reading(Reads("answer"), on=on).view(case)
    assert (view.prediction, view.expected) == (prediction, expected)


def test_an_expression_looks_the_expectation_up_in_the_same_way() -> None:
    case = Case("a", expected={"output": {"summary": "s"}}, prediction={"output": {"summary": "t"}})
    view = Reading(Reads("answer"), on="output.summary").view(case)
    assert (view.prediction, view.expected) == ("t", "s")


def test_an_expression_that_cannot_be_evaluated_on_the_expectation_finds_nothing_there() -> None:
    reading = Reading(Reads("answer"), "join(' ', words)")
    case = Case("c", expected={"tool_calls": []}, prediction={"words": ["a", "b"]})
    assert (reading.view(case).prediction, reading.view(case).expected) == ("a b", None)


def test_an_expression_that_finds_nothing_is_an_error() -> None:
    with pytest.raises(PredictionError) as caught:
        Reading(Reads("answer"), on="output.summary").view(Case("a", prediction=RAG))
    assert str(caught.value) == (
        "the prediction has the keys answer, contexts, usage; nothing at 'output.summary', which 'on' names"
    )


def test_the_view_of_a_text_is_the_case_itself() -> None:
    case = Case("a", expected="Paris", prediction="Paris")
    assert Reading(Reads("answer")).view(case) is case
    assert Reading().view(case) is case


def test_a_view_keeps_all_parts_readable() -> None:
    view = Reading(Reads("answer")).view(Case("a", prediction=RAG))
    assert view.prediction == "Paris"
    assert dict(view.parts) == RAG
    assert view.parts.get("tool_calls") is None
    assert Case("a", prediction="Paris").parts["answer"] == "Paris"


def test_a_case_without_prediction_has_no_parts() -> None:
    case = Case("a", expected={"answer": "Paris"})
    assert dict(case.parts) == {}
    assert Reading(Reads("answer")).view(case).prediction is MISSING


def test_only_evaluators_that_read_objects_take_an_object_without_parts_as_the_answer() -> None:
    case = Case("a", prediction={"verdict": "no"})
    assert Reading(Reads("answer", objects=True)).view(case).prediction == {"verdict": "no"}
    for reading in (
        Reading(Reads("answer")),
        Reading(Reads("answer", objects=True), parts=Parts(answer="text")),
        Reading(Reads("contexts", objects=True)),
    ):
        with pytest.raises(PredictionError):
            reading.view(case)
    with pytest.raises(PredictionError, match="no 'answer'"):
        Reading(Reads("answer", objects=True)).view(Case("a", prediction={"contexts": []}))


def test_a_record_with_a_field_outcome_is_itself_the_answer() -> None:
    record = {"outcome": "won", "score": 3}
    reading = Reading(Reads("answer", objects=True))
    assert reading.view(Case("c", prediction=record, expected={"outcome": "won"})).prediction == record
    assert reading.view(Case("c", prediction=record, expected={"outcome": "won"})).expected == {"outcome": "won"}
    assert reading.view(Case("c", prediction=record, expected={"outcome": {"a": 1}})).expected is None


def test_an_evaluator_reads_the_part_that_its_class_declares() -> None:
    @dataclass(frozen=True)
    class Own(Evaluator):
        name = "own"
        reads = Reads("contexts")

        def describe(self) -> Any:
            return ()

        def measure(self, case: Case) -> Any:
            return case

        def summarize(self, sums: Any) -> Mapping[str, Any]:
            return sums

    assert Reading.for_evaluator(Own()).view(Case("a", prediction=RAG)).prediction == ["a", "b"]
    assert Reading.for_evaluator(Own(), on="answer").view(Case("a", prediction=RAG)).prediction == "Paris"


@pytest.mark.parametrize(
    ("expression", "place", "found"),
    [
        ("output..text", 7, "'.' at character 8"),
        ("foo((", 5, "its end too early"),
        ("", 0, "its end too early"),
        ("a #", 2, "'#' at character 3"),
        ("'x", 0, '"\'" at character 1'),
        ("(" * 50_000, 0, "'(' at character 1"),
        ("lenght(a)", 0, "lenght()"),
        ("length(a, b)", 0, "received 2"),
    ],
)
def test_the_fault_of_an_expression_has_its_place(expression: str, place: int, found: str) -> None:
    fault = Parts.path_fault(expression)
    assert fault is not None
    assert fault[0] == place
    assert found in fault[1]


@pytest.mark.parametrize("expression", ["a", "a.b[].c", "length(a)", "trace[?type=='tool']", "@", "{a: a, b: b}"])
def test_an_expression_that_parses_has_no_fault(expression: str) -> None:
    assert Parts.path_fault(expression) is None


@pytest.mark.parametrize(
    "record",
    [
        {"answer": {"n": 3, "unit": "kg"}, "n": 1},
        {"answer": 'Send {"n": 2} to it', "n": 1},
        {"answer": {"unit": "kg"}, "n": 1, "unit": "kg"},
    ],
)
def test_an_answer_that_shares_fields_with_its_record_is_not_the_record(record: Any) -> None:
    assert record_in(record, record) == record
    assert record_in({"answer": record, "usage": {}}, record) == record
