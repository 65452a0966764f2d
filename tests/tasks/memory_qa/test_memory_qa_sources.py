import json
from pathlib import Path
from typing import Any

import pytest
from project import Loaded, load_source, write

from pytest_llmeval import get_evaluator
from pytest_llmeval.core import MISSING, Case, Fault
from pytest_llmeval.tasks.memory_qa._sources import LocomoSource, LongMemEvalSource

pytestmark = pytest.mark.usefixtures("here")


def load(folder: Path, name: str, data: Any, **options: Any) -> Loaded:
    return load_source(name, folder, path=write("a.json", json.dumps(data, indent=1)), **options)


def sample(name: Any = "conv-1", *questions: Any, **others: Any) -> dict[str, Any]:
    return {"sample_id": name, "conversation": {"session_1": ["hello"]}, "qa": list(questions), **others}


def question(**others: Any) -> dict[str, Any]:
    return {"question": "q", "answer": "x", "category": 1, **others}


def memory(**others: Any) -> dict[str, Any]:
    return {
        "question_id": "q1",
        "question_type": "multi-session",
        "question": "q",
        "question_date": "2024/03/15",
        "answer": "x",
        "haystack_dates": ["2024/03/01"],
        "haystack_session_ids": ["s1"],
        "haystack_sessions": [[{"role": "user", "content": "hello"}]],
        **others,
    }


def test_locomo_question_has_its_place_its_labels_and_its_conversation(tmp_path: Path) -> None:
    cases, faults = load(tmp_path, "locomo", [sample("conv-1", question(category=2)), sample("conv-2", question())])
    assert faults == []
    assert cases[0] == Case(
        id="conv-1/0",
        input={"question": "q", "conversation_id": "conv-1", "conversation": {"session_1": ["hello"]}},
        expected="x",
        prediction=MISSING,
        labels={"question_type": "temporal", "category": "2", "conversation_id": "conv-1"},
        line=10,
    )
    assert [case.id for case in cases] == ["conv-1/0", "conv-2/0"]


def test_questions_of_one_conversation_share_it(tmp_path: Path) -> None:
    cases, _ = load(tmp_path, "locomo", [sample("a", question(), question()), sample("b", question())])
    assert cases[0].input["conversation"] is cases[1].input["conversation"]
    assert cases[0].input["conversation"] is not cases[2].input["conversation"]


def test_locomo_history_can_be_left_out(tmp_path: Path) -> None:
    data = [{"sample_id": "conv-1", "qa": [question()]}]
    cases, faults = load(tmp_path, "locomo", data, history=False)
    assert faults == []
    assert cases[0].input == {"question": "q", "conversation_id": "conv-1"}


def test_category_outside_the_known_keeps_its_number(tmp_path: Path) -> None:
    cases, faults = load(tmp_path, "locomo", [sample("c", question(category=9))])
    assert faults == []
    assert cases[0].labels == {"question_type": "single_hop", "category": "9", "conversation_id": "c"}


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (question(answer=2022), "2022"),
        (question(answer=1.5), "1.5"),
        (question(answer=True), "true"),
        (question(answer=["a", "é"]), '["a", "é"]'),
        (question(answer=None), ""),
        (question(answer=""), ""),
        (question(category=5, adversarial_answer="trap"), "trap"),
        (question(category=5, adversarial_answer=7), "7"),
        (question(category=5, adversarial_answer=None), "x"),
        (question(category=4, adversarial_answer="trap"), "x"),
    ],
)
def test_locomo_answer_is_text(tmp_path: Path, item: dict[str, Any], text: str) -> None:
    cases, _ = load(tmp_path, "locomo", [sample("c", item)], adversarial="original")
    assert cases[0].expected == text


@pytest.mark.parametrize("more", [{"adversarial_answer": "trap"}, {"adversarial_answer": "trap", "answer": "x"}, {}])
def test_a_question_that_nobody_can_answer_expects_nothing(tmp_path: Path, more: dict[str, Any]) -> None:
    item = {"question": "q", "category": 5, **more}
    cases, faults = load(tmp_path, "locomo", [sample("c", item)])
    assert (cases[0].expected, faults) == (None, [])
    for metric, value in get_evaluator("text").evaluate("trap", cases[0].expected).items():
        assert value is None, metric


