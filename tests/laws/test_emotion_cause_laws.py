"""Laws of scoring emotion-cause pairs, for generated conversations."""

from collections.abc import Sequence
from itertools import permutations
from random import Random
from string import punctuation
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval import Case, Observation, Totals
from pytest_llmeval.tasks.emotion_cause._evaluator import EmotionCause
from pytest_llmeval.tasks.emotion_cause._pairs import (
    EMOTIONS,
    Pair,
    SpanPair,
    Subtask,
    UtterancePair,
    clean_span,
    format_pair,
    locate_span,
    parse_pair,
)
from pytest_llmeval.tasks.emotion_cause._scores import SCORED, span_counts

EVALUATORS = {1: EmotionCause(subtask=1), 2: EmotionCause(subtask=2, two_step=True)}
KINDS = ("strict", "proportional", "fuzzy")
PERFECT = 1 - 1e-7

utterances = st.integers(1, 3)
emotions = st.sampled_from(EMOTIONS)
spans = st.tuples(st.integers(0, 6), st.integers(1, 6)).map(lambda each: (each[0], each[0] + each[1]))
span_pairs = st.builds(
    lambda utterance, cause, span, emotion: SpanPair(utterance, cause, span[0], span[1], emotion),
    utterances,
    utterances,
    spans,
    emotions,
)
utterance_pairs = st.builds(UtterancePair, utterances, utterances, emotions)
pair_lists = {1: st.lists(span_pairs, max_size=10), 2: st.lists(utterance_pairs, max_size=10)}
subtasks: st.SearchStrategy[Subtask] = st.sampled_from([1, 2])


def raw(pairs: Sequence[Pair]) -> list[list[str]]:
    return [format_pair(pair) for pair in pairs]


def measured(subtask: int, gold: Sequence[Pair], predicted: Sequence[Pair]) -> Observation:
    return EVALUATORS[subtask].measure(Case(id="c", expected=raw(gold), prediction=raw(predicted)))


def scores(subtask: int, *observations: Observation) -> dict[str, float | None]:
    """Score a whole set, as suites do: also what a single conversation has no value for."""
    columns = EVALUATORS[subtask].summarize(Totals.add_up(observations).sums())
    return {name: float(column[0]) if column[0] == column[0] else None for name, column in columns.items()}


@st.composite
def conversations(draw: st.DrawFn) -> tuple[int, list[tuple[list[Pair], list[Pair]]]]:
    subtask = draw(subtasks)
    lists: st.SearchStrategy[Any] = pair_lists[subtask]
    return subtask, draw(st.lists(st.tuples(lists, lists), min_size=1, max_size=5))


@given(conversations(), st.randoms(use_true_random=False))
def test_any_order_and_split_of_conversations_gives_the_same_scores(
    given_: tuple[int, list[tuple[list[Pair], list[Pair]]]], random: Random
) -> None:
    subtask, sides = given_
    observations = [measured(subtask, *each) for each in sides]
    whole = Totals.add_up(observations)
    random.shuffle(observations)
    cut = random.randint(0, len(observations))
    assert Totals.add_up(observations[:cut]) + Totals.add_up(observations[cut:]) == whole


@given(conversations(), st.randoms(use_true_random=False))
def test_order_of_predicted_pairs_is_irrelevant(
    given_: tuple[int, list[tuple[list[Pair], list[Pair]]]], random: Random
) -> None:
    subtask, sides = given_
    for gold, predicted in sides:
        shuffled = random.sample(predicted, len(predicted))
        assert measured(subtask, gold, shuffled).counts == measured(subtask, gold, predicted).counts


@given(conversations(), st.randoms(use_true_random=False))
def test_order_of_gold_pairs_is_irrelevant_but_for_the_ties_of_proportional_matching(
    given_: tuple[int, list[tuple[list[Pair], list[Pair]]]], random: Random
) -> None:
    subtask, sides = given_
    for gold, predicted in sides:
        found = scores(subtask, measured(subtask, random.sample(gold, len(gold)), predicted))
        expected = scores(subtask, measured(subtask, gold, predicted))
        differing = {name for name in found if found[name] != expected[name]}
        assert all("proportional" in name and "precision" not in name for name in differing)


