"""Samples of the benchmarks, and the table of several systems."""

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval import SuiteError
from pytest_llmeval.qa import (
    EvalResult,
    QAPair,
    QuestionType,
    Sample,
    batch_judge,
    compute_metrics,
    load_dataset,
    run_eval,
    to_table,
)

LOCOMO = [
    {
        "sample_id": name,
        "conversation": {"speaker_a": name},
        "qa": [{"question": "who?", "answer": 3, "category": 1}, {"question": "when?", "answer": "May", "category": 2}],
    }
    for name in ("c1", "c2")
]
LONGMEMEVAL = [
    {
        "question_id": "q1",
        "question_type": "temporal-reasoning",
        "question": "when?",
        "answer": "May",
        "question_date": "2024",
        "haystack_sessions": [[{"role": "user", "content": "x", "has_answer": True}]],
        "haystack_dates": ["2023"],
    }
]


def write(folder: Path, data: Any) -> Path:
    path = folder / "data.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def test_a_sample_of_locomo_is_a_conversation_with_its_questions(tmp_path: Path) -> None:
    first, second = load_dataset("locomo", write(tmp_path, LOCOMO))
    assert first == Sample(
        "c1",
        {"speaker_a": "c1"},
        [
            QAPair("c1/0", "who?", "3", QuestionType.SINGLE_HOP),
            QAPair("c1/1", "when?", "May", QuestionType.TEMPORAL),
        ],
    )
    assert second.sample_id == "c2"


def test_a_sample_of_longmemeval_is_a_question_with_its_sessions_and_its_date(tmp_path: Path) -> None:
    (sample,) = load_dataset("longmemeval", str(write(tmp_path, LONGMEMEVAL)))
    assert sample.sample_id == "q1"
    assert sample.conversation == {
        "question_date": "2024",
        "haystack_dates": ["2023"],
        "haystack_sessions": [[{"role": "user", "content": "x"}]],
    }
    assert sample.qa_pairs == [QAPair("q1", "when?", "May", QuestionType.TEMPORAL_REASONING)]


def test_options_are_those_of_the_source(tmp_path: Path) -> None:
    samples = load_dataset("locomo", write(tmp_path, LOCOMO), conversations=("c2",), question_types=("temporal",))
    assert [(each.sample_id, [pair.question for pair in each.qa_pairs]) for each in samples] == [("c2", ["when?"])]


def test_samples_run_through_an_agent(tmp_path: Path) -> None:
    class Agent:
        def __init__(self) -> None:
            self.memory = self
            self.seen: list[Any] = []

        def reset(self) -> None:
            self.seen = []

        def ingest_sample(self, sample: Sample) -> None:
            self.seen.append(sample.conversation["speaker_a"])

        def answer(self, question: str) -> str:
            return f"{question} {self.seen}"

    results = run_eval(load_dataset("locomo", write(tmp_path, LOCOMO)), Agent(), show_progress=False)
    assert [each.prediction for each in results] == ["who? ['c1']", "when? ['c1']", "who? ['c2']", "when? ['c2']"]


def test_a_faulty_file_is_refused_with_its_faults(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match="qa: found nothing"):
        load_dataset("locomo", write(tmp_path, [{"sample_id": "c1"}]))


def test_a_faulty_question_costs_no_other(tmp_path: Path) -> None:
    questions = [{"question": 3, "answer": "x", "category": 1}, *LOCOMO[0]["qa"]]  # type: ignore[misc]
    path = write(tmp_path, [{**LOCOMO[0], "qa": questions}])
    with pytest.warns(UserWarning, match=r"questions left out: .*\[0\].qa\[0\].question: found the number 3"):
        (sample,) = load_dataset("locomo", path)
    assert [pair.question_id for pair in sample.qa_pairs] == ["c1/1", "c1/2"]


def test_an_unknown_question_type_costs_its_question_the_verdict(tmp_path: Path) -> None:
    odd = {**LONGMEMEVAL[0], "question_id": "q2", "question_type": "day-dreams"}
    samples = load_dataset("longmemeval", write(tmp_path, [*LONGMEMEVAL, odd]))
    pairs = [pair for sample in samples for pair in sample.qa_pairs]
    assert [pair.question_type for pair in pairs] == [QuestionType.TEMPORAL_REASONING, "day_dreams"]
    results = [EvalResult("s", pair.question_id, pair.question_type, "?", pair.answer, "May") for pair in pairs]
    scores = batch_judge(results, llm=lambda _: "yes")
    assert scores == [1.0, None]
    by_type = compute_metrics(results, scores, metrics=["judge_score", "exact_match"])["by_type"]
    assert by_type["day_dreams"] == {"judge_score": None, "exact_match": 1.0, "count": 1}


def test_an_unknown_benchmark_is_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"unknown benchmark lokomo, did you mean locomo"):
        load_dataset("lokomo", tmp_path)


def results_of(*kinds: str) -> list[EvalResult]:
    return [EvalResult("s", str(number), QuestionType(kind), "?", "a", "a") for number, kind in enumerate(kinds)]


def test_the_table_has_a_row_for_each_system_and_a_column_for_each_type_and_overall() -> None:
    judged = ["judge_score", "f1"]
    one = compute_metrics(results_of("temporal", "single_hop", "temporal"), [1, 0.5, None], metrics=judged)
    two = compute_metrics(results_of("multi_hop", "temporal"), [0.25, None], metrics=judged)
    assert to_table({"one": one, "two": two}, digits=2).splitlines() == [
        "| system   |   single_hop |   multi_hop |   temporal |    overall |",
        "|:---------|-------------:|------------:|-----------:|-----------:|",
        "| one      |         0.50 |         n/a | 1.00 (1/2) | 0.75 (2/3) |",
        "| two      |          n/a |        0.25 |        n/a | 0.25 (1/2) |",
    ]
    assert to_table({"one": one}, "f1").splitlines()[-1].split("|")[2:-1] == [
        f"{'1.000':>13} ",
        f"{'1.000':>11} ",
        f"{'1.000':>10} ",
    ]
    with pytest.raises(ValueError, match=r"system 'two': unknown metric f2, did you mean f1"):
        to_table({"two": two}, "f2")


@pytest.mark.parametrize("name", ["locomo", "longmemeval"])
def test_a_benchmark_without_a_path_says_that_one_is_needed(name: str) -> None:
    with pytest.raises(ValueError, match=rf"path is missing: load_dataset\('{name}', PATH\) with the official file"):
        load_dataset(name)
