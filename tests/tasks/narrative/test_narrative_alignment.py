import re
from typing import Any

import pytest

from pytest_llmeval.tasks.narrative._alignment import Alignment, Matching
from pytest_llmeval.tasks.narrative._document import Resolver, name_key, nearest, read_story, split_names


def aligned(gold: dict[str, Any], predicted: dict[str, Any], **options: Any) -> Alignment:
    return Alignment(read_story(gold), read_story(predicted), matching=Matching(**options))


def people(*characters: Any) -> dict[str, Any]:
    """A story of names, or of (name, alias) or (name, alias, archetype)."""
    fields = ("name", "alias", "archetype")
    rows = [(each,) if isinstance(each, str) else each for each in characters]
    return {"characters": [dict(zip(fields, row, strict=False)) for row in rows]}


def pairs(gold: dict[str, Any], predicted: dict[str, Any], **options: Any) -> set[tuple[str, str]]:
    return {(right.name, answer.name) for right, answer in aligned(gold, predicted, **options).characters}


def events(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"narrative_events": list(fields)}


def partners(gold: dict[str, Any], predicted: dict[str, Any], **options: Any) -> dict[str, str | None]:
    found = aligned(gold, predicted, **options).events
    return {event.label: partner.label if partner else None for event, partner in found}


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("Ann", "ANN"),
        (" Ann ", "Ann"),
        ("Ann  Lee", "Ann\u3000Lee"),
        ("ａｎｎ", "ann"),
        ("Straße", "STRASSE"),
        ("ﾊﾅ", "ハナ"),
    ],
)
def test_names_that_look_alike_have_one_key(left: str, right: str) -> None:
    assert name_key(left) == name_key(right)


@pytest.mark.parametrize(("left", "right"), [("Ann", "Anne"), ("万喜良", "万喜梁"), ("Ann-Lee", "Ann Lee")])
def test_different_names_have_different_keys(left: str, right: str) -> None:
    assert name_key(left) != name_key(right)


def test_names_are_split_at_separators_of_both_widths() -> None:
    assert split_names(" a ;b； ;c d;") == ["a", "b", "c d"]
    assert split_names("老翁、卢教，孟兴,姜婆/工头／民夫") == ["老翁", "卢教", "孟兴", "姜婆", "工头", "民夫"]


def test_aliases_and_sentiments_have_these_separators() -> None:
    fields = {"agent": "A", "target": "B", "sentiment": "positive,negative"}
    story = read_story(
        {"characters": [{"name": "A", "alias": "牛郎、老大"}], "narrative_events": [{"relationships": [fields]}]}
    )
    assert story.characters[0].aliases == ("牛郎", "老大")
    assert story.events[0].relationships[0].sentiments == {"positive", "negative"}


def test_the_nearest_name_is_the_first_of_the_most_like() -> None:
    assert nearest("anna", ["bob", "ann", "hanna"], 0.8) == "hanna"
    assert nearest("ann", ["anm", "anx"], 0.6) == "anm"
    assert nearest("ann", ["anm"], 0.9) is None
    assert nearest("ann", ["ann"], 1.0) == "ann"


def test_the_first_owner_of_a_name_keeps_it() -> None:
    resolve = Resolver()
    resolve.add("a", "ann")
    resolve.add("a", "bob")
    assert [resolve("a"), resolve("b")] == ["ann", "b"]


def test_equal_main_names_go_before_shared_aliases() -> None:
    assert pairs(people(("Ann", "A"), ("Bea", "Ann")), people("Ann")) == {("Ann", "Ann")}
    assert pairs(people(("Abe", "Ann"), ("Ann", "A")), people("Ann")) == {("Ann", "Ann")}


def test_characters_are_paired_by_any_shared_name() -> None:
    assert pairs(people(("Ann", "A; Queen")), people(("Q", "queen"))) == {("Ann", "Q")}
    assert pairs(people("Ann"), people(("Q", ["ann"]))) == {("Ann", "Q")}
    assert pairs(people("Ann"), people("Anna")) == set()


def test_as_many_characters_as_possible_are_paired() -> None:
    gold = people(("Ann", "x;y"), ("Bea", "x"), ("Cid", "y;z"))
    predicted = people("x", "y", "z")
    assert pairs(gold, predicted) == {("Ann", "y"), ("Bea", "x"), ("Cid", "z")}


