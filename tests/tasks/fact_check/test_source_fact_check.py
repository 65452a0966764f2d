import json
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval import MISSING, Case
from pytest_llmeval.core import Fault
from pytest_llmeval.suites import Registry
from pytest_llmeval.tasks.fact_check._source import FactCheckSource

CLAIMS = [
    {
        "claim": "Bats are birds.",
        "verdict": "Refuted",
        "justification": "Mammals.",
        "evidence_sources": [],
        "topic": "x",
    },
    {"claim": "蝙蝠会飞。", "verdict": "Supported", "evidence_sources": [{"content": "", "url": "https://a.example"}]},
]


def write(folder: Path, name: str, data: Any) -> str:
    lines = name.endswith(".jsonl")
    text = "\n".join(json.dumps(each) for each in data) if lines else json.dumps(data, ensure_ascii=False, indent=1)
    (folder / name).write_text(text, encoding="utf-8")
    return name


def load(folder: Path, claims: Any = CLAIMS, answers: Any = None, **options: Any) -> tuple[list[Case], list[str]]:
    faults: list[Fault] = []
    if answers is not None:
        options["predictions"] = answers if isinstance(answers, str) else write(folder, "answers.json", answers)
    options.setdefault("ignore", ("topic",))
    path = claims if isinstance(claims, str) else write(folder, "claims.json", claims)
    cases = FactCheckSource(path=path, **options).load(folder, faults)
    return cases, [f"{Path(each.file).name}:{each.line} {each.path}: {each.message}" for each in faults]


def predictions(folder: Path, answers: Any, claims: Any = CLAIMS) -> list[Any]:
    cases, faults = load(folder, claims, answers)
    assert faults == []
    return [case.prediction for case in cases]


def test_the_format_is_known_by_name() -> None:
    assert Registry.installed().source("fact_check") is FactCheckSource


@pytest.mark.parametrize("name", ["claims.json", "claims.jsonl"])
def test_a_claim_is_a_case(tmp_path: Path, name: str) -> None:
    cases, faults = load(tmp_path, write(tmp_path, name, CLAIMS), labels=("topic", "nothing"))
    assert faults == []
    assert [(case.id, case.input, case.labels) for case in cases] == [
        ("1", "Bats are birds.", {"topic": "x", "verdict": "Refuted"}),
        ("2", "蝙蝠会飞。", {"verdict": "Supported"}),
    ]
    assert cases[0].expected == {"verdict": "Refuted", "justification": "Mammals.", "evidence_sources": []}
    assert cases[0].prediction is MISSING
    assert [case.line for case in cases] == ([2, 9] if name == "claims.json" else [1, 2])


def test_ids_of_the_file_are_kept(tmp_path: Path) -> None:
    cases, faults = load(
        tmp_path, [{"id": "bats", "claim": "a"}, {"claim_id": 7, "claim": "b"}, {"claim": "c", "id": None}]
    )
    assert faults == []
    assert [(case.id, case.expected) for case in cases] == [("bats", None), ("7", None), ("3", None)]


def test_faults_of_claims_are_all_told_and_the_others_survive(tmp_path: Path) -> None:
    cases, faults = load(tmp_path, [3, {"verdict": "Refuted"}, {"claim": " "}, {"claim": "c", "id": []}, CLAIMS[0]])
    assert [case.id for case in cases] == ["5"]
    assert [each.partition(" ")[2] for each in faults] == [
        "[0]: found the number 3, expected an object with claim and verdict",
        "[1].claim: found nothing, expected text",
        "[2].claim: found the text ' ', expected text",
        "[3].id: found a list, expected text or a whole number",
    ]
    assert load(tmp_path, {"claims": []})[1] == ["claims.json:1 : found an object, expected a list of claims"]


def test_a_second_case_of_an_id_is_a_fault(tmp_path: Path) -> None:
    _, faults = load(tmp_path, [{"id": "a", "claim": "x"}, {"id": "a", "claim": "y"}])
    assert faults == ["claims.json:6 [1].id: found the id 'a' twice, expected it once (first in line 2)"]


ANSWER = {"claim": "Bats are  birds.", "verdict": "Refuted", "justification": "No."}


@pytest.mark.parametrize(
    "answers",
    [
        [ANSWER],
        [{"claim": "Bats are birds.", "answer": ANSWER}],
        [{"claim": "Bats are birds.", "prediction": ANSWER, "model": "m"}],
        [{"id": 1, "prediction": ANSWER}],
        [{"id": "1", "claim": "another", "answer": ANSWER}],
        {"1": ANSWER},
        [{"claim": "蝙蝠会飞。", "answer": None}, ANSWER],
        [{"claim_id": 1, "answer": ANSWER}],
        [{"question_id": "1", "hypothesis": ANSWER}],
        [ANSWER | {"id": None}],
    ],
)
def test_answers_belong_to_claims_by_id_or_by_claim(tmp_path: Path, answers: Any) -> None:
    found, nothing = predictions(tmp_path, answers)
    assert ({key: found[key] for key in ANSWER}, nothing) == (ANSWER, MISSING)