def test_categories_have_the_names_of_locomo_by_option(tmp_path: Path) -> None:
    data = [sample("c", *(question(category=category) for category in range(1, 7)))]
    cases, _ = load(tmp_path, "locomo", data, category_names="locomo")
    names = ["multi_hop", "temporal", "open_domain", "single_hop", "adversarial", "single_hop"]
    assert [case.labels["question_type"] for case in cases] == names
    cases, _ = load(tmp_path, "locomo", data, category_names="locomo", question_types=("open_domain",))
    assert [case.id for case in cases] == ["c/2"]


def test_answers_belong_to_the_question_that_they_repeat(tmp_path: Path) -> None:
    data = [
        sample("c1", question(question="Where?"), question(question="Who is it?")),
        sample("c2", question(question="Where?")),
    ]
    rows: list[dict[str, Any]] = [
        {"question": "Who  is it?", "answer": "Ada"},
        {"question": "Where?", "sample_id": "c2", "prediction": "here"},
        {"question": "Where?", "prediction": "?"},
    ]
    (tmp_path / "p.jsonl").write_text("\n".join(map(json.dumps, rows)))
    cases, faults = load(tmp_path, "locomo", data, predictions="p.jsonl")
    assert {case.id: case.prediction for case in cases} == {"c1/0": MISSING, "c1/1": "Ada", "c2/0": "here"}
    assert [fault.partition("expected")[0] for fault in faults] == [
        "p.jsonl:3:1  found the keys 'question', 'prediction', "
    ]


def test_files_of_the_scripts_of_locomo_are_answers(tmp_path: Path) -> None:
    data = [sample("c1", question(question="Where?"), question(question="Who?"))]
    written = [{"sample_id": "c1", "qa": [{**question(), "gpt_prediction": "here", "gpt_f1": 0.5}, question()]}]
    (tmp_path / "p.json").write_text(json.dumps(written))
    cases, faults = load(tmp_path, "locomo", data, predictions="p.json")
    assert ([case.prediction for case in cases], faults) == (["here", MISSING], [])


def test_references_of_longmemeval_may_be_lines(tmp_path: Path) -> None:
    rows = [{"question_id": f"q{n}", "question_type": "multi-session", "question": "?", "answer": n} for n in (1, 2)]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, [*rows, {"question_id": "q3"}])))
    faults: list[Fault] = []
    source = LongMemEvalSource(path="a.jsonl", history=False)
    cases = source.load(tmp_path, faults)
    assert [(case.id, case.expected, case.line) for case in cases] == [("q1", "1", 1), ("q2", "2", 2)]
    assert {fault.line for fault in faults} == {3}


def test_conversations_and_question_types_can_be_selected(tmp_path: Path) -> None:
    questions = [question(category=category) for category in range(1, 6)]
    data = [sample("conv-1", *questions), sample("conv-2", *questions)]
    cases, faults = load(tmp_path, "locomo", data, conversations=("conv-2",), question_types=("temporal", "multi_hop"))
    assert faults == []
    assert [case.id for case in cases] == ["conv-2/1", "conv-2/2"]


@pytest.mark.parametrize(
    ("options", "faults"),
    [
        (
            {"conversations": ("conv-2",)},
            ["a.json  conversations: unknown conversation conv-2, did you mean conv-1?"],
        ),
        (
            {"question_types": ("tempral",)},
            ["a.json  question_types: unknown question type tempral, did you mean temporal?"],
        ),
        (
            {"question_types": ("temporal",)},
            ["a.json  the options select no case"],
        ),
    ],
)
def test_options_that_select_nothing_are_faults(tmp_path: Path, options: dict[str, Any], faults: list[str]) -> None:
    assert load(tmp_path, "locomo", [sample("conv-1", question())], **options) == ([], faults)


