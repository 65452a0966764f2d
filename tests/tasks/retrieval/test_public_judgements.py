"""Judgements as others publish them: queries without a relevant document, grades, BEIR, and values with separators."""

import json
import math
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval import Case, get_evaluator, score
from pytest_llmeval.cli import main
from pytest_llmeval.core import Fault
from pytest_llmeval.tasks.retrieval._ranking import SameSet
from pytest_llmeval.tasks.retrieval._source import CaseRetrievalSource, TrecSource

BY_ID = {"gold": {"rule": "gold", "by": "id"}}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def by_id(**options: Any) -> Any:
    return get_evaluator("retrieval", tasks=BY_ID, max_positives=None, **{"k": [2], **options})


def trec(qrels: str, run: str, **options: Any) -> list[Case]:
    Path("qrels.txt").write_text(qrels)
    Path("run.txt").write_text(run)
    faults: list[Fault] = []
    cases = TrecSource(qrels="qrels.txt", predictions="run.txt", **options).load(Path(), faults)
    assert faults == []
    return cases


GRADES = {0: {"D0": 0, "D1": 1, "D2": 1, "D3": 2, "D4": 0}, 1: {"D0": 1, "D3": 2, "D5": 2}}
SIMILARITIES = {0: {"D0": 8, "D2": 7, "D1": 3, "D3": 4, "D4": 1}, 1: {"D1": 8, "D3": 7, "D4": 3, "D2": 4}}
"""Of the tests of ir_measures, which calls trec_eval; that ranks by similarity and not by the order of lines."""


def test_what_trec_eval_prints_for_public_judgements_is_printed_here() -> None:
    cases = trec(
        "".join(f"{query} 0 {name} {grade}\n" for query, row in GRADES.items() for name, grade in row.items()),
        "".join(
            f"{query} 0 {name} 1 0.{best} run\n" for query, row in SIMILARITIES.items() for name, best in row.items()
        ),
    )
    metrics = score(by_id(k=[10]), cases, confidence=None).metrics
    printed = {"ndcg@10": 0.4969, "map@10": 0.4028, "mrr": 0.5, "precision@10": 0.2, "recall@10": 0.6667}
    assert {name: round(metrics[f"gold_{name}"].value or 0, 4) for name in printed} == printed


@pytest.mark.parametrize("grades", ["0", "-1", "-2"])
def test_a_judged_query_without_a_relevant_document_counts_in_every_metric(grades: str) -> None:
    cases = trec(f"1 0 a 1\n2 0 b {grades}\n", "1 Q0 a 1 2 t\n2 Q0 b 1 2 t\n2 Q0 c 2 1 t\n")
    metrics = score(by_id(), cases, confidence=None).metrics
    assert {metric.scored for metric in metrics.values()} == {2}
    for name in ("gold_ndcg@2", "gold_map@2", "gold_mrr", "gold_recall@2", "gold_hit_rate@2"):
        assert metrics[name].value == 0.5, name


def test_an_empty_list_counts_and_no_list_does_not() -> None:
    cases = [
        Case("1", "a", {"positives": ["x"]}, ["x"]),
        Case("2", "b", {"positives": []}, ["y"]),
        Case("3", "c", None, ["y"]),
    ]
    metrics = score(by_id(k=[1]), cases, confidence=None).metrics
    assert {(metric.scored, metric.undefined) for metric in metrics.values()} == {(2, 1)}


def test_the_level_decides_which_documents_are_relevant_and_ndcg_has_all_grades() -> None:
    cases = trec("1 0 a 1\n1 0 b 3\n1 0 c 2\n", "1 Q0 a 1 3 t\n1 Q0 b 2 2 t\n")
    values = {name: metric.value for name, metric in score(by_id(relevance_level=2), cases).metrics.items()}
    assert values["gold_precision@2"] == values["gold_recall@2"] == values["gold_mrr"] == 0.5
    assert values["gold_map@2"] == 0.25
    ideal = 3 + 2 / math.log2(3)
    assert values["gold_ndcg@2"] == pytest.approx((1 + 3 / math.log2(3)) / ideal)
    plain = {name: metric.value for name, metric in score(by_id(), cases).metrics.items()}
    assert plain["gold_ndcg@2"] == values["gold_ndcg@2"]
    assert plain["gold_mrr"] == 1
    nothing = {name: metric.value for name, metric in score(by_id(relevance_level=4), cases).metrics.items()}
    assert (nothing["gold_mrr"], nothing["gold_recall@2"]) == (0, 0)
    assert nothing["gold_ndcg@2"] == values["gold_ndcg@2"]


@pytest.mark.parametrize("level", [0, -1, math.inf])
def test_a_level_is_above_zero(level: float) -> None:
    with pytest.raises(Exception, match="relevance_level"):
        by_id(relevance_level=level)


