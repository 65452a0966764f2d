"""Laws of scoring story annotations, for generated stories."""

import copy
import json
import math
from collections.abc import Iterator
from itertools import combinations
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval import Case
from pytest_llmeval.tasks._matching import Edges, best_pairs
from pytest_llmeval.tasks.narrative._composite import Narrative

Story = dict[str, Any]

TEXT = "One. Two! Three? 四。五！ Six... Seven"
NAMES = ("Ann", "Bea", "Cid", "王", "李 四")
LEVEL1 = ("Romance", "Adversarial", "odd")
LEVEL2 = ("lover", "enemy", "rival")
SENTIMENTS = ("positive", "romantic", "hostile", "neutral", "odd")
ACTION = {
    "category": ("physical", "mental"),
    "type": ("attack", "flee"),
    "context": ("duel", "escape"),
    "status": ("success", "failure"),
    "function": ("trigger", "climax"),
}
ARCHETYPES = ("Hero", "Ruler")

BLANK = st.sampled_from((None, "", " "))
EVALUATOR = Narrative()
FUZZY = Narrative(fuzzy=0.7, align=("id", "time_order", "span"))

LOWER_IS_BETTER = {metric.name for metric in EVALUATOR.describe() if not metric.higher_is_better}
NO_QUALITY = {"exact_matches", "action_layer_partial_match", "taxonomy_validity"}
"""Metrics that do not say how good a prediction is compared with gold."""


def label(*values: str) -> st.SearchStrategy[str | None]:
    return st.sampled_from(values) | BLANK


@st.composite
def spans(draw: st.DrawFn) -> dict[str, int | None] | None:
    start, end = draw(st.tuples(st.integers(-3, 45), st.integers(-3, 45)))
    return draw(st.sampled_from(({"start": start, "end": end}, {"start": start, "end": None}, None)))


@st.composite
def relationships(draw: st.DrawFn) -> list[Story]:
    """Relationships of different pairs of characters, some of which lack an end."""
    ends = draw(st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=3, unique=True))
    return [
        {
            "agent": agent,
            "target": draw(st.sampled_from((target, target, target, ""))),
            "relationship_level1": draw(label(*LEVEL1)),
            "relationship_level2": draw(label(*LEVEL2)),
            "sentiment": ";".join(draw(st.lists(st.sampled_from(SENTIMENTS), max_size=2, unique=True))),
        }
        for agent, target in ends
    ]


@st.composite
def stories(draw: st.DrawFn) -> Story:
    """Stories whose characters have different names, and whose events different ids and time orders."""
    names = draw(st.lists(st.sampled_from(NAMES), unique=True))
    ids = draw(st.lists(st.integers(0, 5), max_size=4, unique=True))
    orders = draw(st.permutations(range(6)))
    return {
        "characters": [
            {"name": name, "alias": draw(st.sampled_from((f"{name}2", ""))), "archetype": draw(label(*ARCHETYPES))}
            for name in names
        ],
        "narrative_events": [
            {
                "id": f"e{each}",
                "time_order": order,
                "text_span": draw(spans()),
                "relationships": draw(relationships()),
                "action_layer": {field: draw(label(*values)) for field, values in ACTION.items()},
            }
            for each, order in zip(ids, orders, strict=False)
        ],
    }


def scores(predicted: Any, gold: Any, evaluator: Narrative = EVALUATOR) -> dict[str, float | None]:
    return evaluator.scores(evaluator.measure(Case(id="", input=TEXT, expected=gold, prediction=predicted)))


@given(stories())
def test_an_identical_prediction_is_perfect_wherever_anything_is_judged(gold: Story) -> None:
    for evaluator in (EVALUATOR, FUZZY):
        for name, value in scores(gold, gold, evaluator).items():
            if value is not None and name not in NO_QUALITY:
                assert value == (0 if name in LOWER_IS_BETTER or name.endswith("partial_match") else 1), name


