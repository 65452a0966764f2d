"""The sources `case_retrieval` and `trec`: which files become which cases, and what is said of faults."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from project import cases_of

from pytest_llmeval import Case
from pytest_llmeval.core import MISSING
from pytest_llmeval.tasks.retrieval._source import CaseRetrievalSource, TrecSource

QRELS = """\
301 0 d1 1
301 0 d2 0
301 0 d3 2
302 0 d1 0
"""
RUN = """\
301 Q0 d2 1 0.5 mine
301 Q0 d3 2 0.9 mine
301 Q0 d10 3 0.5 mine
999 Q0 d1 1 -1e3 mine
"""


pytestmark = pytest.mark.usefixtures("here")


def write(name: str, *rows: Any) -> None:
    lines = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
    Path(name).write_text("\n".join(lines) + "\n", encoding="utf-8")


load = partial(cases_of, folder=Path())


def test_a_line_is_a_query_with_its_positives() -> None:
    query = {"fact": "夜间入室盗窃", "meta": {"accusation": ["盗窃"]}}
    write(
        "q.jsonl", {"query_id": 12, "query": query, "positives": [{"fact": "x"}], "labels": {"court": "A", "year": 3}}
    )
    cases, faults = load(CaseRetrievalSource("q.jsonl"))
    assert faults == []
    assert cases == [
        Case("12", query, {"positives": [{"fact": "x"}]}, labels={"court": "A", "year": "3"}, line=1),
    ]


def test_an_id_may_be_absent_and_other_keys_are_passed_over() -> None:
    write("q.jsonl", {"query": "a", "positives": [], "score": 1}, "", {"id": "b", "query": "b", "positives": ["x"]})
    assert [case.id for case in load(CaseRetrievalSource("q.jsonl"))[0]] == ["1", "b"]


def test_recorded_results_go_to_their_queries() -> None:
    write("q.jsonl", {"query_id": "a", "query": "a", "positives": []}, {"query_id": "b", "query": "b", "positives": []})
    write("r.jsonl", {"query_id": "a", "results": [{"fact": "x"}]})
    cases, faults = load(CaseRetrievalSource("q.jsonl", predictions="r.jsonl"))
    assert faults == []
    assert [case.prediction for case in cases] == [[{"fact": "x"}], MISSING]


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("r.jsonl", [[{"fact": "x"}], [], ["noise"]]),
        ("r.jsonl", [{"results": [{"fact": "x"}]}, {"results": []}, ["noise"]]),
        ("r.jsonl", [{"results": [[{"fact": "x"}], []]}, [["noise"]]]),
        ("r.json", [[[{"fact": "x"}], [], ["noise"]]]),
        ("r.json", [{"results": [[{"fact": "x"}], [], ["noise"]]}]),
    ],
)
def test_replies_without_ids_go_to_the_queries_in_their_order(name: str, rows: list[Any]) -> None:
    write("q.jsonl", *({"query_id": each, "query": each, "positives": []} for each in ("b", "a", "c")))
    write(name, *rows)
    cases, faults = load(CaseRetrievalSource("q.jsonl", predictions=name))
    assert faults == []
    assert {case.id: case.prediction for case in cases} == {"b": [{"fact": "x"}], "a": [], "c": ["noise"]}


def test_a_failed_reply_is_null_and_a_missing_one_a_fault() -> None:
    write("q.jsonl", *({"query_id": each, "query": each, "positives": []} for each in ("b", "a")))
    write("r.jsonl", [None, [{"fact": "x"}]])
    cases, faults = load(CaseRetrievalSource("q.jsonl", predictions="r.jsonl"))
    assert ([case.prediction for case in cases], faults) == ([MISSING, [{"fact": "x"}]], [])
    write("r.jsonl", [[{"fact": "x"}]])
    cases, faults = load(CaseRetrievalSource("q.jsonl", predictions="r.jsonl"))
    assert faults == ["r.jsonl  found 1 list of results without ids, expected 2, one for each query in its order"]
    assert [case.prediction for case in cases] == [MISSING, MISSING]


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (["a"], "q.jsonl:1:1  found a list, expected an object with `query` and `positives`"),
        ({"positives": []}, "q.jsonl:1:1  query: found nothing, expected an object or a text"),
        ({"query": "a", "positives": {}}, "q.jsonl:1:1  positives: found an object, expected a list of documents"),
        (
            {"query_id": None, "query": "a", "positives": []},
            "q.jsonl:1:1  query_id: found null, expected text or a whole number",
        ),
        ({"query": "a", "positives": [], "labels": 1}, "q.jsonl:1:1  labels: found the number 1, expected an object"),
        (
            {"query": "a", "positives": [], "labels": {"x y": []}},
            "q.jsonl:1:1  labels['x y']: found a list, expected text",
        ),
        ("{", "q.jsonl:1:2  "),
    ],
)
def test_a_faulty_line_costs_no_other_query(row: Any, fault: str) -> None:
    write("q.jsonl", row, {"query_id": "b", "query": "b", "positives": []})
    source = CaseRetrievalSource("q.jsonl")
    cases, faults = load(source)
    assert [case.id for case in cases] == ["b"]
    assert len(faults) == 1
    assert faults[0].startswith(fault)


def test_a_second_query_of_an_id_is_a_fault() -> None:
    write("q.jsonl", *[{"query_id": "b", "query": "b", "positives": []}] * 2)
    assert load(CaseRetrievalSource("q.jsonl"))[1] == [
        "q.jsonl:2:1  query_id: found the id 'b' twice, expected it once (first in line 1)"
    ]


def test_judgements_become_positives_and_a_run_its_results_as_in_trec_eval() -> None:
    write("qrels", QRELS)
    write("run", RUN)
    source = TrecSource("qrels", predictions="run")
    cases, faults = load(source)
    assert faults == []
    positives = [{"id": "d3", "relevance": 2}, {"id": "d1", "relevance": 1}]
    assert cases == [
        Case("301", "301", {"positives": positives}, ["d3", "d2", "d10"], line=1),
        Case("302", "302", {"positives": []}, [], line=4),
        Case("999", "999", None, ["d1"]),
    ]
    assert [source.file_of(case) for case in cases] == ["qrels", "qrels", "run"]


def test_scores_that_single_precision_cannot_tell_apart_are_equal_as_in_trec_eval() -> None:
    write("qrels", QRELS)
    write("run", "301\tQ0  a 1 12.34567891 mine\r", "", "301 Q0 z 2 12.34567890 mine", "301 Q0 b 3 1e300 mine")
    (case, *_), faults = load(TrecSource("qrels", predictions="run"))
    assert (case.prediction, faults) == (["b", "z", "a"], [])


def test_without_a_run_a_target_answers() -> None:
    write("qrels", QRELS)
    assert {case.prediction for case in load(TrecSource("qrels"))[0]} == {MISSING}


FAULTS = Path(__file__).with_name("trec_faults.txt")
"""The faults that the test below expects, in their order."""


def test_faults_of_trec_files_are_told_and_good_lines_survive() -> None:
    write("qrels", "301 0 d1 1", "301 0 d1 2", "301 0 d2", "302 0 d1 high", "a::b 0 d1 1")
    write("run", "301 Q0 d1 1 nan mine", "301 Q0 d2 1 0.5 mine", "301 Q0 d2 2 0.4 mine")
    cases, faults = load(TrecSource("qrels", predictions="run"))
    assert [(case.id, case.prediction) for case in cases] == [("301", ["d2"])]
    assert faults == FAULTS.read_text(encoding="utf-8").splitlines()


def test_a_missing_file_is_a_fault() -> None:
    write("qrels", QRELS)
    cases, faults = load(TrecSource("qrels", predictions="runn"))
    assert [case.prediction for case in cases] == [MISSING, MISSING]
    assert [fault.partition(" (")[0] for fault in faults] == ["runn  cannot be read: No such file or directory"]


def test_a_reply_that_cannot_be_read_moves_no_other_to_its_query() -> None:
    write("q.jsonl", *({"query_id": each, "query": each, "positives": []} for each in ("b", "a", "c")))
    write("r.jsonl", [{"fact": "x"}], "{broken", [], ["noise"])
    cases, faults = load(CaseRetrievalSource("q.jsonl", predictions="r.jsonl"))
    assert [case.prediction for case in cases] == [MISSING] * 3
    assert faults
    assert faults[0].startswith("r.jsonl:")