def test_judgements_of_beir_are_read_and_identical_ids_left_out() -> None:
    qrels = "query-id\tcorpus-id\tscore\nq1\tq1\t1\nq1\td2\t1\n"
    run = "q1 Q0 q1 1 2 t\nq1 Q0 d2 2 1 t\n"
    (case,) = trec(qrels, run)
    assert [each["id"] for each in case.expected["positives"]] == ["q1", "d2"]
    assert case.prediction == ["q1", "d2"]
    (case,) = trec(qrels, run, ignore_identical_ids=True)
    assert case.prediction == ["d2"]


WHOLE = ["走私、贩卖、运输、制造毒品", "assault, aggravated", "a;b"]
SPELLINGS = [
    lambda text: [text],
    lambda text: text,
    lambda text: json.dumps([text], ensure_ascii=False),
    lambda text: str([text]),
    lambda text: f" {text} ",
]


@pytest.mark.parametrize("text", WHOLE)
@pytest.mark.parametrize(("left", "right"), list(product(SPELLINGS, SPELLINGS)))
def test_a_value_with_a_separator_is_the_same_in_all_spellings(text: str, left: Any, right: Any) -> None:
    assert SameSet("same_set", "x").matcher(left(text))(right(text))


def test_values_that_differ_stay_different() -> None:
    rule = SameSet("same_set", "x")
    assert rule.matcher(["a", "b"])("b、a")
    assert rule.matcher(["a、b", "c"])("c; a、b")
    assert not rule.matcher(["a、b"])(["a", "b"])
    assert not rule.matcher(["a"])("a、b")
    assert not rule.matcher('["a, b"]')('["a", "b"]')
    assert SameSet("same_set", "x", separators="|").matcher(["a", "b, c"])("b, c|a")
    assert not SameSet("same_set", "x", separators="").matcher(["a", "b"])("a,b")


def queries(*articles: Any) -> list[Case]:
    return [
        Case(str(n), {"fact": f"q{n}", "meta": {"x": article}}, [f"p{n}"], [{"fact": "r", "x": "第264条"}])
        for n, article in enumerate(articles)
    ]


@pytest.mark.parametrize(
    ("articles", "is_noted"),
    [((264, "264"), True), (("第二百六十四条",), True), ((264, ["第264条", 1]), False), (([], None), False)],
)
def test_attributes_that_no_result_shares_are_noted(articles: tuple[Any, ...], is_noted: bool) -> None:
    evaluator = get_evaluator("retrieval", k=[1], tasks={"article": {"rule": "same_set", "field": "x"}})
    metric = score(evaluator, queries(*articles)).metrics["article_precision@1"]
    assert ("the two sides may write them differently" in (metric.reason or "")) == is_noted


def test_a_set_has_the_charge_in_each_spelling() -> None:
    term = {"imprisonment": 10}
    rows = [
        {
            "fact": f"{n}。",
            "meta": {"accusation": spell(WHOLE[0]), "relevant_articles": [347], "term_of_imprisonment": term},
        }
        for n, spell in enumerate(SPELLINGS)
    ]
    Path("corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert main(["retrieval", "build-set", "corpus.jsonl", "-o", "set.jsonl", "--queries=5", "--min-positives=1"]) == 0
    drawn = [json.loads(line) for line in Path("set.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [len(query["positives"]) for query in drawn] == [len(rows) - 1] * len(rows)


def test_a_key_that_is_not_read_is_a_fault_that_spares_the_query() -> None:
    Path("q.jsonl").write_text('{"query_id": "1", "query": "a", "positives": ["x"], "positive": 1, "split": 2}\n')
    faults: list[Fault] = []
    assert len(CaseRetrievalSource(path="q.jsonl", ignore=("split",)).load(Path(), faults)) == 1
    (fault,) = faults
    assert fault.message.startswith("found the key 'positive', expected one of: query_id, id, query, positives, labels")
    assert fault.message.endswith("(did you mean 'positives'?)")
    assert fault.spares_case


def test_lines_of_comments_are_skipped_in_both_files() -> None:
    (case,) = trec("# by three people\n1 0 a#b 1\n#\n# 0 c 1\n", "#run 7\n1 Q0 a#b 1 2 t\n")
    assert score(by_id(), [case], confidence=None).metrics["gold_mrr"].value == 1


def test_a_relevance_beyond_all_floats_is_a_fault_of_its_line(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text(f"1 0 a {'9' * 400}\n1 0 b 1\n", encoding="utf-8")
    faults: list[Fault] = []
    (case,) = TrecSource(qrels="qrels").load(tmp_path, faults)
    assert [each["id"] for each in case.expected["positives"]] == ["b"]
    assert ["expected a whole number" in str(each) for each in faults] == [True]
