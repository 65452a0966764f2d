"""The source ``tau``: tasks of tau-bench and tau2-bench as cases of agents."""

import json
from pathlib import Path
from typing import Any

import pytest
from project import cases_of, load_source, write

from pytest_llmeval import Case, get_checks
from pytest_llmeval.core import Fault
from pytest_llmeval.tasks.agents._conversation import TauSource

FIRST = {
    "annotator": "0",
    "user_id": "kim_12",
    "instruction": "You want to return order 7 and to know the sum. ",
    "actions": [
        {"name": "return_order", "kwargs": {"order_id": "#7", "items": ["1", "2"]}},
        {"name": "respond", "kwargs": {"content": "Done."}},
    ],
    "outputs": ["1786", "blue lamp", "$30"],
}
SECOND = {
    "id": "[shop]return|late[USER:3]",
    "description": {"purpose": "The agent must refuse.", "notes": None},
    "user_scenario": {
        "persona": "\nYou are in a hurry.\n",
        "instructions": {
            "task_instructions": "If it is refused, ask why.",
            "domain": "shop",
            "reason_for_call": "You want to return an old order.",
            "known_info": "You are Kim.",
            "unknown_info": "You do not know the number of the order.",
        },
    },
    "initial_state": None,
    "evaluation_criteria": {
        "actions": [
            {"action_id": "0", "name": "find_user", "arguments": {"name": "Kim"}, "info": None},
            {"action_id": "1", "requestor": "user", "name": "look_up", "arguments": {}},
            {"action_id": "2", "name": "note", "arguments": {"id": 3, "text": "x"}, "compare_args": ["id"]},
            {"action_id": "3", "name": "close", "arguments": {"id": 3}, "compare_args": []},
        ],
        "communicate_info": ["14"],
        "nl_assertions": ["The agent refuses."],
        "reward_basis": ["DB", "COMMUNICATE"],
    },
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def tasks(data: Any, **options: Any) -> tuple[list[Case], list[str]]:
    return load_source("tau", Path(), path=write("tasks.json", data), **options)


def test_a_task_of_tau_bench_becomes_a_case() -> None:
    (case,), faults = tasks([FIRST])
    assert faults == []
    assert (case.id, case.line) == ("0", 1)
    assert case.input == {
        "goal": "You want to return order 7 and to know the sum.",
        "knows": {"user_id": "kim_12"},
    }
    call = {"name": "return_order", "arguments": {"order_id": "#7", "items": ["1", "2"]}}
    assert case.expected == {"tool_calls": [call]}
    assert len(case.checks) == 3


def test_a_task_of_tau2_bench_becomes_a_case() -> None:
    (case,), faults = tasks([SECOND])
    assert faults == []
    assert case.id == "[shop]return|late[USER:3]"
    assert case.input == {
        "persona": "You are in a hurry.",
        "goal": "You want to return an old order.\n\nIf it is refused, ask why.\n\n"
        "You do not know the number of the order.",
        "knows": {"known_info": "You are Kim."},
    }
    assert case.expected == {
        "tool_calls": [
            {"name": "find_user", "arguments": {"name": "Kim"}},
            {"name": "note", "arguments": {"id": 3}},
            {"name": "close"},
        ]
    }
    assert case.labels == {"domain": "shop"}
    assert [each["name"] for each in case.checks] == ["communicated"]


def test_instructions_may_be_text_and_results_of_a_run_have_tasks() -> None:
    plain = {"id": 5, "user_scenario": {"instructions": "Return it."}, "evaluation_criteria": None}
    (case,), faults = tasks({"timestamp": "x", "tasks": [plain], "simulations": []})
    assert faults == []
    assert (case.id, case.input, case.expected, case.checks) == ("5", {"goal": "Return it."}, None, ())


def test_assertions_are_checks_of_the_judge_where_they_are_wanted() -> None:
    (case,), _ = tasks([SECOND], assertions=True)
    assert case.checks[1] == {"judge": "The agent refuses.", "on": "messages", "name": "assertion"}


def test_a_split_that_names_tasks_which_do_not_exist_is_a_fault() -> None:
    write("split_tasks.json", {"test": ["a", "zz"]})
    found, faults = tasks([{"id": "a", "instruction": "Go."}], split="test")
    assert [case.id for case in found] == ["a"]
    assert str(faults[0]) == "tasks.json  split: found 'zz' in 'test', expected ids of tasks in tasks.json"


def test_a_split_selects_tasks() -> None:
    write("split_tasks.json", {"train": ["a"], "test": ["b", "c"]})
    listed = [{"id": name, "instruction": "x"} for name in "abc"]
    assert [case.id for case in tasks(listed, split="test")[0]] == ["b", "c"]
    _, faults = tasks(listed, split="tests")
    assert (
        faults[0]
        == "tasks.json  split: found 'tests', expected one of train, test in split_tasks.json (did you mean 'test'?)"
    )


def talk(*said: str) -> dict[str, Any]:
    messages = [{"role": "user", "content": "1786? blue lamp? $30?"}]
    messages += [{"role": "assistant", "content": each} for each in said]
    return {"messages": [*messages, {"role": "assistant", "content": None}], "answer": said[-1]}


@pytest.mark.parametrize(
    ("prediction", "met"),
    [
        (talk("It is $1,786.", "A Blue, lamp for $30."), [1, 1, 1]),
        (talk("It is 1786 and a blue\nlamp", "Bye."), [1, 1, 0]),
        (talk("It is 17 86", "A bluelamp for 30"), [0, 0, 0]),
        ({"answer": "1786 for a blue lamp ($30)"}, [1, 1, 1]),
        ("1,786 and $30", [1, 0, 1]),
    ],
)
def test_outputs_are_looked_for_in_all_that_the_assistant_said(prediction: Any, met: list[int]) -> None:
    (case,), _ = tasks([FIRST])
    found = [get_checks(each).evaluate(prediction, None)["check_rate"] for each in case.checks]
    assert found == met


def test_commas_between_digits_do_not_matter() -> None:
    (case,), _ = tasks([FIRST | {"outputs": ["1,234,567 EUR"]}])
    found = [
        get_checks(*case.checks).evaluate(each, None)["check_rate"] for each in ("1234567 eur", "1,234,567 EUR", "123")
    ]
    assert found == [1, 1, 0]


FAULTS = Path(__file__).with_name("tau_task_faults.txt")
"""The faults that the test below expects, in their order."""


def test_malformed_tasks_are_faults_with_line_and_field() -> None:
    data = [
        3,
        {"id": "a"},
        {"id": "b", "instruction": ["x"], "actions": {"name": "x"}, "outputs": [1]},
        {"id": "c", "instruction": "x", "actions": ["call", {"name": ""}, {"name": "f", "kwargs": 3}]},
        {"id": "d", "user_scenario": "x"},
        {"id": "e", "user_scenario": {"instructions": {"reason_for_call": " "}}},
        {"id": [], "instruction": "x"},
        {
            "id": "f",
            "user_scenario": {"instructions": "x"},
            "evaluation_criteria": {"actions": [{"name": "g", "compare_args": "x"}]},
        },
        {"id": "good", "instruction": "x"},
        {"id": "good", "instruction": "x"},
    ]
    text = "[\n" + ",\n".join(map(json.dumps, data)) + "\n]"
    cases, faults = tasks(text)
    assert [case.id for case in cases] == ["good"]
    assert [each.removeprefix("tasks.json:") for each in faults] == FAULTS.read_text(encoding="utf-8").splitlines()


def test_python_files_are_not_executed() -> None:
    write("tasks.py", "raise SystemExit")
    cases, faults = cases_of(TauSource("tasks.py"), Path())
    assert cases == []
    why = "found a Python file, which is not executed, expected the list of its tasks as JSON"
    assert faults == [f"tasks.py  {why}: [task.model_dump() for task in TASKS]"]


def test_a_faulty_task_is_one_case_that_cannot_run() -> None:
    source = TauSource("tasks.json")
    write("tasks.json", json.dumps([{"id": "a", "instruction": 3, "outputs": 4}, FIRST], indent=1))
    faults: list[Fault] = []
    cases = source.load(Path(), faults)
    assert (len(cases), len(faults), source.faulty(faults)) == (1, 2, 1)
