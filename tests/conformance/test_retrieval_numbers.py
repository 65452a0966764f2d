"""Recorded numbers: of the definitions, of trec_eval, and of the program that the requirement document describes."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from project import SHARED

from pytest_llmeval import Case, Totals, get_evaluator, score
from pytest_llmeval.core import MetricIndex, Result
from pytest_llmeval.numbers import summarize
from pytest_llmeval.numbers._table import CaseRecord
from pytest_llmeval.reports import RunReport, RunStart, SuiteReport, WrittenReports
from pytest_llmeval.reports._form import evaluator_tables
from pytest_llmeval.tasks.retrieval._ranking import set_counts

FOLDER = SHARED / "conformance" / "retrieval"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the conformance data are not beside this repository")

RANKED = {"ndcg_cut_5": "gold_ndcg@5", "ndcg_cut_10": "gold_ndcg@10", "map_cut_10": "gold_map@10"}
SETS = {"recall_10": "gold_recall@10", "P_10": "gold_precision@10", "success_1": "gold_hit_rate@1"}
TOTALS = {"total_hits": "{task}_hits@{k}", "total_retrieved": "retrieved@{k}", "total_positives": "positives@{k}"}


@cache
def read(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (FOLDER / name).read_text("utf-8").splitlines()]


def result_of(entry: Any, documents: Mapping[str, Any], queries: Mapping[str, Any]) -> Any:
    """Return what the service replied for an entry of a run."""
    if isinstance(entry, str):
        return entry
    if "self" in entry:
        query = queries[str(entry["self"])]["query"]
        source = {"fact": query["fact"], **query["meta"], "imprisonment": query["meta"].get("term_of_imprisonment")}
    else:
        source = documents[entry["doc_id"]]
    text = f" \n{source['fact']}\t " if entry.get("pad") else source["fact"]
    reply = {name: source.get(name) for name in ("accusation", "relevant_articles", "imprisonment")}
    omitted = entry.get("omit", ())
    if "fact" not in omitted:
        reply[entry.get("text_field", "fact")] = text
    return {name: value for name, value in reply.items() if name not in omitted}


def cases(run: Mapping[str, Any], *, distinct: bool = False) -> Iterator[Case]:
    documents = {each["doc_id"]: each for each in read("docs.jsonl")}
    queries = {str(each["query_id"]): each for each in read("queries.jsonl")}
    for number, query in queries.items():
        if number in map(str, run.get("failed_query_ids", ())):
            continue
        listed = run.get("positives_override", {}).get(number, query["positives"])
        entries = run["results"][number]
        if distinct:
            entries = first_places(entries)
        yield Case(
            id=number,
            input=query["query"],
            expected={"positives": [{"fact": documents[each]["fact"]} for each in listed]},
            prediction=[result_of(entry, documents, queries) for entry in entries],
        )


def first_places(entries: list[Any]) -> list[Any]:
    seen = set()
    kept = []
    for entry in entries:
        known = entry.get("doc_id") if isinstance(entry, dict) and "fact" not in entry.get("omit", ()) else None
        if known is None or known not in seen:
            kept.append(entry)
        seen.add(known)
    return kept


def scored(run: Mapping[str, Any], *, distinct: bool = False, **options: Any) -> Result:
    evaluator = get_evaluator("retrieval", **options)
    result = score(evaluator, cases(run, distinct=distinct), confidence=None)
    assert all(case.reason is None for case in result.cases), run["id"]
    return result


def test_scores_are_those_of_the_definitions() -> None:
    for run in read("runs.jsonl"):
        result = scored(run)
        for task, by_k in run["expected"].items():
            for k, expected in by_k.items():
                for name, value in expected.items():
                    where = (run["id"], task, k, name)
                    if name == "n_queries":
                        assert result.metrics[f"{task}_precision@{k}"].scored == value, where
                    elif name not in TOTALS:
                        found = result.metrics[f"{task}_{name}@{k}"]
                        assert found.value == pytest.approx(value, abs=1e-9, rel=0), where
                        if not name.startswith("micro"):
                            assert found.mean == pytest.approx(value, abs=1e-9, rel=0), where


def test_recall_by_the_fixed_10_of_the_document() -> None:
    for run in read("runs.jsonl"):
        result = scored(run, recall_denominator="k")
        for task, by_k in run["expected"].items():
            for k, expected in by_k.items():
                recall = expected["total_hits"] / (10 * expected["n_queries"])
                for name in ("recall", "micro_recall"):
                    found = result.metrics[f"{task}_{name}@{k}"].value
                    assert found == pytest.approx(recall, abs=1e-9, rel=0), (run["id"], task, k, name)


def test_counts_are_those_of_the_definitions() -> None:
    evaluator = get_evaluator("retrieval")
    for run in read("runs.jsonl"):
        totals = Totals.add_up(map(evaluator.measure, cases(run)))
        for task, by_k in run["expected"].items():
            for k, expected in by_k.items():
                for name, count in TOTALS.items():
                    assert totals[count.format(task=task, k=k)] == expected[name], (run["id"], task, k, name)


def test_ranked_scores_are_those_of_trec_eval() -> None:
    checked = 0
    for run in read("runs.jsonl"):
        if "expected_ir" not in run:
            continue
        result = scored(run)
        of_sets = scored(run, distinct=True, k=[1, 10])
        per_query = {case.id: case.metrics for case in result.cases}
        sets_per_query = {case.id: case.metrics for case in of_sets.cases}
        mean = run["expected_ir"]["mean"]
        # pytrec_eval drops queries without a relevant document; trec_eval and the sets of metrics here count them as 0.
        share = mean["n_queries"] / len(per_query)
        assert result.metrics["gold_mrr"].scored == len(per_query), run["id"]
        for theirs, ours in {**RANKED, "recip_rank": "gold_mrr"}.items():
            assert result.metrics[ours].value == pytest.approx(mean[theirs] * share, abs=1e-6), (run["id"], theirs)
            for query, values in run["expected_ir"]["per_query"].items():
                assert per_query[query][ours] == pytest.approx(values[theirs], abs=1e-6, rel=0), (run["id"], query)
                checked += 1
        for query, values in run["expected_ir"]["per_query"].items():
            for theirs, ours in SETS.items():
                assert sets_per_query[query][ours] == pytest.approx(values[theirs], abs=1e-6), (run["id"], query, ours)
        without = set(per_query) - set(run["expected_ir"]["per_query"])
        assert all(per_query[query]["gold_mrr"] == 0 for query in without), run["id"]
    assert checked


def test_scores_of_the_old_program_are_those_without_unfilled_ranks() -> None:
    for run in read("runs.jsonl"):
        result = scored(run, unfilled_ranks="skip")
        for task, by_k in run["expected_original"].items():
            for k, expected in by_k.items():
                for name, value in expected.items():
                    where = (run["id"], task, k, name)
                    if name == "n_queries":
                        assert result.metrics[f"{task}_precision@{k}"].scored == value, where
                        continue
                    found = result.metrics[f"{task}_{name}@{k}"].value
                    if expected["n_queries"]:
                        assert found == pytest.approx(value, abs=1e-9, rel=0), where
                    else:
                        assert found is None, where


def test_the_summary_file_has_the_percentages_that_the_old_program_prints(tmp_path: Path) -> None:
    evaluator = get_evaluator("retrieval", unfilled_ranks="skip")
    for run in read("runs.jsonl")[:4]:
        records = [CaseRecord(case.id, observations={"retrieval": evaluator.measure(case)}) for case in cases(run)]
        result = summarize({"retrieval": evaluator}, records, confidence=None)
        tables = evaluator_tables(MetricIndex.from_evaluators({"retrieval": evaluator}), result)
        suite = SuiteReport.of_result("legal", "legal.eval.yaml", result, [], len(records), None, tables=tables)
        path = tmp_path / "evaluate_summary_dense.txt"
        WrittenReports.write(RunReport(run=RunStart("2026-01-01", 0.1, "0"), suites=[suite]), [path])
        lines = [line.split() for line in path.read_text("utf-8").splitlines() if line.endswith("%")]
        ours = [cells[-3:] for cells in lines if cells[-5:-3] != ["micro", "F1"]]
        theirs = [[cell.strip() for cell in line.split("|")[2:]] for line in run["original_table"][1:]]
        assert ours == theirs, run["id"]
        names = " ".join(" ".join(cells[:-3]) for cells in lines[:5])
        assert names == "gold precision recall hit rate macro F1 micro F1"


def test_attributes_match_as_defined() -> None:
    evaluator = get_evaluator("retrieval", k=[1])
    for row in read("attributes.jsonl"):
        observation = evaluator.measure(
            Case("a", {"fact": "q", "meta": row["query_meta"]}, {"positives": ["p"]}, [{"fact": "r", **row["result"]}])
        )
        scores = evaluator.scores(observation)
        for task, expected in row["expected"].items():
            assert scores[f"{task}_precision@1"] == expected, (row, task)


def test_precision_recall_and_f1_follow_from_counts() -> None:
    for row in read("prf.jsonl"):
        if row["k"] == 0 or row["positives"] == 0:
            continue
        counts = set_counts("t", (1,) * row["hits"], (row["k"],), row["positives"])
        precision = counts.get(f"t_hits@{row['k']}", 0) / row["k"]
        found = [precision, counts.get(f"t_recall@{row['k']}", 0), counts.get(f"t_f1@{row['k']}", 0)]
        assert found == pytest.approx(row["expected"], abs=1e-12), row
