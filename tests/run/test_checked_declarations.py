"""What is declared is checked where it is declared; rows with wrong values are left out, and are in the results."""

from typing import Any

import pytest
from pydantic import BaseModel

import pytest_llmeval as ev

ROW = {"id": "a", "input": "q", "expected": "x"}
TEXT = [ev.text(metrics=["f1"])]


class Ask(BaseModel):
    question: str
    number: int


@pytest.mark.parametrize(
    ("cases", "keys", "message"),
    [
        (
            lambda: ev.cases([{"q": "a"}], input="question"),
            {},
            "unknown column 'question'",
        ),
        (lambda: ev.cases([{"q": "a"}], input="q", labels=["topik"]), {}, "unknown column 'topik'"),
        (lambda: [{**ROW, "imput": "q"}], {}, r"found the key 'imput'.*did you mean 'input'"),
        (lambda: [ROW, ROW], {}, "found the id 'a' twice"),
        (lambda: [ev.Case("a", "q", "x"), ev.Case("a", "q", "x")], {}, "found the id 'a' twice"),
        (lambda: [ROW], {"gates": ["f2 >= 1"]}, r"test_checked_declarations\.py:\d+:1  gates\[0\].*metric f2"),
        (lambda: [ROW], {"thresholds": {"f2": 1}}, "thresholds.f2: unknown metric f2"),
        (lambda: [{**ROW, "thresholds": {"f2": 1}}], {}, "thresholds.f2: unknown metric f2"),
        (lambda: [ROW], {"gats": []}, "unknown key gats"),
        (lambda: [ROW], {"gats": None}, "unknown key gats"),
        (lambda: [ROW], {"group_by": ["topic"]}, "unknown label 'topic'"),
        (lambda: [ROW], {"evaluators": ["texxt"]}, "unknown evaluator texxt"),
        (lambda: [ROW], {"evaluators": [{"text": {"metrics": ["f3"]}}]}, "found the text 'f3'"),
        (lambda: "absent.csv", {}, "cannot be read"),
    ],
)
def test_a_wrong_name_is_refused_where_the_suite_is_declared(cases: Any, keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ev.SuiteError, match=message):
        ev.suite("s", cases=cases(), **{"evaluators": TEXT, **keys})


def test_functions_that_decorators_add_may_be_named_before() -> None:
    gates = ["mine >= 1", "check[polite] >= 1"]
    for keys in ({}, {"evaluators": TEXT}):
        suite: Any = ev.suite("s", cases=[ROW], gates=gates, **keys)

        @suite.evaluator
        def mine(_: Any) -> bool:
            return True

        @suite.check
        def polite(_: Any) -> bool:
            return True

        assert {gate.outcome for gate in suite.run(lambda _: "x", progress=False).gates} == {"passed"}


def test_rows_that_were_left_out_are_in_cases_and_frames() -> None:
    rows = [ROW, {**ROW, "id": "set", "labels": {1}}, {**ROW, "id": "b"}, 7]
    asked = []
    suite = ev.suite("s", cases=rows, evaluators=TEXT)
    with pytest.warns(UserWarning, match="cases left out"):
        result = suite.run(lambda question: asked.append(question) or "x", progress=False)
    assert len(asked) == 2
    found = {case.id: (case.outcome, case.reason) for case in result.cases}
    assert found == {
        "a": ("passed", None),
        "b": ("passed", None),
        "set": ("not_run", "[1].labels: found set, expected JSON data"),
        "4": ("not_run", "[3]: found int, expected a data frame, an Arrow table, a dataset, or an iterable of objects"),
    }
    frame = result.frame("polars")
    assert frame["id"].to_list() == ["a", "b", "set", "4"]
    assert frame["f1"].to_list() == [1, 1, None, None]
    assert (result.metrics["f1"].missing, len(result.to_dicts())) == (2, 4)
    assert "2 not run" in str(result)
    assert "found set, expected JSON data" in str(result)


@pytest.mark.parametrize("repeats", [1, 2])
def test_a_row_that_does_not_fit_its_type_is_in_the_results(repeats: int) -> None:
    rows = [{"question": "q", "number": number, "e": "x"} for number in (1, "many", 3)]
    suite = ev.suite("s", cases=ev.cases(rows, input=Ask, expected="e"), evaluators=TEXT, repeats=repeats)
    with pytest.warns(UserWarning, match="cases left out"):
        result = suite.run(lambda _: "x", progress=False)
    ((name, reason),) = ((case.id, case.reason) for case in result.cases if case.outcome == "not_run")
    assert name == "2"
    assert reason is not None
    assert "number: Input should be a valid integer" in reason
    assert result.frame("polars")["id"].to_list().count("2") == 1
