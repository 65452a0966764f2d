"""Mutators: each change is wrong by construction, each rewrite is as good as the answer, in English and Chinese."""

from typing import Any

import pytest

from pytest_llmeval import Mutator, Neighbours, get_evaluator
from pytest_llmeval.core import MISSING, Case, Parts
from pytest_llmeval.core._case import PredictionParts
from pytest_llmeval.suites import Registry
from pytest_llmeval.workbench.mutation._mutants import is_wrong

NAMED: dict[str, Mutator] = {each.name: each for each in Registry.installed().mutators}
OTHER = Case("other", "Who sings?", "Bela Nagy", "Bela Nagy sings on Monday.")


def changed(name: str, case: Case, *others: Case, **evaluators: Any) -> Any:
    made = {each: get_evaluator(each, **options) for each, options in evaluators.items()}
    return NAMED[name].change(case, Neighbours(others or (OTHER,), evaluators=made, seed="1"))


def of_answer(name: str, answer: Any, expected: Any = None, *others: Case) -> Any:
    return changed(name, Case("c", "Which?", expected, answer), *others)


@pytest.mark.parametrize(
    ("name", "answer", "mutant"),
    [
        ("number", "It has two floors.", "It has three floors."),
        ("number", "共三层。", "共四层。"),
        ("date", "It opened on 2024-05-31.", "It opened on 2024-06-31."),
        ("date", "It opened in December 2023.", "It opened in January 2023."),
        ("date", "Closed on Sundays.", "Closed on Mondays."),
        ("date", "2024年12月3日开业", "2024年1月3日开业"),
        ("date", "周日休息", "周一休息"),
        ("unit", "It takes 30 days.", "It takes 30 weeks."),
        ("unit", "需要30天。", "需要30周。"),
        ("unit", "It costs 5 €.", "It costs 5 $."),
        ("sign", "It was -5 degrees.", "It was 5 degrees."),
        ("sign", "It changed by +5 points.", "It changed by -5 points."),
        ("direction", "Free above 50 euros.", "Free below 50 euros."),
        ("direction", "满50元以上免费", "满50元以下免费"),
        ("negation", "It is open.", "It is not open."),
        ("negation", "You cannot return it.", "You can return it."),
        ("negation", "It isn't open.", "It is open."),
        ("negation", "可以退货。", "不可以退货。"),
        ("negation", "这里没有座位。", "这里有座位。"),
        ("facts_swapped", "Open from 9 until 18 daily.", "Open from 18 until 9 daily."),
        ("facts_swapped", "she said Anna met Bert here", "she said Bert met Anna here"),
        ("citation", "It is free [1].", "It is free [2]."),
        ("refusal", "It is free.", "I'm sorry, but I can't help with that."),
        ("refusal", "免费。", "抱歉，我无法回答这个问题。"),
        ("truncated", "one two three four five six", "one two three"),
        ("truncated", "三十天内可以退货", "三十天内"),
        ("question", "It is free.", "Which?"),
        ("unsupported", "It is free.", "It is free. Bela Nagy sings on Monday."),
    ],
)
def test_one_fact_of_a_text_is_changed(name: str, answer: str, mutant: str) -> None:
    assert of_answer(name, answer) == mutant
    assert of_answer(name, {"answer": answer, "usage": {}}) == {"answer": mutant, "usage": {}}


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("number", "See version v2 [3]."),
        ("date", "It may rain."),
        ("unit", "The daylight is good."),
        ("facts_swapped", "You need 3 and 4 of them."),
        ("facts_swapped", "she asked Anna, Bert"),
        ("negation", "This works."),
        ("negation", "但是价格更低"),
        ("truncated", "too short"),
        ("citation", "It is free."),
        ("number", '{"total": 3}'),
    ],
)
def test_a_change_that_might_be_right_is_none(name: str, answer: str) -> None:
    assert of_answer(name, answer) is None


def test_only_facts_that_are_known_to_be_right_are_changed() -> None:
    answer = "As I said in part 2, it takes 30 days."
    assert of_answer("number", answer, "30 days").startswith("As I said in part 2, it takes ")
    assert of_answer("number", answer, "a month") is None
    prediction = {"answer": answer, "contexts": ["Refunds take 30 days."]}
    assert "part 2," in of_answer("number", prediction)["answer"]


