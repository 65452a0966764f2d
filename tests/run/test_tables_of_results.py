"""Results as data frames, as text and in notebooks: every case, its texts, scores and figures."""

import asyncio
import math
import sys
from types import SimpleNamespace
from typing import Any

import pytest

import pytest_llmeval as ev
from pytest_llmeval.core import MissingExtraError, Result
from pytest_llmeval.run import SuiteResult

CASES = [
    {"id": "a", "input": "q1", "expected": "Paris", "labels": {"kind": "easy"}},
    {"id": "b", "input": {"question": "q2"}, "expected": "Rome"},
    {"id": "c", "input": "q3", "labels": {"area": "北"}},
]
USAGE = '{"input_tokens": 20, "output_tokens": 5, "cost_usd": 0.5}'
LIBRARIES: Any = ("pandas", "polars", "pyarrow")


def answer(value: Any) -> Any:
    if value == {"question": "q2"}:
        raise RuntimeError("no <b>answer</b>")
    return {"answer": "Paris", "note": "\ud800", "usage": {"input_tokens": 20, "output_tokens": 5, "cost_usd": 0.5}}


def polite(_: Any) -> ev.Score:
    return ev.Score(1, reason="is polite")


def run(**more: Any) -> SuiteResult:
    keys: dict[str, Any] = {"evaluators": [ev.text(metrics=["f1"]), polite], "cases": CASES, **more}
    return ev.suite("capitals", **keys).run(answer)


def rows(frame: Any) -> list[dict[str, Any]]:
    """Return the rows of a frame of any library, with `None` for what is absent."""
    found = frame.to_pylist() if hasattr(frame, "to_pylist") else None
    if found is None:
        found = frame.to_dicts() if hasattr(frame, "to_dicts") else frame.to_dict("records")
    return [
        {name: None if isinstance(each, float) and math.isnan(each) else each for name, each in row.items()}
        for row in found
    ]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_frame_has_a_row_for_each_case_with_texts_scores_reasons_and_figures(library: Any) -> None:
    first, second, third = rows(run().frame(library))
    assert first.pop("latency_s") > 0
    assert first == {
        "id": "a",
        "system": "",
        "repeat": 0,
        "outcome": "passed",
        "reason": None,
        "input": '"q1"',
        "expected": "Paris",
        "prediction": f'{{"answer": "Paris", "note": "\\ud800", "usage": {USAGE}}}',
        "tokens": 25,
        "cost_usd": 0.5,
        "label.area": None,
        "label.kind": "easy",
        "f1": 1.0,
        "reason.f1": None,
        "polite": 1.0,
        "reason.polite": "is polite",
    }
    assert (second["outcome"], second["f1"], second["prediction"], second["tokens"]) == ("errored", None, None, None)
    assert "no <b>answer</b>" in second["reason"]
    assert second["reason.f1"] == second["reason"]
    assert second["input"] == '{"question": "q2"}'
    assert (third["label.area"], third["expected"], third["reason.f1"]) == ("北", None, "no expected answer")