def test_among_pairings_one_with_equal_archetypes_is_taken() -> None:
    gold = people(("Ann", "x", "Hero"), ("Bea", "x", "Ruler"))
    assert pairs(gold, people(("x", "", "Ruler"))) == {("Bea", "x")}
    assert pairs(gold, people(("x", "", "Hero"))) == {("Ann", "x")}
    # An archetype that gold leaves open cannot be missed.
    assert pairs(people(("Ann", "x", "Hero"), ("Bea", "x")), people(("x", "", "Lover"))) == {("Bea", "x")}


def test_the_order_of_equally_good_characters_does_not_matter() -> None:
    gold, predicted = [("Ann", "x", "Hero"), ("Bea", "x", "Ruler")], [("Red", "x", "Lover")]
    assert pairs(people(*gold), people(*predicted)) == pairs(people(*gold[::-1]), people(*predicted))


def test_like_names_are_equal_only_if_asked_for_and_after_the_equal_ones() -> None:
    gold, predicted = people("Meng Jiang", "Wan"), people("Meng Jiangnü", "Wan")
    assert pairs(gold, predicted) == {("Wan", "Wan")}
    assert pairs(gold, predicted, fuzzy=0.9) == {("Wan", "Wan"), ("Meng Jiang", "Meng Jiangnü")}
    assert pairs(gold, predicted, fuzzy=1) == {("Wan", "Wan")}


def test_events_are_aligned_by_id_then_by_time_order() -> None:
    gold = events({"id": "a", "time_order": 1}, {"id": "b", "time_order": 2}, {"id": "c", "time_order": 3})
    predicted = events({"id": "x", "time_order": 1}, {"id": "a", "time_order": 2}, {"id": "y", "time_order": 9})
    assert partners(gold, predicted) == {"a": "a", "b": None, "c": None}
    predicted = events({"id": "x", "time_order": 3}, {"id": "a", "time_order": 2})
    assert partners(gold, predicted) == {"a": "a", "b": None, "c": "x"}
    assert partners(gold, predicted, align=("time_order",)) == {"a": None, "b": "a", "c": "x"}
    assert partners(gold, predicted, align=("id",)) == {"a": "a", "b": None, "c": None}


@pytest.mark.parametrize("empty", [None, "", " ", []])
def test_an_empty_id_or_time_order_aligns_nothing(empty: Any) -> None:
    gold, predicted = events({"id": "a", "time_order": 1}), events({"id": "b", "time_order": 1}, {"id": empty})
    gold["narrative_events"].append({"id": empty, "time_order": 7})
    predicted["narrative_events"].append({"id": "c", "time_order": empty})
    found = aligned(gold, predicted)
    assert [answer.label if answer else None for _, answer in found.events] == ["b", "narrative_events[1]"]
    assert found.notes == ["1 event is aligned by position: id and time_order are not on both sides"]


def test_repeated_ids_are_aligned_in_order() -> None:
    found = aligned(
        events({"id": "a", "time_order": 1}, {"id": "a", "time_order": 2}),
        events({"id": "a", "time_order": 3}, {"id": "a", "time_order": 4}, {"id": "a", "time_order": 5}),
    )
    assert [(right.time_order, answer.time_order) for right, answer in found.events if answer] == [
        (("number", 1), ("number", 3)),
        (("number", 2), ("number", 4)),
    ]
    assert [each.time_order for each in found.extra_events] == [("number", 5)]


def span(name: str, start: int, end: int) -> dict[str, Any]:
    return {"id": name, "text_span": {"start": start, "end": end}}


def test_events_left_over_are_aligned_by_best_overlap_if_asked_for() -> None:
    gold = events(span("a", 0, 10), span("b", 10, 20), span("c", 20, 30))
    predicted = events(span("x", 12, 19), span("y", 8, 12), span("c", 0, 9), span("z", 50, 60))
    assert partners(gold, predicted) == {"a": None, "b": None, "c": "c"}
    assert partners(gold, predicted, align=("id", "span")) == {"a": "y", "b": "x", "c": "c"}
    assert partners(gold, predicted, align=("span",)) == {"a": "c", "b": "x", "c": None}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fuzzy": 0.0}, "fuzzy: found 0.0, expected a number above 0 and at most 1, or null"),
        ({"fuzzy": 1.5}, "fuzzy: found 1.5"),
        ({"fuzzy": float("nan")}, "fuzzy: found nan"),
        ({"align": ("spam",)}, "align: unknown field spam, did you mean span?"),
        ({"align": ()}, "align: found [], expected one or more different fields"),
        ({"align": ("id", "id")}, "align: found ['id', 'id'], expected one or more different fields"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Matching(**options)
