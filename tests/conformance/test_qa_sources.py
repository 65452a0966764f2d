import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from project import SHARED

from pytest_llmeval.core import Fault
from pytest_llmeval.data import Taxonomy
from pytest_llmeval.suites import Registry

QA = SHARED / "conformance" / "qa"
DATA = SHARED / "data"

LOCOMO_TYPES = Taxonomy("question_types").load()["locomo"]["categories"]
LONGMEMEVAL_TYPES = Taxonomy("question_types").load()["longmemeval"]["question_types"]


def read(path: Path) -> Any:
    if not path.exists():
        pytest.skip(f"{path.name} is not here")
    return json.loads(path.read_text(encoding="utf-8"))


def test_categories_become_the_recorded_question_types() -> None:
    recorded = read(QA / "locomo_categories.json")["category_to_question_type"]
    assert recorded == LOCOMO_TYPES


def test_answers_are_taken_as_recorded(tmp_path: Path) -> None:
    recorded = read(QA / "locomo_categories.json")
    rows = [*recorded["answers"], {"raw": {"question": "q", "answer": "a", "category": 6}, "expected_answer": "a"}]
    rows[-1]["expected_type"] = recorded["unknown_category"]
    sample = {"sample_id": "c", "conversation": {}, "qa": [row["raw"] for row in rows]}
    (tmp_path / "a.json").write_text(json.dumps([sample]))
    faults: list[Fault] = []
    cases = Registry.installed().source("locomo")(path="a.json", adversarial="original").load(tmp_path, faults)
    assert faults == []
    assert [(case.expected, case.labels["question_type"]) for case in cases] == [
        (row["expected_answer"], row["expected_type"]) for row in rows
    ]


def test_question_types_are_those_that_judges_route_by() -> None:
    assert {*LOCOMO_TYPES.values(), *LONGMEMEVAL_TYPES} == read(QA / "routing.json").keys()


def test_public_locomo_questions_are_those_of_the_recorded_pairs() -> None:
    read(DATA / "locomo_public.json")
    faults: list[Fault] = []
    source = Registry.installed().source("locomo")(path="locomo_public.json", adversarial="original")
    cases = {case.id: case for case in source.load(DATA, faults)}
    assert faults == []
    assert Counter(case.labels["question_type"] for case in cases.values()) == {
        "open_domain": 200,
        "adversarial": 112,
        "temporal": 90,
        "single_hop": 74,
        "multi_hop": 21,
    }
    assert Counter(case.labels["conversation_id"] for case in cases.values()) == {
        "conv-26": 199,
        "conv-30": 105,
        "conv-41": 193,
    }
    assert len({id(case.input["conversation"]) for case in cases.values()}) == 3
    pairs = [json.loads(line) for line in (QA / "pairs.jsonl").read_text(encoding="utf-8").splitlines()]
    same = [pair for pair in pairs if f"{pair['sample_id']}/{pair['question_id']}" in cases]
    assert len(same) > 50
    for pair in same:
        case = cases[f"{pair['sample_id']}/{pair['question_id']}"]
        assert case.input["question"] == pair["question"]
        assert case.expected == pair["ground_truth"]
        assert case.labels["question_type"] == pair["question_type"]
        assert case.labels["category"] == str(pair["category"])


def test_lines_of_the_public_file_are_those_of_the_questions() -> None:
    read(DATA / "locomo_public.json")
    lines = (DATA / "locomo_public.json").read_text(encoding="utf-8").split("\n")
    for case in Registry.installed().source("locomo")(path="locomo_public.json").load(DATA, [])[::50]:
        nearby = "".join(lines[case.line - 1 : case.line + 4])
        assert json.dumps(case.input["question"]) in nearby


def test_longmemeval_sample_has_one_question_of_each_type_and_one_unknown() -> None:
    read(DATA / "longmemeval_sample.json")
    faults: list[Fault] = []
    cases = Registry.installed().source("longmemeval")(path="longmemeval_sample.json").load(DATA, faults)
    assert faults == []
    types = sorted(case.labels["question_type"] for case in cases)
    assert types == sorted([*LONGMEMEVAL_TYPES, "unknown_future_type"])
    assert len({case.id for case in cases}) == 7
    assert {case.id: case.expected for case in cases}["q_003"] == "3"