@given(conversations())
def test_repeated_pairs_count_once_but_in_two_steps(given_: tuple[int, list[tuple[list[Pair], list[Pair]]]]) -> None:
    subtask, sides = given_
    evaluator = EmotionCause(subtask=1 if subtask == 1 else 2)
    for gold, predicted in sides:
        once = Case(id="c", expected=raw(gold), prediction=raw(predicted))
        twice = Case(id="c", expected=raw(gold) * 2, prediction=raw(predicted) * 2)
        assert evaluator.measure(twice).counts == evaluator.measure(once).counts


@given(conversations())
def test_all_scores_are_between_0_and_1(given_: tuple[int, list[tuple[list[Pair], list[Pair]]]]) -> None:
    subtask, sides = given_
    found = scores(subtask, *(measured(subtask, *each) for each in sides))
    shares = {name: value for name, value in found.items() if not name.startswith("support")}
    assert all(0.0 <= value < 1.0 for value in shares.values() if value is not None), shares


@given(conversations())
def test_gold_as_prediction_is_perfect_by_1e_8(given_: tuple[int, list[tuple[list[Pair], list[Pair]]]]) -> None:
    subtask, sides = given_
    gold = [[pair for pair in each if pair.emotion in SCORED] for each, _ in sides]
    found = scores(subtask, *(measured(subtask, each, each) for each in gold))
    held = {pair.emotion for each in gold for pair in each}
    for name, value in found.items():
        if "[" not in name and held and "4class" not in name:
            assert value is not None
            assert PERFECT < value < 1.0, name
        elif name.startswith(("strict_f1[", "pair_f1[")):
            assert (value is not None and PERFECT < value < 1.0) == (name.split("[")[1][:-1] in held), name


@given(conversations(), st.sampled_from(SCORED))
def test_a_wrong_pair_more_never_raises_precision_and_leaves_recall(
    given_: tuple[int, list[tuple[list[Pair], list[Pair]]]], emotion: str
) -> None:
    subtask, sides = given_
    wrong: Pair = SpanPair(9, 9, 0, 2, emotion) if subtask == 1 else UtterancePair(9, 9, emotion)
    first, *others = sides
    rest = [measured(subtask, *each) for each in others]
    before = scores(subtask, measured(subtask, *first), *rest)
    after = scores(subtask, measured(subtask, first[0], [*first[1], wrong]), *rest)
    for name in before:
        left, right = before[name], after[name]
        if left is None or right is None or name == "keep_rate":
            continue
        if "recall" in name:
            assert right == left, name
        else:
            assert right <= left, name


@given(conversations(), st.data())
def test_a_right_pair_more_never_lowers_recall(
    given_: tuple[int, list[tuple[list[Pair], list[Pair]]]], data: st.DataObject
) -> None:
    subtask, sides = given_
    gold, predicted = sides[0]
    if gold:
        more = [*predicted, data.draw(st.sampled_from(gold))]
        before, after = (scores(subtask, measured(subtask, gold, each)) for each in (predicted, more))
        names = ("strict_recall", "fuzzy_recall") if subtask == 1 else ("pair_recall",)
        assert all((after[name] or 0.0) >= (before[name] or 0.0) for name in names)


@given(pair_lists[1], pair_lists[1])
def test_strict_hits_are_fuzzy_hits(gold: list[SpanPair], predicted: list[SpanPair]) -> None:
    counts = span_counts(gold, predicted)
    for emotion in SCORED:
        strict, fuzzy = (counts.get(f"{kind}[{emotion}]", 0) for kind in ("strict", "fuzzy"))
        assert strict <= fuzzy <= min(counts.get(f"{side}[{emotion}]", 0) for side in ("gold", "predicted"))