@given(stories(), stories())
def test_every_score_is_in_its_range(predicted: Story, gold: Story) -> None:
    for evaluator in (EVALUATOR, FUZZY):
        found = scores(predicted, gold, evaluator)
        for metric in evaluator.describe():
            value = found[metric.name]
            if value is not None:
                assert metric.low is not None
                assert metric.low <= value <= (math.inf if metric.high is None else metric.high), metric.name


def shuffled(story: Story, random: Random) -> Story:
    copied = copy.deepcopy(story)
    for part in (copied["characters"], copied["narrative_events"]):
        random.shuffle(part)
    for event in copied["narrative_events"]:
        random.shuffle(event["relationships"])
    return copied


@given(stories(), stories(), st.randoms(use_true_random=False))
def test_the_order_of_events_characters_and_relationships_is_irrelevant(
    predicted: Story, gold: Story, random: Random
) -> None:
    for evaluator in (EVALUATOR, FUZZY):
        found = scores(shuffled(predicted, random), shuffled(gold, random), evaluator)
        for name, value in scores(predicted, gold, evaluator).items():
            again = found[name]
            assert (again is None) == (value is None), name
            assert value is None or again is None or math.isclose(value, again, abs_tol=1e-12), name


def wrong_places(predicted: Story, gold: Story) -> Iterator[tuple[Story, str]]:
    """Values of gold, as object and key, that the prediction got wrong and that no other value hangs on."""
    details = EVALUATOR.evaluate(predicted, gold, TEXT)["detailed_results"]
    events = {event["id"]: event for event in gold["narrative_events"]}
    cast = {each["name"]: each for each in gold["characters"]}
    for wrong in details["characters"]["wrong_archetypes"]:
        yield cast[wrong["character"]], "archetype"
    for name in details["characters"]["missing_characters"]:
        # An alias would make two names one in relationships as well.
        if not cast[name]["alias"]:
            yield cast[name], "name"
    for wrong in details["action_layer"]["wrong_fields"]:
        yield events[wrong["event"]]["action_layer"], wrong["field"]
    ends: dict[tuple[str, str, str], Story] = {
        (event["id"], each["agent"], each["target"]): each
        for event in events.values()
        for each in event["relationships"]
    }
    found = details["relationships"]
    for wrong in found["wrong_levels"]:
        yield ends[wrong["event"], wrong["agent"], wrong["target"]], wrong["field"]
    for missing in found["missing_relationships"]:
        yield ends[missing["event"], missing["agent"], missing["target"]], "agent"
        yield ends[missing["event"], missing["agent"], missing["target"]], "sentiment"


@given(stories(), stories(), st.data())
def test_blanking_a_gold_value_that_the_prediction_got_wrong_never_lowers_a_score(
    predicted: Story, gold: Story, data: st.DataObject
) -> None:
    blanked = copy.deepcopy(gold)
    places = list(wrong_places(predicted, blanked))
    if not places:
        return
    before = scores(predicted, gold)
    holder, key = data.draw(st.sampled_from(places))
    holder[key] = data.draw(BLANK)
    after = scores(predicted, blanked)
    for name, value in before.items():
        again = after[name]
        if value is None or again is None or name in NO_QUALITY:
            continue
        change = value - again if name in LOWER_IS_BETTER else again - value
        assert change >= -1e-12, (name, value, again)


