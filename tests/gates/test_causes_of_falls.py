"""The cause of a failed gate: the cases that got worse and the label that explains them."""

from typing import Any

from builders import gate, judge, run

from pytest_llmeval import Result
from pytest_llmeval.core import GateResult

SIZE = 60
API = range(3, 10)


def labelled(wrong: "set[int]", signed: str = "") -> Result:
    labels = ["api" if number in API else "billing" if number % 2 else "login" for number in range(SIZE)]
    return run([0.0 if number in wrong else 1.0 for number in range(SIZE)], labels, signed=signed)


def judged(worse: "set[int]", **settings: Any) -> GateResult:
    return judge(gate(0.02, **settings), labelled({50, *worse}), labelled({50}))


def test_a_failed_gate_names_the_cases_and_the_label_that_explain_it() -> None:
    verdict = judged({*API, 20, 40})
    assert verdict.outcome == "failed"
    lost = "c003, c004, c005, c006, c007, c008, c009"
    assert verdict.cause.startswith(
        f"score fell 0.9833 -> 0.8333 (limit 0.02). 9 cases worse, 7 of 7 with talk=api: {lost} and 2 more. p 0.0"
    )
    assert verdict.cause.endswith(verdict.reason.partition("significant, p ")[2].partition(";")[0] + ".")
    assert verdict.fallen == (*lost.split(", "), "c020", "c040")


def test_a_label_that_chance_explains_is_not_named() -> None:
    verdict = judged({*range(20, 34)})
    assert verdict.outcome == "failed"
    assert "14 cases worse: c020, c021, " in verdict.cause
    assert "talk=" not in verdict.cause


def test_the_groups_of_a_gate_have_their_own_causes() -> None:
    verdict = judged({*API, 20, 40}, by="talk")
    assert verdict.cause.startswith("api: score fell 1.0000 -> 0.0000 (limit 0.02). 7 cases worse: c003, c004, ")
    assert verdict.fallen == tuple(f"c{number:03}" for number in API)


def test_a_gate_that_passes_or_fails_for_another_reason_has_no_cause() -> None:
    assert judged(set()).cause == ""
    fault = judge(gate(0.02), labelled(set(API)), run([]))
    assert (fault.outcome, fault.cause, fault.fallen) == ("failed", "", ())
