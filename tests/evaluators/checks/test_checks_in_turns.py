"""Checks of single turns of a conversation."""

from collections.abc import Iterator
from typing import Any

import pytest
from examples import met, observed, unmet

from pytest_llmeval import Case
from pytest_llmeval.core import JudgeError, Parts
from pytest_llmeval.core._case import PredictionParts
from pytest_llmeval.evaluators import CheckReader, Checks
from pytest_llmeval.evaluators.checks._reading import Unlocated
from pytest_llmeval.judges import Verdict

SAID = ("red wine", "red beer", "blue beer")
TALK: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": "Serve."},
        *(
            {"role": role, "content": text}
            for answer in SAID
            for role, text in (("user", f"Say {answer}."), ("assistant", answer))
        ),
    ],
    "answer": SAID[-1],
}


def in_turn(turn: Any, **check: Any) -> dict[str, Any]:
    return {**check, "turn": turn}


def ready(*entries: Any) -> Any:
    host = Unlocated()
    read = CheckReader(Checks.kinds(), host).read(entries, ("checks",))
    assert not host.faults
    return Checks.of_checks(read)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (in_turn(1, contains="red"), True),
        (in_turn(3, contains="red"), False),
        (in_turn("last", contains="blue"), True),
        (in_turn("last", not_contains="blue"), False),
        (in_turn("each", contains="e"), True),
        (in_turn("each", contains="red"), False),
        (in_turn("each", not_contains="green"), True),
        (in_turn("each", not_contains="wine"), False),
        (in_turn("each", any_of=[{"contains": "wine"}, {"contains": "beer"}]), True),
        ({"any_of": [in_turn("each", contains="wine"), in_turn("each", contains="beer")]}, False),
        ({"all_of": [in_turn(1, contains="wine"), in_turn(2, contains="beer")]}, True),
        (in_turn(1, contains="Say red", on="messages[0].content"), True),
        (in_turn(4, contains="e"), None),
        (in_turn(1, contains="e", on="contexts"), None),
    ],
)
def test_a_check_of_turns_is_met_if_it_is_met_in_each_of_them(entry: Any, expected: bool | None) -> None:
    assert met(entry, TALK) is expected


def test_a_check_of_each_turn_counts_once_and_names_the_turns_that_fail_it() -> None:
    assert observed(in_turn("each", contains="e", weight=2), TALK).counts["weight"] == 2
    assert unmet(in_turn("each", contains="red", name="red"), TALK) == (
        "red: turn 3: found 'blue beer', expected contains: 'red'"
    )
    assert unmet(in_turn("last", contains=["red", "wine"]), TALK) == (
        "turn 3: found 'blue beer', expected contains: 'red'; found 'blue beer', expected contains: 'wine'"
    )


def test_a_turn_that_does_not_exist_and_an_answer_that_is_no_conversation_are_errors() -> None:
    assert observed(in_turn(4, contains="e"), TALK).errored["check_rate"] == (
        "contains: 'e': the conversation has 3 turns, expected turn 4"
    )
    assert observed(in_turn("each", contains="e"), {"answer": "e"}).errored["check_rate"] == (
        "contains: 'e': the prediction has the keys answer; no 'messages'; set parts.messages"
    )


def test_turns_are_found_where_parts_say() -> None:
    origin = PredictionParts(Parts(messages="log"), {"log": TALK["messages"]})
    case = Case("a", prediction=origin.prediction, origin=origin)
    assert ready(in_turn("last", equals="blue beer")).measure(case).counts["met"] == 1


def test_a_judge_is_asked_about_each_turn_and_its_verdicts_keep_their_order() -> None:
    checks = ready(in_turn("each", judge="Is red."), {"judge": "Is blue."})
    case = Case("a", prediction=TALK)
    asked = checks.questions(case)
    assert [(each.texts["question"], each.texts["answer"]) for each in asked[:3]] == [
        (f"Say {answer}.", answer) for answer in SAID
    ]
    assert [each.texts["criterion"] for each in asked] == ["Is red."] * 3 + ["Is blue."]

    def replies() -> Iterator[Verdict | JudgeError]:
        yield from (Verdict(1), Verdict(0, "It is pale."), JudgeError("busy"), Verdict(1))

    found = checks.measure_judged(case, list(replies()))
    assert found.malformed == "turn 2: found the judge's no: 'It is pale.', expected judge: 'Is red.'"
    assert found.counts["met"] == 1
    lost = checks.measure_judged(case, [Verdict(1), Verdict(1), JudgeError("busy"), Verdict(1)])
    assert lost.errored["check[judge]"] == "turn 3: judge: 'Is red.': busy"


@pytest.mark.parametrize("turn", [0, -1, True, 1.5, "first", None, [1]])
def test_a_turn_of_another_form_is_a_fault(turn: Any) -> None:
    host = Unlocated()
    CheckReader(Checks.kinds(), host).read([{"contains": "x", "turn": turn}], ("checks",))
    (fault,) = host.faults
    assert fault.startswith("checks[0].turn: found ")
    assert fault.endswith(", expected last, each, or the number of a turn, counted from 1")