@given(st.lists(spans, max_size=5, unique=True), st.lists(spans, max_size=5, unique=True))
def test_no_one_to_one_matching_has_more_overlaps(
    gold: list[tuple[int, int]], predicted: list[tuple[int, int]]
) -> None:
    few, many = sorted((gold, predicted), key=len)
    best = max(
        sum(max(a[0], b[0]) < min(a[1], b[1]) for a, b in zip(few, order, strict=True))
        for order in permutations(many, len(few))
    )
    sides = ([SpanPair(1, 1, *each, "joy") for each in side] for side in (gold, predicted))
    assert span_counts(*sides).get("fuzzy[joy]", 0) == best


@given(st.one_of(span_pairs.map(lambda pair: (1, pair)), utterance_pairs.map(lambda pair: (2, pair))))
def test_both_spellings_of_a_pair_are_read_as_that_pair(given_: tuple[Subtask, Pair]) -> None:
    subtask, pair = given_
    left, right = format_pair(pair)
    assert parse_pair([left, right], subtask) == pair
    utterance, emotion = left.split("_")
    assert parse_pair([f"U{utterance}_{emotion.capitalize()}", f"U{right}"], subtask) == pair


@given(st.text(st.sampled_from("ab .,!'\u3000é"), max_size=14))
def test_a_clean_span_is_its_own_cleaned_form_and_ends_in_neither_punctuation_nor_space(text: str) -> None:
    cleaned = clean_span(text)
    assert clean_span(cleaned) == cleaned
    assert cleaned in text
    assert cleaned == "" or not any(each in " \u3000.,!'" for each in (cleaned[0], cleaned[-1]))


@given(
    st.lists(st.sampled_from(["a", "b", ",", "c."]), max_size=8), st.lists(st.sampled_from(["a", "b", ","]), max_size=4)
)
def test_a_span_is_located_where_its_tokens_first_stand(utterance: list[str], span: list[str]) -> None:
    start, end = locate_span(" ".join(span), " ".join(utterance))
    tokens = clean_span(" ".join(span)).split()
    places = [place for place in range(len(utterance)) if tokens and utterance[place : place + len(tokens)] == tokens]
    assert (start, end) == ((places[0], places[0] + len(tokens)) if places else (0, 0))


def official_position(span: str, utterance: str) -> tuple[int, int]:
    """Return the position by the rule of the official script, told again: words stand between white space."""
    span = span.strip()
    while span and (span[0] in punctuation or span[-1] in punctuation):
        span = span.removeprefix(span[0]) if span[0] in punctuation else span.removesuffix(span[-1])
        span = span.strip()
    words, all_words = span.split(), utterance.split()
    for start in range(len(all_words)):
        if words and all_words[start : start + len(words)] == words:
            return start, start + len(words)
    return 0, 0


MIXED = st.lists(
    st.sampled_from(["a", "ok,", "!", "。", "，", "天气", "雨", "ひと", "ฝน", "用iPhone", "15"]), min_size=2, max_size=7
)


@given(MIXED, st.data())
def test_white_space_splits_texts_of_all_scripts_as_the_official_script_does(
    words: list[str], data: st.DataObject
) -> None:
    utterance = data.draw(st.sampled_from([" ", "\u3000", "  "])).join(words)
    start = data.draw(st.integers(0, len(words) - 1))
    span = " ".join(words[start : data.draw(st.integers(start + 1, len(words)))])
    for each in (span, utterance, f"“{span}”", f" .{span} !", "".join(words)):
        assert locate_span(each, utterance) == official_position(each, utterance)


@pytest.mark.parametrize("kind", KINDS)
def test_scores_of_a_family_are_all_perfect_or_none(kind: str) -> None:
    pair = SpanPair(1, 1, 0, 3, "anger")
    found = scores(1, measured(1, [pair], [pair]))
    names = [name for name in found if f"{kind}_" in name and "[" not in name]
    assert len(names) == 9
    assert all(PERFECT < (found[name] or 0.0) < 1.0 for name in names)
