import json
from pathlib import Path
from typing import Any

import pytest
from project import load_source

from pytest_llmeval.core import MISSING, Fault
from pytest_llmeval.suites import Registry

SAMPLES = [
    {
        "sample_id": name,
        "conversation": {},
        "qa": [{"question": f"{name} {index}", "answer": "x", "category": 1 + index % 5} for index in range(count)],
    }
    for name, count in (("conv-1", 3), ("conv-2", 2))
]


@pytest.fixture(autouse=True)
def data_files(here: Path) -> None:
    (here / "a.jsonl").write_text("".join(json.dumps({"id": name, "prediction": "own"}) + "\n" for name in "abc"))
    (here / "b.jsonl").write_text('{"id": "alpha"}\n{"id": 7}\n')
    (here / "locomo.json").write_text(json.dumps(SAMPLES))


def load(folder: Path, data: str, name: str, text: str, **options: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the predictions of the cases of a data file by id, and the faults."""
    (folder / name).write_bytes(text.encode())
    source = "jsonl" if data.endswith("jsonl") else "locomo"
    cases, faults = load_source(source, folder, path=data, predictions=name, **options)
    return {case.id: case.prediction for case in cases}, faults


def jsonl(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("p.json", '{"alpha": "x", "7": null}'),
        ("p.json", '[{"id": "alpha", "prediction": "x"}, {"id": 7, "prediction": null}]'),
        ("p.jsonl", jsonl({"question_id": "alpha", "hypothesis": "x"}, {"question_id": "7", "answer": None})),
        ("p.out", jsonl({"id": "alpha", "answer": "gold", "prediction": "x"}, {"id": 7, "answer": None})),
        ("p.jsonl", jsonl({"id": 1, "question_id": "alpha", "hypothesis": "x"}, {"id": 7, "answer": None})),
    ],
)
def test_answers_come_to_their_cases_in_every_form(tmp_path: Path, name: str, text: str) -> None:
    assert load(tmp_path, "b.jsonl", name, text) == ({"alpha": "x", "7": None}, [])


def test_cases_without_an_answer_keep_what_they_have(tmp_path: Path) -> None:
    assert load(tmp_path, "b.jsonl", "p.json", '{"7": {"any": [1]}}') == ({"alpha": MISSING, "7": {"any": [1]}}, [])
    assert load(tmp_path, "a.jsonl", "p.json", '{"b": ""}') == ({"a": "own", "b": "", "c": "own"}, [])


def test_ids_are_compared_in_composed_form(tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_text(jsonl({"id": "é"}))
    assert load(tmp_path, "c.jsonl", "p.json", '{"e\u0301": 1}') == ({"é": 1}, [])


def test_a_whole_number_is_the_same_id_with_and_without_a_fraction_unless_both_are_ids(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("id,input\n264.0,a\n1.5,b\n8.0,c\n8,d\n", encoding="utf-8")
    (tmp_path / "p.json").write_text('{"264": "x", "1.5": "y", "8": "z"}', encoding="utf-8")
    cases, faults = load_source("csv", tmp_path, path="c.csv", predictions="p.json")
    assert [(case.id, case.prediction) for case in cases] == [
        ("264.0", "x"),
        ("1.5", "y"),
        ("8.0", MISSING),
        ("8", "z"),
    ]
    assert faults == []
    assert load(tmp_path, "b.jsonl", "p.jsonl", jsonl({"id": 7.0, "answer": 1})) == ({"alpha": MISSING, "7": 1}, [])


def test_unknown_ids_are_told_once_with_their_number(tmp_path: Path) -> None:
    text = '{"7": "x",\n "alhpa": "y", "z1": 1, "z2": 2, "z3": 3}'
    found, faults = load(tmp_path, "b.jsonl", "p.json", text)
    assert found == {"alpha": MISSING, "7": "x"}
    assert faults == [
        (
            "p.json:2:2  found 4 ids that no case has ('alhpa', 'z1', 'z2', ...),"
            " expected ids such as 'alpha' (did you mean 'alpha'?)"
        )
    ]


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("p.json", '{"7": 1,\n "7": 2}', "p.json:2:2  ['7']: found the key '7' twice, expected it once (first at 1:2)"),
        ("p.json", "3", "p.json:1:1  found the number 3, expected an object of answers by id, or a list of rows"),
        ("p.json", "", "p.json  found an empty file, expected JSON"),
        (
            "p.json",
            "[7]",
            "p.json:1:2  [0]: found the number 7, expected an object with `question_id` and `prediction`",
        ),
        (
            "p.jsonl",
            jsonl({"id": 7, "prediction": 1}, {"question_id": "7", "answer": 2}),
            "p.jsonl:2:1  found a second answer to '7', expected one (first in line 1)",
        ),
        (
            "p.jsonl",
            jsonl({"qid": 7, "prediction": 1}),
            "p.jsonl:1:1  found the keys 'qid', 'prediction', expected `question_id` or `query_id` or `id`",
        ),
        ("p.jsonl", "{}", "p.jsonl:1:1  found no key, expected `question_id` or `query_id` or `id`"),
        (
            "p.jsonl",
            jsonl({"id": 7, "reply": 1}),
            "p.jsonl:1:1  found the keys 'id', 'reply', expected `prediction` or `hypothesis` or `answer` or `results`",
        ),
        (
            "p.jsonl",
            jsonl({"id": 7.5, "prediction": 1}),
            "p.jsonl:1:1  found the number 7.5 as `id`, expected text or a whole number",
        ),
        ("p.jsonl", "x", "p.jsonl:1:1  found 'x', expected a JSON value"),
    ],
)
def test_bad_prediction_files_are_told_with_their_place(tmp_path: Path, name: str, text: str, fault: str) -> None:
    found, faults = load(tmp_path, "b.jsonl", name, text)
    assert faults == [fault]
    assert found["alpha"] is MISSING


def test_missing_prediction_file_is_a_fault(tmp_path: Path) -> None:
    faults: list[Fault] = []
    cases = Registry.installed().source("jsonl")(path="b.jsonl", predictions="sub/p.json").load(tmp_path, faults)
    assert [case.prediction for case in cases] == [MISSING, MISSING]
    assert list(map(str, faults)) == ["sub/p.json  cannot be read: No such file or directory"]


def test_faults_of_the_data_do_not_repeat_as_unknown_ids(tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_text("x\n")
    _, faults = load(tmp_path, "c.jsonl", "p.json", '{"a": 1}')
    assert faults == ["c.jsonl:1:1  found 'x', expected a JSON value"]


@pytest.mark.parametrize(
    "text",
    [
        jsonl({"id": "conv-1/2", "prediction": "x"}),
        jsonl({"sample_id": "conv-1", "question_id": 2, "prediction": "x"}),
        jsonl({"conversation_id": "conv-1", "id": "2", "prediction": "x"}),
        jsonl({"sample_id": "conv-1", "id": "conv-1/2", "prediction": "x"}),
        jsonl({"id": 2, "prediction": "x"}),
    ],
)
def test_locomo_answers_name_their_conversation_where_it_matters(tmp_path: Path, text: str) -> None:
    found, faults = load(tmp_path, "locomo.json", "p.jsonl", text)
    assert faults == []
    assert {name for name, value in found.items() if value == "x"} == {"conv-1/2"}


def test_index_that_several_conversations_have_is_ambiguous(tmp_path: Path) -> None:
    found, faults = load(tmp_path, "locomo.json", "p.json", '{"conv-1/2": "x", "0": "y", "1": "z"}')
    assert found["conv-1/2"] == "x"
    assert found["conv-1/0"] is MISSING
    assert faults == [
        (
            "p.json:1:19  found 2 ids that several conversations have ('0', '1'),"
            " expected them with their conversation: '0' is 'conv-1/0' or 'conv-2/0'"
        )
    ]


def test_index_is_enough_where_one_conversation_is_selected(tmp_path: Path) -> None:
    found, faults = load(tmp_path, "locomo.json", "p.json", '{"0": "y", "conv-1/1": "z"}', conversations=("conv-2",))
    assert found == {"conv-2/0": "y", "conv-2/1": MISSING}
    assert faults == []


def test_second_answer_under_a_short_id_is_a_fault(tmp_path: Path) -> None:
    _, faults = load(tmp_path, "locomo.json", "p.json", '{"2": "y", "conv-1/2": "z"}')
    assert faults == ["p.json:1:12  found a second answer to 'conv-1/2', expected one (first in line 1)"]


def test_short_ids_are_for_conversations_only(tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_text(jsonl({"id": "x/1"}))
    _, faults = load(tmp_path, "c.jsonl", "p.json", '{"1": "y"}')
    assert faults[0].startswith("p.json:1:2  found 1 id that no case has ('1'), expected ids such as 'x/1'")


def test_answers_to_questions_that_are_not_selected_are_passed_over(tmp_path: Path) -> None:
    text = json.dumps({f"conv-1/{index}": str(index) for index in range(3)})
    found, faults = load(tmp_path, "locomo.json", "p.json", text, question_types=("temporal",))
    assert found == {"conv-1/1": "1", "conv-2/1": MISSING}
    assert faults == []
