"""One case from prediction to verdict: what becomes a record, and what passes through."""

import re
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from builders import Length, key_of, length_suite, parse_gate

from pytest_llmeval import Case, Evaluator, MissingDataError, Observation, PredictionError, get_evaluator
from pytest_llmeval.gates import DropGate
from pytest_llmeval.judges import JudgeOptions, SuiteJudges
from pytest_llmeval.numbers import Threshold
from pytest_llmeval.run import Execution, Job, LoadedCase
from pytest_llmeval.run import _execute as module
from pytest_llmeval.run._answering import Answering
from pytest_llmeval.run._job import CaseAnswer
from pytest_llmeval.services import Background
from pytest_llmeval.suites import LoadedSuite


def suite(*, limits: Mapping[str, Threshold] | None = None, **evaluators: Evaluator) -> LoadedSuite:
    return length_suite(evaluators=evaluators or {"length": Length()}, thresholds=limits or {})


def asked(answer: Any) -> Callable[[Case], Any]:
    def predict(_: Case) -> Any:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return predict


def execute(
    suite: LoadedSuite, case: Case, predict: Callable[[Case], Any], measure: module.Measure | None = None
) -> Execution:
    job = Job(LoadedCase(suite, case, key_of(suite)), 0, lambda: lambda _: predict(case))
    with closing(Background()) as background:
        answer = Answering(SuiteJudges(JudgeOptions(), background)).now(job)
    return module.execute(suite, answer, measure)


def run(answer: Any, *, expected: Any = "gold", **options: Any) -> Execution:
    return execute(suite(**options), Case("c", expected=expected), asked(answer))


def test_a_passing_case_has_its_prediction_observations_and_scores() -> None:
    execution = run("four")
    record = execution.record
    assert (execution.case.prediction, record.outcome, record.reason) == ("four", "passed", None)
    assert record.observations == {"length": Observation({"letters": 4})}
    assert execution.scores(suite()) == {"length": 4.0}


def test_a_case_that_passes_is_explained_only_for_reports_that_show_it() -> None:
    words = {"text": get_evaluator("text", metrics=["f1"])}
    answers = (CaseAnswer(Case("c", expected="a b", prediction="a c")),)

    def lines(limit: float, *, explains_all: bool) -> list[str]:
        checked = suite(limits={"f1": Threshold(min=limit)}, **words)
        return list(module.execute_repeats(checked, answers, explains_all=explains_all).record.lines)

    assert [lines(0, explains_all=explains) for explains in (True, False)] == [["text"], []]
    assert [lines(1, explains_all=explains) for explains in (True, False)] == [["text"], ["text"]]


def test_a_case_that_carries_its_prediction_asks_nobody() -> None:
    execution = execute(suite(), Case("c", expected="gold", prediction="abc"), asked(AssertionError("asked")))
    assert execution.record.outcome == "passed"


def test_a_prediction_of_null_is_a_prediction() -> None:
    execution = execute(suite(), Case("c", expected="gold", prediction=None), asked(AssertionError("asked")))
    assert execution.record.reason == "length: found None, expected text"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("no such model"), "ValueError: no such model"),
        (PredictionError("took longer than 2 s"), "took longer than 2 s"),
        (RecursionError("too deep"), "RecursionError: too deep"),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_whatever_a_target_raises_is_in_the_record(error: BaseException, reason: str) -> None:
    execution = run(error)
    record = execution.record
    assert execution.error is error
    place = "" if isinstance(error, PredictionError) else r" \(.*test_execute\.py:\d+ in predict\)"
    assert re.fullmatch(reason + place, record.reason or "")
    assert (record.outcome, record.errors) == ("errored", {"": record.reason})
    assert record.observations == {}
    assert execution.scores(suite()) == {}


def test_keyboard_interrupt_passes_through() -> None:
    with pytest.raises(KeyboardInterrupt):
        run(KeyboardInterrupt())


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        (len, "builtin_function_or_method"),
        (int, "type"),
        (iter([1]), "list_iterator"),
        ((n for n in [1]), "generator"),
    ],
)
def test_an_answer_that_is_no_value_is_an_error_of_the_case(answer: Any, name: str) -> None:
    record = run(answer).record
    assert record.outcome == "errored"
    assert record.reason is not None
    assert record.reason.startswith(f"the target returned {name}, expected a value")


@pytest.mark.parametrize(
    "answer",
    [
        object(),
        {1, 2},
        b"bytes",
        float("nan"),
        [float("inf")],
    ],
)
def test_an_answer_that_json_cannot_carry_is_scored(answer: Any) -> None:
    record = run(answer).record
    assert (record.outcome, record.errors) == ("failed", {})


def test_an_answer_that_contains_itself_is_an_error_of_the_case() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert run(endless).record.outcome == "errored"


def test_an_answer_becomes_what_a_recording_would_give_back() -> None:
    class Text(str):
        __slots__ = ()

    assert run({"a": (1, Text("x"))}).case.prediction == {"a": [1, "x"]}
    assert type(run(Text("x")).case.prediction) is str


def test_a_malformed_prediction_fails_with_its_reason_and_is_scored() -> None:
    execution = run({"answer": 4})
    assert (execution.record.outcome, execution.record.errors) == ("failed", {})
    assert execution.record.reason == "length: found {'answer': 4}, expected text"
    assert execution.scores(suite()) == {"length": 0.0}


