import json
from typing import Any

import pytest

from pytest_llmeval.tasks.narrative._document import Event, is_blank, parse_document, read_story


def event(**fields: Any) -> Event:
    (found,) = read_story({"narrative_events": [fields]}).events
    return found


def faults(data: dict[str, Any]) -> list[str]:
    return list(read_story(data).faults)


@pytest.mark.parametrize("value", [None, "", " \n", [], {}, ()])
def test_what_says_nothing_is_blank(value: Any) -> None:
    assert is_blank(value)


@pytest.mark.parametrize("value", [0, False, "x", [None], {"a": None}])
def test_everything_else_is_not_blank(value: Any) -> None:
    assert not is_blank(value)


@pytest.mark.parametrize("key", ["characters", "narrative_events", "source_info"])
@pytest.mark.parametrize("value", [None, "", "  ", [], {}])
def test_every_kind_of_empty_is_absent_and_no_fault(key: str, value: Any) -> None:
    story = read_story({key: value})
    assert (story.characters, story.events, story.text, story.faults) == ((), (), "", ())


DOCUMENT = {"characters": [{"name": "Ann"}]}
TEXT = json.dumps(DOCUMENT)


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        f"  {TEXT}\n",
        f"```json\n{TEXT}\n```",
        f"Here you are:\n```\n{TEXT}\n```\nAnything else?",
        f"```json\r\n{TEXT}\r\n```",
    ],
)
def test_json_text_is_read_also_from_a_fenced_block(text: str) -> None:
    assert parse_document(text) == DOCUMENT


def test_a_fence_inside_the_document_does_not_end_it() -> None:
    data = {"source_info": {"text_content": "a ``` b"}}
    assert parse_document(f"```json\n{json.dumps(data)}\n```") == data
    assert parse_document(json.dumps(data)) == data


@pytest.mark.parametrize(
    "value",
    [None, 3, [], [1], "", "I cannot", "[1]", "3", "null", "```\nno\n```", "```", "[" * 100_000, '{"a":', "9" * 5000],
)
def test_what_is_no_object_is_no_document(value: Any) -> None:
    assert parse_document(value) is None


def test_characters_have_keys_for_comparing() -> None:
    (found,) = read_story(
        {"characters": [{"name": " Ａnn  B ", "alias": "Annie; ;ANNIE；安", "archetype": " Hero "}]}
    ).characters
    assert (found.name, found.archetype) == ("Ａnn  B", "Hero")
    assert found.keys == ("ann b", "annie", "安")


def test_aliases_may_be_a_list() -> None:
    (found,) = read_story({"characters": [{"name": "Ann", "alias": ["A; B", " ", None]}]}).characters
    assert found.aliases == ("a; b",)


@pytest.mark.parametrize("name", [None, "", " ", [], {}])
def test_a_character_without_a_name_is_left_out(name: Any) -> None:
    story = read_story({"characters": [{"name": name, "alias": "A"}, None, {}, "", {"alias": "B"}]})
    assert (story.characters, story.faults) == ((), ())


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("1", "1", True),
        (1, 1.0, True),
        (1, "1", False),
        (1, True, False),
        (0, False, False),
        ("", "", False),
        (0, 0, True),
    ],
)
def test_ids_are_equal_if_kind_and_value_are(left: Any, right: Any, same: bool) -> None:
    for field in ("id", "time_order"):
        found, other = getattr(event(**{field: left, "x": 1}), field), getattr(event(**{field: right, "x": 1}), field)
        assert (found is not None and found == other) is same


def test_an_event_without_id_is_called_by_its_place() -> None:
    story = read_story({"narrative_events": [{"id": "a"}, {"time_order": 3}, {"id": 7}]})
    assert [each.label for each in story.events] == ["a", "narrative_events[1]", "7"]


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        ({"start": 0, "end": 5}, (0, 5)),
        ({"start": 2.0, "end": 5}, (2, 5)),
        ({"start": 7, "end": -1}, (7, -1)),
        ({"start": None, "end": 5}, None),
        ({"start": 0}, None),
        ({"start": 0, "end": ""}, None),
        (None, None),
        ([], None),
    ],
)
def test_a_span_needs_both_ends(span: Any, expected: tuple[int, int] | None) -> None:
    story = read_story({"narrative_events": [{"id": "a", "text_span": span}]})
    assert (story.events[0].span, story.faults) == (expected, ())