@pytest.mark.parametrize(
    ("data", "faults"),
    [
        ({}, [":1:1  found an object, expected a list of conversations"]),
        ([3, sample("c", question())], [":2:2  [0]: found the number 3, expected an object"]),
        (
            [{"qa": 3}, sample("c", question())],
            [
                ":2:2  [0].sample_id: found nothing, expected text",
                ":3:9  [0].qa: found the number 3, expected a list of questions",
                ":2:2  [0].conversation: found nothing, expected an object (or `history: false`)",
            ],
        ),
        ([sample("c", 3, question())], [":10:4  [0].qa[0]: found the number 3, expected an object"]),
        (
            [sample("c", {"category": "1"}, {"question": 3, "category": True}, question())],
            [
                ":10:4  [0].qa[0].question: found nothing, expected text",
                ":11:17  [0].qa[0].category: found the text '1', expected a whole number",
                ":14:17  [0].qa[1].question: found the number 3, expected text",
                ":15:17  [0].qa[1].category: found true, expected a whole number",
            ],
        ),
        (
            [sample("c", question()), sample("c", question())],
            [":25:4  [1].sample_id: found the id 'c/0' twice, expected it once (first in line 10)"],
        ),
    ],
)
def test_bad_locomo_items_are_told_with_their_place(tmp_path: Path, data: Any, faults: list[str]) -> None:
    cases, found = load(tmp_path, "locomo", data)
    assert [fault.removeprefix("a.json") for fault in found] == faults
    assert len(cases) == (1 if isinstance(data, list) else 0)


def test_longmemeval_question_has_its_labels_and_its_sessions(tmp_path: Path) -> None:
    cases, faults = load(tmp_path, "longmemeval", [memory(), memory(question_id="q2_abs", answer=3)])
    assert faults == []
    assert cases[0] == Case(
        id="q1",
        input={
            "question": "q",
            "question_date": "2024/03/15",
            "haystack_dates": ["2024/03/01"],
            "haystack_session_ids": ["s1"],
            "haystack_sessions": [[{"role": "user", "content": "hello"}]],
        },
        expected="x",
        labels={"question_type": "multi_session"},
        line=2,
    )
    assert cases[1].labels == {"question_type": "multi_session", "abstention": "true"}
    assert cases[1].expected == "3"


def test_longmemeval_input_does_not_tell_which_turns_hold_the_answer(tmp_path: Path) -> None:
    sessions = [[{"role": "user", "content": "a", "has_answer": True}, {"role": "user", "content": "b"}]]
    cases, _ = load(tmp_path, "longmemeval", [memory(haystack_sessions=sessions, answer_session_ids=["s1"])])
    assert cases[0].input["haystack_sessions"] == [[{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]]
    assert "answer_session_ids" not in cases[0].input


def test_longmemeval_history_can_be_left_out(tmp_path: Path) -> None:
    item = {key: value for key, value in memory().items() if not key.startswith("haystack")}
    cases, faults = load(tmp_path, "longmemeval", [item], history=False)
    assert faults == []
    assert cases[0].input == {"question": "q", "question_date": "2024/03/15"}


@pytest.mark.parametrize(
    ("item", "fault"),
    [
        (3, ":2:2  [0]: found the number 3, expected an object"),
        (memory(question_type=None), ":4:20  [0].question_type: found null, expected text"),
        (memory(question_id=None), ":3:18  [0].question_id: found null, expected text"),
        (memory(question=["q"]), ":5:15  [0].question: found a list, expected text"),
        (
            memory(haystack_sessions="x"),
            ":14:24  [0].haystack_sessions: found the text 'x', expected a list (or `history: false`)",
        ),
    ],
)
def test_bad_longmemeval_items_are_told_with_their_place(tmp_path: Path, item: Any, fault: str) -> None:
    cases, faults = load(tmp_path, "longmemeval", [item, memory(question_id="good")])
    assert [case.id for case in cases] == ["good"]
    assert faults == [f"a.json{fault}"]


def test_longmemeval_ids_that_stand_twice_are_told(tmp_path: Path) -> None:
    _, faults = load(tmp_path, "longmemeval", [memory(), memory()])
    assert faults == ["a.json:23:2  [1].question_id: found the id 'q1' twice, expected it once (first in line 2)"]


def test_longmemeval_must_be_a_list(tmp_path: Path) -> None:
    assert load(tmp_path, "longmemeval", memory())[1] == ["a.json:1:1  found an object, expected a list of questions"]


def test_a_question_type_from_the_future_is_kept_and_can_be_selected(tmp_path: Path) -> None:
    data = [memory(), memory(question_id="q2", question_type="from-the-future")]
    cases, faults = load(tmp_path, "longmemeval", data, question_types=("from_the_future",))
    assert faults == []
    assert [(case.id, case.labels["question_type"]) for case in cases] == [("q2", "from_the_future")]


def test_options_keep_their_order_of_fields() -> None:
    assert LocomoSource("a", "p", False, ("c",), ("temporal",)).conversations == ("c",)
    assert LongMemEvalSource("a", "p", False, ("temporal_reasoning",)).question_types == ("temporal_reasoning",)