def filled(predicted: Story, gold: Story) -> Story:
    """The prediction with more in it wherever gold is empty."""
    more = copy.deepcopy(predicted)
    if not gold["characters"]:
        more["characters"].append({"name": "Zoe", "alias": "Z", "archetype": "Hero"})
    for character in gold["characters"]:
        for other in more["characters"]:
            if other["name"] == character["name"] and not (character["archetype"] or "").strip():
                other["archetype"] = "Trickster"
    by_id = {event["id"]: event for event in more["narrative_events"]}
    for event in gold["narrative_events"]:
        other = by_id.get(event["id"])
        if other is None:
            continue
        empty = [field for field, value in event["action_layer"].items() if not (value or "").strip()]
        other["action_layer"] |= dict.fromkeys(empty, "guess")
        if event["text_span"] is None:
            other["text_span"] = {"start": 0, "end": 30}
        if not any(each["target"] for each in event["relationships"]):
            other["relationships"].append({"agent": "Ann", "target": "Zoe", "sentiment": "hostile"})
        for each in event["relationships"]:
            for mine in other["relationships"]:
                if (each["agent"], each["target"]) == (mine["agent"], mine["target"]) and not each["sentiment"]:
                    mine["sentiment"] = "fearful"
    more["narrative_events"].append(
        {"id": "extra", "relationships": [{"agent": "Ann", "target": "Bea"}], "action_layer": {"category": "guess"}}
    )
    return more


@given(stories(), stories())
def test_predicting_more_where_gold_is_empty_changes_no_score(predicted: Story, gold: Story) -> None:
    before, after = scores(predicted, gold), scores(filled(predicted, gold), gold)
    for name in ("taxonomy_validity", "event_precision", "event_f1", "extra_events"):  # these count what is predicted
        del before[name], after[name]
    assert before == after


@given(stories(), stories())
def test_comparing_names_loosely_never_finds_fewer_characters(predicted: Story, gold: Story) -> None:
    strict, loose = (scores(predicted, gold, each)["character_recall"] for each in (EVALUATOR, FUZZY))
    assert strict is None or (loose is not None and strict <= loose)


def value_of(pairs: list[tuple[int, int]], edges: Edges) -> tuple[int, ...]:
    return (len(pairs), *map(sum, zip(*(edges[pair] for pair in pairs), strict=True)))


def is_matching(pairs: tuple[tuple[int, int], ...]) -> bool:
    return all(len({pair[side] for pair in pairs}) == len(pairs) for side in (0, 1))


_EDGE = st.tuples(st.integers(0, 3), st.integers(0, 3))
_PREFERENCES = st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 3))


@given(st.dictionaries(_EDGE, _PREFERENCES, max_size=9))
def test_matching_is_as_good_as_the_best_of_all(edges: dict[tuple[int, int], tuple[int, int, int]]) -> None:
    found = best_pairs(edges)
    assert is_matching(tuple(found))
    every = (pairs for size in range(len(edges) + 1) for pairs in combinations(edges, size) if is_matching(pairs))
    assert value_of(found, edges) == max(value_of(list(pairs), edges) for pairs in every)


_PARTS = ("characters", "narrative_events", "source_info", "text_span", "relationships", "action_layer")
_FIELDS = ("text_content", "name", "alias", "archetype", "id", "time_order", "start", "end", "agent", "target", "type")
_KEYS = (*_PARTS, *_FIELDS, "relationship_level1", "sentiment", "category")
_SCALARS: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(("Ann", "a;b", "", " "))
    | st.text(max_size=3)
)


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=4)


_JSON = st.recursive(_SCALARS, _nested, max_leaves=12)


@st.composite
def damaged(draw: st.DrawFn) -> Any:
    """A story in which some values have been replaced by any JSON."""
    story = draw(stories())
    for _ in range(draw(st.integers(1, 3))):
        holder: Any = story
        while True:
            keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if isinstance(holder[key], (dict, list)) and draw(st.booleans()):
                holder = holder[key]
                continue
            holder[key] = draw(_JSON)
            break
    return story


@given(_JSON | damaged() | damaged().map(json.dumps), stories() | damaged())
def test_no_prediction_and_no_gap_of_gold_is_a_crash(predicted: Any, gold: Any) -> None:
    for evaluator in (EVALUATOR, FUZZY):
        observation = evaluator.measure(Case(id="", input=TEXT, expected=gold, prediction=predicted))
        assert observation.fault() is None
        undefined = {name for name, value in evaluator.scores(observation).items() if value is None}
        assert undefined == set(observation.undefined)
