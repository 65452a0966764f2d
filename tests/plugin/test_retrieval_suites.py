"""Suites of `retrieval` in whole runs of pytest: from files to gates and tables."""

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from project import ROOT
from servers import Request, SearchAnswer, serving

if TYPE_CHECKING:
    from conftest import Project

EXAMPLES = ROOT / "example_suites"

LIVE = """\
suite: live
target:
  http:
    url: http://127.0.0.1:9/search
    url_from_env: SEARCH_URL
    batch: 2
    retries: 0
    request: {queries: {$each: {$input: fact}}}
    response: results
evaluators:
  - retrieval: {k: [1]}
gates:
  - {metric: gold_hit_rate@1, min: 0.5, max_errors: 2}
source: {format: case_retrieval, path: queries.jsonl}
"""

TREC = """\
suite: trec
evaluators:
  - retrieval: {k: [2], max_positives: null, tasks: {gold: {rule: gold, by: id}}}
gates: [gold_ndcg@2 >= 0.3, gold_micro_f1@2 >= 0.5]
source: {format: trec, qrels: qrels.txt, predictions: run.txt}
"""


def test_the_example_needs_no_service_and_gives_the_same_report_in_two_processes(
    project: "Project", workers: int
) -> None:
    shutil.copytree(EXAMPLES / "case_retrieval", project.path / "case_retrieval")
    shutil.copy(EXAMPLES / "conftest.py", project.path)
    ran = project.run("-v", workers=workers)
    assert ran.code == 0, ran.text
    systems = {f"case_retrieval_systems[{name}]" for name in ("bm25", "shared_words")}
    assert set(ran.suites) == {"case_retrieval_bm25", *systems}
    assert set(ran.gates("case_retrieval_bm25").values()) == {"passed"}
    metrics = ran.suites["case_retrieval_bm25"]["metrics"]
    assert (metrics["gold_hit_rate@10"]["value"], metrics["gold_hit_rate@10"]["scored"]) == (1.0, 16)
    assert "gold          precision  0.6458  0.5750  0.3688" in ran.section("llmeval")


def test_the_live_example_asks_the_service_and_has_the_recorded_scores(project: "Project") -> None:
    pytest.importorskip("bm25s")
    shutil.copytree(EXAMPLES / "case_retrieval", project.path / "case_retrieval")
    shutil.copy(EXAMPLES / "conftest.py", project.path)
    ran = project.run("case_retrieval/live", "case_retrieval/bm25.eval.yaml")
    assert ran.code == 0, ran.text
    live, recorded = (ran.suites[name]["metrics"] for name in ("case_retrieval_live", "case_retrieval_bm25"))
    assert {name: each["value"] for name, each in live.items()} == {
        name: each["value"] for name, each in recorded.items()
    }


def test_a_failed_batch_costs_its_queries_and_no_others(project: "Project", monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"query_id": f"q{n}", "query": {"fact": f"query {n}"}, "positives": [f"found {n}"]} for n in range(6)]
    project.write("queries.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    project.write("live.eval.yaml", LIVE)

    def search(request: Request, before: int) -> SearchAnswer:
        del before
        queries = request.json["queries"]
        if "query 2" in queries:
            return SearchAnswer("down", status=500)
        replies = {"query 4": ["junk", {"fact": "found 4"}], "query 5": None}
        return SearchAnswer({"results": [replies.get(each, [{"fact": f"found {each[-1]}"}]) for each in queries]})

    with serving(search) as server:
        monkeypatch.setenv("SEARCH_URL", server.url)
        ran = project.run()
    outcomes = ran.outcomes("live")
    assert (outcomes["q2"], outcomes["q3"]) == ("errored", "errored")
    assert {name for name, outcome in outcomes.items() if outcome == "passed"} == {"q0", "q1", "q4"}
    metric = ran.suites["live"]["metrics"]["gold_hit_rate@1"]
    assert metric["scored"] + metric["errored"] == 6


def test_files_of_trec_make_a_suite(project: "Project") -> None:
    project.write("qrels.txt", "1 0 a 1\n1 0 b 1\n2 0 c 1\n3 0 d 0\n")
    project.write("run.txt", "1 Q0 a 1 9 x\n1 Q0 b 2 8 x\n2 Q0 z 1 5 x\n")
    project.write("trec.eval.yaml", TREC)
    ran = project.run()
    assert ran.code == 0, ran.text
    metrics = ran.suites["trec"]["metrics"]
    assert metrics["gold_ndcg@2"]["value"] == pytest.approx(1 / 3)
    assert metrics["gold_ndcg@2"]["scored"] == 3  # a judged query without a relevant document counts
    assert metrics["gold_recall@2"]["value"] == pytest.approx(1 / 3)


def test_ids_under_the_rules_of_legal_are_a_fault_of_the_suite_and_not_a_score_of_0(project: "Project") -> None:
    project.write("qrels.txt", "1 0 a 1\n")
    project.write("run.txt", "1 Q0 a 1 9 x\n")
    project.write("trec.eval.yaml", TREC.replace(", tasks: {gold: {rule: gold, by: id}}", ""))
    ran = project.run()
    assert ran.code != 0
    assert "text is missing: a task compares documents by it (fact, text, content, sentence)" in ran.text


def test_faults_of_options_have_their_place(project: "Project") -> None:
    project.write("trec.eval.yaml", TREC.replace("by: id", "bye: id"))
    project.write("qrels.txt", "1 0 a 1\n")
    ran = project.run()
    assert "trec.eval.yaml:3:" in ran.text
    assert "evaluators[0].retrieval.tasks.gold.bye: unknown key bye, did you mean by?" in ran.text