def test_a_score_outside_its_limit_fails_the_case() -> None:
    execution = run("four", limits={"length": Threshold(min=5)})
    assert (execution.record.outcome, execution.record.reason) == ("failed", "length 4.0000, limit >= 5")
    assert [each.metric for each in execution.unmet] == ["length"]


def test_the_limits_of_a_case_replace_those_of_its_suite_by_metric() -> None:
    case = Case("c", expected="gold", prediction="four", thresholds={"length": Threshold(max=3)})
    strict = suite(limits={"length": Threshold(min=1), "other": Threshold(min=1)})
    assert execute(strict, case, asked("")).record.reason == "length 4.0000, limit <= 3"


def test_of_several_limits_those_of_metrics_that_gates_judge_are_named_first() -> None:
    judged = length_suite(
        evaluators={"length": Length(), "text": get_evaluator("text", metrics=["f1"])},
        thresholds={"length": Threshold(min=100), "f1": Threshold(min=1)},
        gates=(parse_gate("f1 >= 0.5"),),
    )
    execution = execute(judged, Case("c", expected="gold"), asked("four"))
    assert execution.record.reason == "f1 0.0000, limit >= 1; length 4.0000, limit >= 100"


@pytest.mark.parametrize(
    ("gates", "reason"),
    [
        (["f1 >= 0.5"], "length 3.0000, limit >= 100; lowers gate f1 >= 0.5: 0.4000"),
        (["f1 >= 0.5", "rouge1 >= 0.9"], "length 3.0000, limit >= 100; lowers gate rouge1 >= 0.9: 0.4000"),
        (["length >= 90", "f1 >= 0.5"], "length 3.0000, limit >= 100; lowers gate f1 >= 0.5: 0.4000"),
        (["f1 >= 0.4", "pass_rate >= 0.5"], "length 3.0000, limit >= 100"),
        ([DropGate("f1", 0.1)], "length 3.0000, limit >= 100; lowers gate drop(f1) <= 0.1: 0.4000"),
        ([replace(parse_gate("f1 >= 0.5"), system="other")], "length 3.0000, limit >= 100"),
    ],
)
def test_a_failing_case_names_the_metric_that_pulls_a_gate_down_most_even_without_a_limit_on_it(
    gates: list[Any], reason: str
) -> None:
    parsed = [parse_gate(each) if isinstance(each, str) else each for each in gates]
    judged = length_suite(
        evaluators={"length": Length(), "text": get_evaluator("text", metrics=["f1", "rouge1"])},
        thresholds={"length": Threshold(min=100)},
        gates=tuple(parsed),
    )
    execution = execute(judged, Case("c", expected="a b c"), asked("b x"))
    assert execution.record.reason == reason


def test_a_case_that_passes_does_not_fail_by_the_limit_of_a_gate() -> None:
    judged = length_suite(thresholds={"length": Threshold(min=1)}, gates=(parse_gate("length >= 90"),))
    assert execute(judged, Case("c", expected="gold"), asked("four")).record.outcome == "passed"


def test_an_undefined_score_is_held_against_no_limit() -> None:
    execution = run("four", expected=None, limits={"length": Threshold(min=5)})
    assert execution.record.outcome == "not_scored"
    assert execution.scores(suite()) == {"length": None}


@pytest.mark.parametrize("error", [ZeroDivisionError("oh"), MissingDataError("no WordNet: install it")])
def test_an_evaluator_that_raises_costs_its_own_metrics_only(error: Exception) -> None:
    both = suite(
        length=Length(),
        other=Length(error=error),
        limits={"length": Threshold(min=5), "other.length": Threshold(min=5)},
    )
    record = execute(both, Case("c", expected="gold"), asked("four")).record
    assert record.outcome == "errored"
    assert list(record.observations) == ["length"]
    ((label, why),) = record.errors.items()
    assert label == "other"
    assert re.fullmatch(rf"{type(error).__name__}: {error} \(.*builders\.py:\d+ in measure\)", why)
    assert record.reason == f"other: {why}; length 4.0000, limit >= 5"


def test_renamed_evaluators_have_their_limits_and_scores_under_their_names() -> None:
    renamed = suite(mine=Length(), limits={"mine.length": Threshold(min=9)})
    execution = execute(renamed, Case("c", expected="gold"), asked("four"))
    assert execution.scores(renamed) == {"mine.length": 4.0}
    assert execution.record.reason == "mine.length 4.0000, limit >= 9"


def test_measuring_can_be_done_by_somebody_else() -> None:
    seen: list[tuple[str, Any]] = []

    def measure(_: LoadedSuite, label: str, evaluator: Evaluator, case: Case) -> Observation:
        seen.append((label, case.prediction))
        return evaluator.measure(case)

    execution = execute(suite(), Case("c", expected="gold"), asked("four"), measure)
    assert execution.scores(suite()) == {"length": 4.0}
    assert seen == [("length", "four")]


def test_execution_knows_nothing_of_pytest() -> None:
    assert "pytest" not in vars(sys.modules["pytest_llmeval.run._execute"])