def test_a_frame_of_texts_has_the_texts() -> None:
    cases = [ev.Case("a", "q", "Paris", "It is Paris."), ev.Case("b", "q", "Rome", "")]
    result = ev.score(ev.get_evaluator("text", metrics=["f1"]), cases)
    assert [row["prediction"] for row in rows(result.frame("polars"))] == ["It is Paris.", ""]
    assert [row["input"] for row in rows(result.frame("pandas"))] == ["q", "q"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_frame_has_a_row_for_each_repeat_with_its_own_answer(library: Any) -> None:
    answers = iter(["Paris", "London", RuntimeError("down"), "Paris"])

    def fickle(_: str) -> Any:
        if isinstance(each := next(answers), Exception):
            raise each
        return each

    cases = [{"id": name, "input": "q", "expected": "Paris"} for name in "ab"]
    keys: Any = {"repeats": 2, "target": {"concurrency": 1}, "evaluators": [ev.text(metrics=["f1"])]}
    result = ev.suite("capitals", cases=cases, thresholds={"f1": 0.5}, **keys).run(fickle)
    table = rows(result.frame(library))
    assert [(row["id"], row["repeat"], row["prediction"], row["f1"], row["outcome"]) for row in table] == [
        ("a", 1, "Paris", 1.0, "passed"),
        ("a", 2, "London", 0.0, "failed"),
        ("b", 1, None, None, "errored"),
        ("b", 2, "Paris", 1.0, "passed"),
    ]
    assert "down" in table[2]["reason"]
    assert all(row["latency_s"] is not None for row in table if row["outcome"] != "errored")


def test_metrics_with_names_of_columns_have_columns_of_their_own() -> None:
    def outcome(_: Any) -> float:
        return 0.5

    table = rows(run(evaluators=[outcome], cases=CASES[:1]).frame("polars"))
    assert (table[0]["outcome"], table[0]["metric.outcome"]) == ("passed", 0.5)


@pytest.mark.parametrize("library", LIBRARIES)
def test_scores_are_the_long_form_with_all_labels_and_errored_cases(library: Any) -> None:
    result = run()
    table = rows(result.scores(library))
    assert [(row["case"], row["metric"]) for row in table] == [(c, m) for c in "abc" for m in ("f1", "polite")]
    assert {row["label.kind"] for row in table} == {"easy", None}
    assert {row["label.area"] for row in table} == {"北", None}
    assert [row["value"] for row in table] == [row["value"] for row in result.to_dicts()]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_result_without_cases_has_empty_frames(library: Any) -> None:
    result = ev.score(ev.get_evaluator("text", metrics=["f1"]), [])
    assert rows(result.frame(library)) == rows(result.scores(library)) == []
    assert "metric" in str(result.scores("pandas").columns)


def test_numbers_too_large_for_frames_are_text() -> None:
    cases = [ev.Case("a", "q", 10**30, 10**30), ev.Case("b", "q", 1.5, 2)]
    result = ev.score(ev.get_evaluator("classification"), cases)
    assert [row["expected"] for row in rows(result.frame("polars"))] == [str(10**30), "1.5"]


def test_frames_of_other_libraries_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run()
    with pytest.raises(ValueError, match="found library 'panda', expected one of pandas, polars, pyarrow"):
        result.frame("panda")  # type: ignore[arg-type]  # (the mistake)
    assert type(result.frame()).__module__.startswith("pandas")
    monkeypatch.setitem(sys.modules, "narwhals", None)
    with pytest.raises(MissingExtraError, match="frames"):
        result.frame()


def test_cases_of_a_run_that_was_cut_short_are_in_the_frame() -> None:
    suite = ev.suite(
        "s", cases=[{"id": str(n), "input": n} for n in range(5)], evaluators=[polite], target={"concurrency": 1}
    )

    def slow(value: int) -> str:
        if value == 2:
            raise KeyboardInterrupt
        return "x"

    with pytest.raises(KeyboardInterrupt):
        suite.run(slow)
    assert suite.last_result is not None
    table = rows(suite.last_result.frame("polars"))
    assert [row["input"] for row in table] == list(range(5))
    assert {row["outcome"] for row in table[3:]} == {"not_run"}


def test_a_printed_result_is_a_bounded_table_with_gates() -> None:
    result = run(gates=["f1 >= 0.9"])
    text = str(result)
    assert text.splitlines()[:2] == ["capitals", "3 cases: 2 passed, 1 errored; pass rate 0.6667"]
    assert text.splitlines()[2].split() == ["metric", "value", "interval", "mean", "scored", "no", "score", "errors"]
    assert "errored b: RuntimeError: no <b>answer</b>" in text
    assert "gate FAILED" in text

    def many(_: Any) -> dict[str, float]:
        return {f"k{number}" * 40: 1 for number in range(300)}

    cases = [{"id": str(number) * 400, "input": "q"} for number in range(300)]
    broken = ev.suite("s", cases=cases, evaluators=[many], checks=[ev.contains("y")]).run(lambda _: "x")
    assert len(str(broken)) < 6_000
    assert "more metrics in metrics" in str(broken)
    assert len(repr(broken)) < 1_000
    assert len(broken._repr_html_()) < 30_000


def test_a_printed_result_shows_no_control_characters_and_html_is_escaped() -> None:
    def evil(_: Any) -> ev.Score:
        return ev.Score(label="<script>\x1b[31m")

    result = run(evaluators=[evil], cases=CASES[:1], gates=["evil_is[<script>\x1b[31m] >= 0.5"])
    assert "\x1b" not in str(result)
    html = result._repr_html_()
    assert "<script>" not in html
    assert "\x1b" not in html
    assert "&lt;script&gt;" in html


def test_the_repr_of_a_result_is_short_and_does_not_build_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run()
    monkeypatch.setattr(type(result.cases), "__getitem__", lambda *_: pytest.fail("a case was built"))
    assert repr(result) == "SuiteResult(3 cases, pass_rate=0.6667, f1=1.0000, polite=1.0000)"
    assert isinstance(result, Result)


class TestProgress:
    """Progress bars: in terminals and notebooks, and nowhere else."""

    @staticmethod
    def notebook(monkeypatch: pytest.MonkeyPatch) -> None:
        shell = SimpleNamespace(config={"IPKernelApp": {}})
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))  # type: ignore[arg-type]  # (no module)

    def test_there_is_none_where_the_output_is_no_terminal(self, capsys: pytest.CaptureFixture[str]) -> None:
        run()
        assert capsys.readouterr().err == ""

    def test_a_notebook_has_one(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.notebook(monkeypatch)
        run()
        assert "capitals" in capsys.readouterr().err

    def test_progress_decides(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        suite = ev.suite("capitals", cases=CASES, evaluators=[polite])
        suite.run(answer, progress=True)
        assert "3/3" in capsys.readouterr().err
        self.notebook(monkeypatch)
        asyncio.run(suite.arun(answer, progress=False))
        assert capsys.readouterr().err == ""