def test_an_answer_with_an_id_in_it_is_one_if_it_has_a_verdict(tmp_path: Path) -> None:
    answer = {"claim_id": 2, "verdict": "Supported", "justification": "会飞。"}
    assert predictions(tmp_path, [answer]) == [MISSING, answer]
    _, faults = load(tmp_path, CLAIMS, [{"id": 2, "justification": "会飞。"}])
    assert [each.partition(" or ")[0] for each in faults] == [
        "answers.json:2 [0]: found the keys 'id', 'justification', expected `prediction`"
    ]


def test_answers_may_be_replies_as_they_came(tmp_path: Path) -> None:
    assert predictions(tmp_path, [{"claim": "蝙蝠会飞。", "answer": "No idea."}]) == [MISSING, "No idea."]
    name = write(tmp_path, "answers.jsonl", [ANSWER, {"id": "2", "answer": "Hm."}])
    assert predictions(tmp_path, name) == [ANSWER, "Hm."]


def test_results_of_an_earlier_run_are_answers_under_the_keys_of_both_forms(tmp_path: Path) -> None:
    original = {"claim": "Bats are birds.", "llm_verdict": "Refuted", "llm_reasoning": "Mammals.", "verdict": "Refuted"}
    ours = {
        "claim": "蝙蝠会飞。",
        "predicted_verdict": "Supported",
        "justification": "They do.",
        "gold_verdict": "Refuted",
    }
    files = [{"metrics": {}, "results": [original, ours]}, [original, ours]]
    for file in files:
        assert predictions(tmp_path, file) == [
            {"verdict": "Refuted", "justification": "Mammals."},
            {"verdict": "Supported", "justification": "They do."},
        ]
    failed = {**ours, "predicted_verdict": None}
    assert predictions(tmp_path, {"results": [original, failed]})[1] is MISSING


def test_a_call_that_failed_is_no_answer(tmp_path: Path) -> None:
    assert predictions(tmp_path, {"1": None, "2": "Hm."}) == [MISSING, "Hm."]


def test_a_submission_with_the_keys_of_its_data_set_belongs_to_claims_by_their_text(tmp_path: Path) -> None:
    claims = [{"claim": name, "label": "Refuted"} for name in "abc"]
    submitted = [{"claim_id": n, "claim": name, "label": f"{name}!"} for n, name in enumerate("abc")]
    for answers in (submitted, [{key: row[key] for key in ("claim", "label")} for row in submitted]):
        cases, faults = load(tmp_path, claims, answers, fields={"verdict": "label"})
        assert faults == []
        assert [(case.id, case.prediction["verdict"]) for case in cases] == [("1", "a!"), ("2", "b!"), ("3", "c!")]


def test_answers_to_a_claim_that_is_there_twice_come_in_order(tmp_path: Path) -> None:
    claims = [{"id": name, "claim": "same"} for name in ("a", "b")]
    answers = [{"claim": "same", "answer": text} for text in ("first", "second")]
    assert predictions(tmp_path, answers, claims) == ["first", "second"]
    _, faults = load(tmp_path, claims, [*answers, {"claim": "same", "answer": "third"}])
    assert faults == ["answers.json:10 : found a second answer to 'b', expected one (first in line 6)"]


def test_an_answer_to_no_claim_is_a_fault(tmp_path: Path) -> None:
    _, faults = load(tmp_path, CLAIMS, [{"claim": "Cats fly.", "verdict": "Refuted"}])
    assert faults == ["answers.json:2 : found 1 id that no case has ('Cats fly.'), expected ids such as '1'"]


def test_other_data_sets_are_read_by_the_names_of_their_keys(tmp_path: Path) -> None:
    rows = [{"id": 7, "statement": "Bats are birds.", "label": "REFUTES", "split": "dev"}]
    (case,), faults = load(tmp_path, rows, fields={"claim": "statement", "verdict": "label"})
    assert (case.id, case.input, case.expected, faults) == ("7", "Bats are birds.", {"verdict": "REFUTES"}, [])
    _, faults = load(tmp_path, rows, fields={"claim": "statement", "verdict": "lable", "verdcit": "label"})
    assert "unknown part verdcit, did you mean verdict?" in faults[0]
    assert faults[1].endswith("no claim has the key 'lable', which `fields.verdict` names")


def test_keys_that_are_not_read_are_faults_that_spare_the_claim(tmp_path: Path) -> None:
    rows = [{"claim": "a", "label": "REFUTES", "evidence": [], "split": 1}, {"claim": "b", "label": "SUPPORTS"}]
    cases, faults = load(tmp_path, rows, ignore=("split",))
    assert len(cases) == 2
    assert [fault.partition("(did")[2] for fault in faults] == [
        " you mean `fields: {verdict: label}`?)",
        " you mean `fields: {evidence_sources: evidence}`?)",
    ]


def test_rows_that_lack_an_answer_are_one_fault(tmp_path: Path) -> None:
    rows = [{"claim_id": n, "pred_label": "Refuted"} for n in range(500)]
    _, faults = load(tmp_path, CLAIMS, rows)
    assert len(faults) == 1
    assert "expected `prediction` or `answer` or `verdict` (and 499 more rows like it)" in faults[0]