def test_only_given_fields_of_an_action_are_kept() -> None:
    action = {"category": " physical ", "type": "", "context": None, "status": [], "other": "x"}
    assert event(id=1, action_layer=action).action == {"category": "physical"}


def test_sentiments_are_a_set_of_trimmed_texts() -> None:
    found = event(
        id=1, relationships=[{"sentiment": "a; b；a"}, {"sentiment": [" a", "b;c", None, ""]}, {"sentiment": None}]
    )
    assert [each.sentiments for each in found.relationships] == [{"a", "b"}, {"a", "b;c"}, frozenset()]


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        ({"characters": "Ann"}, "characters: found text 'Ann', expected a list"),
        ({"characters": ["Ann"]}, "characters[0]: found text 'Ann', expected an object"),
        ({"characters": [{"name": 3}]}, "characters[0].name: found number 3, expected text"),
        (
            {"characters": [{"name": "a", "alias": 3}]},
            "characters[0].alias: found number 3, expected text or a list of texts",
        ),
        ({"characters": [{"name": "a", "alias": ["b", 3]}]}, "characters[0].alias[1]: found number 3, expected text"),
        ({"source_info": "x"}, "source_info: found text 'x', expected an object"),
        ({"source_info": {"text_content": ["x"]}}, "source_info.text_content: found a list, expected text"),
        ({"narrative_events": {"a": 1}}, "narrative_events: found an object, expected a list"),
        ({"narrative_events": [7]}, "narrative_events[0]: found number 7, expected an object"),
        ({"narrative_events": [{"id": ["a"]}]}, "narrative_events[0].id: found a list, expected text or a number"),
        (
            {"narrative_events": [{"text_span": [0, 5]}]},
            "narrative_events[0].text_span: found a list, expected an object",
        ),
        (
            {"narrative_events": [{"text_span": {"start": "0", "end": 5}}]},
            "narrative_events[0].text_span.start: found text '0', expected a whole number",
        ),
        (
            {"narrative_events": [{"text_span": {"start": 0.5, "end": 5}}]},
            "narrative_events[0].text_span.start: found number 0.5, expected a whole number",
        ),
        (
            {"narrative_events": [{"text_span": {"start": True, "end": 5}}]},
            "narrative_events[0].text_span.start: found true, expected a whole number",
        ),
        (
            {"narrative_events": [{"relationships": ["A loves B"]}]},
            "narrative_events[0].relationships[0]: found text 'A loves B', expected an object",
        ),
        (
            {"narrative_events": [{"relationships": [{"agent": ["A"]}]}]},
            "narrative_events[0].relationships[0].agent: found a list, expected text",
        ),
        (
            {"narrative_events": [{"action_layer": {"type": ["a"]}}]},
            "narrative_events[0].action_layer.type: found a list, expected text",
        ),
    ],
)
def test_a_wrong_form_is_named_and_counts_as_absent(data: dict[str, Any], fault: str) -> None:
    assert faults(data) == [fault]


@pytest.mark.parametrize("blank", [None, {}, [], "", " "])
def test_a_blank_entry_of_a_list_is_left_out(blank: Any) -> None:
    story = read_story({"narrative_events": [blank, {"id": 1, "relationships": [blank, {"agent": "A"}]}]})
    assert [len(each.relationships) for each in story.events] == [1]
    assert story.faults == ()


def test_faults_of_an_event_are_in_the_order_of_the_form() -> None:
    event = {"relationships": 1, "action_layer": {"status": 1}, "text_span": 1, "time_order": [1], "id": [1]}
    keys = [fault.partition(":")[0].partition(".")[2] for fault in read_story({"narrative_events": [event]}).faults]
    assert keys == ["id", "text_span", "action_layer.status", "time_order", "relationships"]


def test_a_fault_costs_nothing_beside_it() -> None:
    story = read_story({"characters": [3, {"name": "Ann"}], "narrative_events": "?"})
    assert [each.name for each in story.characters] == ["Ann"]
    assert len(story.faults) == 2
