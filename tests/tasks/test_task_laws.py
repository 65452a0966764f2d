"""Laws of the five tasks on public data: a faulty row, an unread key, a query without gold, a reply in many forms."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval import Case, get_evaluator, score
from pytest_llmeval.cli import main

FACT = {"verdict": "Refuted", "justification": "x"}
STORY = {"version": "3.0", "characters": [{"name": "牛郎"}], "narrative_events": [{"id": "e1", "time_order": 1}]}
PAIRS = {"emotion-cause_pairs": [["2_joy", "1"]]}
RESULTS = {"results": [{"id": "d1"}, {"id": "d2"}]}

TASKS: dict[str, tuple[Any, Any, Any, str]] = {
    "fact_check": ({"explanation": "omit"}, FACT, FACT, "verdict_accuracy"),
    "narrative": ({}, STORY, STORY, "overall_score"),
    "emotion_cause": ({"subtask": 2}, PAIRS["emotion-cause_pairs"], PAIRS, "pair_recall"),
    "retrieval": ({"k": [2], "tasks": {"gold": {"rule": "gold", "by": "id"}}}, ["d1", "d2"], RESULTS, "gold_recall@2"),
}
"""Task to options, ground truth, right answer, and a metric that is 1 for it."""

READ: dict[str, Callable[[str], str]] = {
    "alone": lambda data: data,
    "after a byte order mark": lambda data: f"\ufeff \n{data}\n",
    "in a list": lambda data: f"[{data}]",
    "in a fence": lambda data: f"```json\n{data}\n```",
    "in a fence without a language": lambda data: f"```\n{data}\n```",
    "in a fence in prose": lambda data: f"Here it is:\n```json\n{data}\n```\nDone.",
    "in a fence that is not closed": lambda data: f"Here it is:\n```json\n{data}",
    "before prose": lambda data: f"{data}\nI hope that helps.",
    "after prose": lambda data: f"Here it is:\n{data}",
    "after prose with one more character": lambda data: f"Here it is:\n{data}X",
    "after thoughts": lambda data: f"<think>Perhaps {{}}, but no.</think>\n{data}",
    "after thoughts that were not opened": lambda data: f"Let me see.\n</think>\n{data}",
    "after an object of another kind": lambda data: f'The plan {{"step": 1}}, then {data}',
    "twice": lambda data: f"Draft: {data}\nFinal: {data}",
}
UNREAD: dict[str, Callable[[str], str]] = {
    "cut off": lambda data: data[:-1],
    "cut off in prose": lambda data: f"Here it is: {data[:-2]}",
    "inside thoughts that do not end": lambda data: f"<think>Perhaps {data}, but wait",
    "inside thoughts that begin again": lambda data: f"<think>No.</think><think>Or {data}",
    "no data": lambda data: f"I do not know. ({len(data)})",
    "empty": lambda data: data[:0],
}


def scored(task: str, prediction: Any) -> Any:
    options, expected, _, metric = TASKS[task]
    result = score(get_evaluator(task, **options), [Case("a", "q", expected, prediction)], confidence=None)
    return result.metrics[metric].value, result.cases[0].reason


@pytest.mark.parametrize("form", READ)
@pytest.mark.parametrize("task", TASKS)
def test_a_reply_is_read_alike_by_all_tasks(task: str, form: str) -> None:
    value, reason = scored(task, READ[form](json.dumps(TASKS[task][2], ensure_ascii=False)))
    assert (value, reason) == (pytest.approx(1, abs=1e-6), None)


@pytest.mark.parametrize("form", UNREAD)
@pytest.mark.parametrize("task", TASKS)
def test_a_reply_without_an_answer_is_malformed_for_all_tasks(task: str, form: str) -> None:
    value, reason = scored(task, UNREAD[form](json.dumps(TASKS[task][2], ensure_ascii=False)))
    assert not value
    assert reason


@pytest.mark.parametrize(
    ("reply", "value", "is_malformed"),
    [
        ("Paris", 1, False),
        ("<think>Lyon? No.</think>Paris", 1, False),
        ("Lyon? No.\n</think>\nParis", 1, False),
        ("<think>Paris, or", 0, True),
        ("a < b <think", 0, False),
    ],
)
def test_thoughts_are_no_part_of_an_answer_in_words(reply: str, value: float, is_malformed: bool) -> None:
    result = score(get_evaluator("text", metrics=["exact_match", "f1"]), [Case("a", "q", "Paris", reply)])
    assert [metric.value for metric in result.metrics.values()] == [value, value]
    assert (result.cases[0].reason is not None) == is_malformed


def write(name: str, data: Any) -> None:
    lines = name.endswith(".jsonl")
    Path(name).write_text("\n".join(map(json.dumps, data)) if lines else json.dumps(data), encoding="utf-8")


SPEAKERS = [{"utterance_ID": 1, "text": "a", "speaker": "x", "emotion": "joy"}]
SOURCES: dict[str, tuple[str, str, Any, Any, Any]] = {
    "fact_check": (
        "fact_check: {explanation: omit}",
        "{format: fact_check, path: gold.jsonl, predictions: answers.json",
        {"id": "1", "claim": "c", **FACT},
        {"id": "2", "claim": 7, **FACT},
        FACT,
    ),
    "locomo": (
        "text: {metrics: [f1]}",
        "{format: locomo, path: gold.json, predictions: answers.json, history: false",
        {"sample_id": "1", "qa": [{"question": "q", "answer": "x", "category": 1}]},
        {"sample_id": "2", "qa": [{"question": 7, "answer": "x", "category": 1}]},
        "x",
    ),
    "longmemeval": (
        "text: {metrics: [f1]}",
        "{format: longmemeval, path: gold.jsonl, predictions: answers.json, history: false",
        {"question_id": "1", "question_type": "multi-session", "question": "q", "answer": "x"},
        {"question_id": "2", "question_type": "multi-session", "question": 7, "answer": "x"},
        "x",
    ),
    "emotion_cause": (
        "emotion_cause: {subtask: 2}",
        "{format: emotion_cause, subtask: 2, gold: gold.json",
        {"conversation_ID": 1, "conversation": SPEAKERS, "emotion-cause_pairs": [["1_joy", "1"]]},
        {"conversation_ID": 2, "conversation": SPEAKERS, "emotion-cause_pairs": [["1_hope", "1"]]},
        None,
    ),
    "case_retrieval": (
        "retrieval: {k: [1], tasks: {gold: {rule: gold, by: id}}}",
        "{format: case_retrieval, path: gold.jsonl, predictions: answers.json",
        {"query_id": "1", "query": "q", "positives": ["x"]},
        {"query_id": "2", "query": 7, "positives": ["x"]},
        ["x"],
    ),
}
"""Source to evaluator, options, a good row, a faulty one and the right answer."""


def prepare(source: str, rows: list[Any], more: str = "") -> None:
    evaluator, options, _, _, answer = SOURCES[source]
    write("gold.json", rows)
    write("gold.jsonl", rows)
    name = "1/0" if source == "locomo" else "1"
    write("answers.json", {name: answer})
    if source == "emotion_cause":
        write("answers.json", [{"conversation_ID": 1, "emotion-cause_pairs": [["1_joy", "1"]]}])
        options += ", predictions: answers.json"
    Path("t.eval.yaml").write_text(f"evaluators: [{{{evaluator}}}]\nsource: {options}{more}}}\n".replace("}}]", "}}]"))


def run() -> tuple[int, dict[str, Any]]:
    Path("run.json").unlink(missing_ok=True)
    code = main(["score", "t.eval.yaml", "--report=run.json"])
    return code, json.loads(Path("run.json").read_text(encoding="utf-8"))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("source", SOURCES)
def test_a_faulty_row_costs_itself(source: str) -> None:
    good, faulty = SOURCES[source][2:4]
    prepare(source, [faulty, good])
    code, report = run()
    assert code == 1
    assert len(report["faults"]["t.eval.yaml"]) == 1
    assert [case["outcome"] for case in report["suites"][0]["cases"]] == ["passed"]
    prepare(source, [good])
    assert run()[0] == 0


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("source", SOURCES)
def test_an_unread_key_is_a_fault_that_costs_no_case(source: str) -> None:
    good = SOURCES[source][2]
    prepare(source, [{**good, "notes_of_mine": 1}])
    code, report = run()
    assert code == 1
    (fault,) = report["faults"]["t.eval.yaml"]
    assert "found the key 'notes_of_mine', expected one of: " in fault
    assert [case["outcome"] for case in report["suites"][0]["cases"]] == ["passed"]
    prepare(source, [{**good, "notes_of_mine": 1}], ", ignore: [notes_of_mine]")
    assert run()[0] == 0


GOLDLESS: dict[str, tuple[Any, Any]] = {
    "fact_check": (None, FACT),
    "emotion_cause": (None, PAIRS),
    "retrieval": (None, RESULTS),
    "text": (None, "x"),
}


@pytest.mark.parametrize("task", GOLDLESS)
def test_a_case_without_gold_counts_in_no_metric_of_gold(task: str) -> None:
    expected, prediction = GOLDLESS[task]
    options = TASKS[task][0] if task in TASKS else {}
    result = score(get_evaluator(task, **options), [Case("a", "q", expected, prediction)], confidence=None)
    values = {name: metric.value for name, metric in result.metrics.items() if name != "unparsed_rate"}
    assert set(values.values()) == {None}


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("side", ["g", "p"])
def test_a_misnamed_key_of_a_story_is_reported(side: str, capsys: pytest.CaptureFixture[str]) -> None:
    relationship = {"agent": "a", "target": "b", "relationship_level1": "Family"}
    story: dict[str, Any] = {
        "version": "3.0",
        "characters": [{"name": "a"}, {"name": "b"}],
        "narrative_events": [{"id": "e1", "relationships": [relationship]}],
    }
    for folder in ("g", "p"):
        Path(folder).mkdir()
        write(f"{folder}/s.json", story)
    relationship["level1"] = relationship.pop("relationship_level1")
    write(f"{side}/s.json", story)
    Path("t.eval.yaml").write_text("evaluators: [narrative]\nsource: {format: json_v3, gold: g, predictions: p}\n")
    assert run()[0] == 1
    captured = capsys.readouterr()
    assert "found the key 'level1', expected 'relationship_level1'" in captured.out + captured.err
