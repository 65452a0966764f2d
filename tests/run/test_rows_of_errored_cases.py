"""Tables of results: every case that went in comes out, also one without any score."""

from typing import Any

import pytest

import pytest_llmeval as ev

CASES = [{"id": name, "input": name, "expected": "Paris"} for name in ("a", "b", "c", "d")]


def test_tables_keep_cases_without_scores() -> None:
    def answer(question: str) -> str:
        if question in "bd":
            raise RuntimeError(f"no answer to {question}")
        return "Paris"

    suite = ev.suite("capitals", cases=CASES, evaluators=[ev.text(metrics=["f1", "exact_match"])])
    result = suite.run(answer, progress=False)
    rows = result.to_dicts()
    assert [(row["case"], row["metric"], row["value"]) for row in rows] == [
        (case, metric, 1.0 if case in "ac" else None) for case in "abcd" for metric in result.metrics
    ]
    assert all("no answer to b" in row["reason"] for row in rows if row["case"] == "b")
    assert {row["outcome"] for row in rows if row["case"] in "bd"} == {"errored"}
    table = result.scores("pandas")
    assert set(table["case"]) == set(result.scores("polars")["case"]) == set("abcd")
    assert set(result.scores("pyarrow")["case"].to_pylist()) == set("abcd")
    assert table["value"].isna().sum() == 4


def test_a_suite_without_any_score_has_a_row_for_each_case() -> None:
    def answer(question: str) -> str:
        raise RuntimeError(question)

    suite = ev.suite("capitals", cases=CASES, evaluators=[ev.text(metrics=["f1"])])
    assert list(dict.fromkeys(row["case"] for row in suite.run(answer, progress=False).to_dicts())) == list("abcd")


def test_cases_and_rows_have_the_figures_of_their_targets() -> None:
    def answer(question: str) -> Any:
        usage = {"input_tokens": 20, "output_tokens": 5, "cost_usd": 0.002} if question == "q0" else {}
        return {"answer": "Paris", "usage": usage}

    cases = [{"id": f"c{number}", "input": f"q{number}", "expected": "Paris"} for number in range(2)]
    result = ev.suite("capitals", cases=cases, evaluators=[ev.text(metrics=["f1"])]).run(answer)
    priced, unpriced = result.cases
    assert (priced.tokens, priced.cost_usd, unpriced.tokens, unpriced.cost_usd) == (25, 0.002, None, None)
    assert priced.latency_s is not None
    mean = result.usage["target_latency_s"].mean
    assert mean == pytest.approx((priced.latency_s + (unpriced.latency_s or 0)) / 2)
    rows = result.to_dicts()
    assert [(row["tokens"], row["cost_usd"]) for row in rows] == [(25, 0.002), (None, None)]
    assert result.scores("pandas")["latency_s"].notna().all()
    given = ev.score(ev.get_evaluator("text", metrics=["f1"]), [ev.Case("1", "q", "Paris", "Paris")])
    assert given.cases[0].latency_s is None