def test_another_answer_that_has_what_is_expected_is_no_mutant() -> None:
    same = Case("s", "Where is it?", "Paris, France", "It is in Paris, France.")
    assert of_answer("other_answer", "Paris", "Paris", same) is None
    assert of_answer("other_answer", "Paris", "Paris", same, OTHER) == "Bela Nagy sings on Monday."


def test_a_short_answer_gets_the_name_of_another_case() -> None:
    assert of_answer("name", "It was painted by Anna Meyer.", "Anna Meyer") == "It was painted by Bela Nagy."
    chinese = Case("o", "谁？", "李四", "李四")
    assert of_answer("name", "作者是张三。", "张三", chinese) == "作者是李四。"


def test_the_sentence_is_dropped_without_which_something_is_missing() -> None:
    answer = "Good question! Refunds take 30 days. Anything else?"
    assert of_answer("sentence_dropped", answer, "30 days") == "Good question! Anything else?"
    assert of_answer("sentence_dropped", "好的。退款需要三十天。", "三十天") == "好的。"
    assert of_answer("sentence_dropped", "It takes 30 days. Really, 30 days.", "30 days") is None


def test_a_citation_moves_to_a_passage_that_is_not_cited() -> None:
    prediction = {"answer": "It is free [1][2].", "contexts": ["a", "b", "c"]}
    assert of_answer("citation", prediction)["answer"] == "It is free [3][2]."


def test_the_answer_is_found_where_the_suite_says() -> None:
    def case(path: str) -> Case:
        prediction = {"output": {"text": "It takes 30 days."}, "runs": [{"text": "It takes 30 days."}]}
        return Case("c", "?", None, prediction, origin=PredictionParts(Parts(answer=path), prediction))

    assert changed("unit", case("output.text"))["output"] == {"text": "It takes 30 weeks."}
    assert changed("unit", case("runs[0].text"))["runs"] == [{"text": "It takes 30 weeks."}]
    assert changed("unit", case("join('', runs[].text)")) is None, "what is computed cannot be put back"


RECORD = {"total": 3, "tags": ["a", "b"], "note": "x"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("field_added", {**RECORD, "additional_information": "none"}),
        ("list_reordered", {**RECORD, "tags": ["b", "a"]}),
        ("list_doubled", {**RECORD, "tags": ["a", "b", "a"]}),
    ],
)
def test_fields_are_changed_in_objects_and_in_json(name: str, expected: Any) -> None:
    import json

    assert of_answer(name, RECORD, RECORD) == expected
    fenced = f"Here:\n```json\n{json.dumps(RECORD)}\n```"
    assert of_answer(name, fenced, RECORD) == f"Here:\n```json\n{json.dumps(expected)}\n```"


def test_the_options_of_the_suite_say_what_matters() -> None:
    case = Case("c", "?", RECORD, RECORD)
    free = {"fields": {"tags": "list", "note": "ignore"}}
    assert changed("list_reordered", case, **free) is None
    assert changed("free_order", case, **free) == {**RECORD, "tags": ["b", "a"]}
    assert changed("free_order", case, fields={}) is None
    assert changed("list_doubled", case, fields={"tags": "set"}) is None
    made = [{"name": "find", "arguments": {"id": 1}}, {"name": "pay", "arguments": {}}]
    calls = Case("c", "?", {"tool_calls": made}, {"tool_calls": made})
    assert changed("call_reordered", calls, tools={"order": "any_order"}) is None
    assert changed("free_calls", calls, tools={"order": "any_order"}) == {"tool_calls": made[::-1]}
    assert changed("free_calls", calls, tools={}) is None
    assert changed("call_reordered", calls, tools={}) == {"tool_calls": made[::-1]}
    assert changed("call_added", calls, tools={"forbidden": ["drop_*"]})["tool_calls"][-1]["name"] == "drop_everything"
    assert changed("argument", calls, tools={"ignore_arguments": ["id"]}) is None


def test_calls_are_changed_in_whatever_form_the_trace_has_them() -> None:
    message = {
        "role": "assistant",
        "tool_calls": [{"id": "1", "type": "function", "function": {"name": "find", "arguments": '{"id": 1}'}}],
    }
    expected = {"tool_calls": [{"name": "find", "arguments": {"id": 1}}]}
    case = Case("c", "?", expected, {"messages": [message]})
    assert changed("call_dropped", case) == {"messages": [message], "tool_calls": []}
    assert changed("argument", case)["tool_calls"] == [{"name": "find", "arguments": {"id": 2}}]


def test_rankings_are_changed_only_where_it_makes_them_worse() -> None:
    def ranked(name: str, results: list[str]) -> Any:
        return of_answer(name, results, {"positives": [{"id": "a"}, {"id": "b"}]})

    assert ranked("ranking_reversed", ["a", "x", "b", "y"]) == ["y", "b", "x", "a"]
    assert ranked("ranking_reversed", ["x", "a"]) is None
    assert ranked("relevant_last", ["x", "a", "b"]) is None
    assert ranked("relevant_last", ["a", "x"]) == ["x", "a"]
    assert ranked("relevant_removed", ["a", "x"]) == ["x"]
    assert ranked("relevant_removed", ["x", "y"]) is None


TALK = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hi!"},
    {"role": "user", "content": "Who are you?"},
    {"role": "assistant", "content": "A bot."},
]


def test_conversations_lose_a_turn_or_change_roles() -> None:
    case = Case("c", ["Hello", "Who are you?"], None, {"answer": "A bot.", "messages": TALK, "turns": 2})
    dropped = changed("turn_dropped", case)
    assert (len(dropped["messages"]), dropped["turns"], dropped["messages"][0]) == (3, 1, TALK[0])
    swapped = changed("roles_swapped", case)["messages"]
    assert [each["role"] for each in swapped] == ["system", "assistant", "user", "assistant", "user"]
    assert changed("empty", case)["messages"][-1]["content"] == "", "the last answer is also the last message"


@pytest.mark.parametrize(
    ("name", "answer", "rewrite"),
    [
        ("case", "It is OPEN.", "iT IS open."),
        ("white_space", "It is open.", "  It  is  open.\n"),
        ("full_width", "共30天，可以退货", "共３０天，可以退货"),
        ("full_width", "共３０天", "共30天"),
        ("punctuation", "It is open.", "It is open"),
        ("punctuation", "营业中", "营业中。"),
        ("around", "Paris", "It is Paris."),
        ("around", "北京", "答案是北京。"),
        ("thousands", "It has 12000 seats.", "It has 12,000 seats."),
        ("thousands", "It has 1,200,000 seats.", "It has 1200000 seats."),
        ("date_form", "It opened on 2024-05-03.", "It opened on 3 May 2024."),
        ("date_form", "It opened on 3 May 2024.", "It opened on 2024-05-03."),
        ("date_form", "于2024-05-03开业", "于2024年5月3日开业"),
        ("date_form", "于2024年5月3日开业", "于2024-05-03开业"),
        ("json_form", '{"a": 1, "b": 2}', '{\n  "b": 2,\n  "a": 1\n}'),
    ],
)
def test_a_rewrite_says_the_same(name: str, answer: str, rewrite: str) -> None:
    assert of_answer(name, answer) == rewrite
    assert NAMED[name].equivalent


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("full_width", "It has 30 seats."),
        ("thousands", "Call 0421 5550199, or write to 28195 4"),
        ("date_form", "It is 2024-13-45."),
        ("around", "This is a whole sentence already."),
        ("case", "`code`"),
        ("json_form", "no JSON"),
    ],
)
def test_a_rewrite_that_might_matter_is_none(name: str, answer: str) -> None:
    assert of_answer(name, answer) in (None, answer)


def test_a_synonym_is_another_answer_that_the_case_accepts() -> None:
    assert of_answer("synonym", "Paris.", ["Paris", "City of Light"]) == "City of Light"
    assert of_answer("synonym", "It is Paris.", ["Paris", "City of Light"]) is None
    assert of_answer("synonym", "Paris", "Paris") is None


@pytest.mark.parametrize(
    ("prediction", "wrong"),
    [("paris.", False), (" PARIS ", False), ("city of light", False), ("Rome", True), ("", True), (["Paris"], True)],
)
def test_what_the_case_expects_is_no_mutant(prediction: Any, wrong: bool) -> None:
    assert is_wrong(Case("c", "?", ["Paris", "City of Light"], "Paris"), prediction) is wrong


def test_a_case_without_a_prediction_in_a_form_is_left_alone() -> None:
    general = [name for name, each in NAMED.items() if not each.evaluators]
    for prediction in (None, 3, True, [], {}, MISSING, [[1, 2]], {"other": 1}):
        case = Case("c", None, None, prediction)
        assert {name: found for name in general if (found := changed(name, case)) is not None} == {}
