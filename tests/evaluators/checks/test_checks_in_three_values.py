"""Checks in three values: met, not met, and not applicable, which survives negation and composition."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from examples import met, unmet
from hypothesis import given
from hypothesis import strategies as st

TRUE, FALSE, UNREADABLE, ERROR = {"contains": "a"}, {"contains": "z"}, {"json_equals": 1}, {"quotes": True}
ANSWER = "ab"
"""An answer that meets the first leaf, does not meet the second, and cannot be read by the third and the fourth."""

TEXT_CHECKS = st.sampled_from(
    [TRUE, FALSE, {"regex": "."}, {"max_words": 9}, {"equals": "x"}, {"one_of": ["a", "b"]}, {"not_pii": "email"}]
)
NO_TEXTS = st.sampled_from([None, {"text": "my password"}, ["a"], {}, []])


def negated(entry: dict[str, Any]) -> dict[str, Any]:
    """Return the opposite of a check."""
    ((key, argument),) = entry.items()
    return {key.removeprefix("not_") if key.startswith("not_") else f"not_{key}": argument}


def composed(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return compositions of some checks, negated ones among them."""
    lists = st.lists(parts, min_size=1, max_size=3)
    least = lists.flatmap(lambda of: st.fixed_dictionaries({"n": st.integers(1, len(of)), "of": st.just(of)}))
    plain = st.one_of(
        lists.map(lambda of: {"any_of": of}),
        lists.map(lambda of: {"all_of": of}),
        least.map(lambda of: {"at_least": of}),
    )
    return plain | plain.map(negated)


def trees(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return checks of any depth."""
    return st.recursive(leaves | leaves.map(negated), composed, max_leaves=6)


LEAVES = st.sampled_from([TRUE, FALSE, UNREADABLE])
TREES = trees(LEAVES)


def errors_replaced(entry: Any) -> Iterator[Any]:
    """Yield a check with each of its leaves that cannot be made replaced by every value that it could have had."""
    ((key, argument),) = entry.items()
    name = key.removeprefix("not_")
    if name == "quotes":
        for leaf in (TRUE, FALSE, UNREADABLE):
            yield negated(leaf) if key.startswith("not_") else leaf
    elif name in ("any_of", "all_of"):
        for parts in product(*map(errors_replaced, argument)):
            yield {key: list(parts)}
    elif name == "at_least":
        for parts in product(*map(errors_replaced, argument["of"])):
            yield {key: {"n": argument["n"], "of": list(parts)}}
    else:
        yield entry


@pytest.mark.parametrize("answer", [{"text": "my password"}, None, ["password"]])
@pytest.mark.parametrize("least", [1, 2])
@pytest.mark.parametrize("leaf", [{"contains": "password"}, {"not_contains": "password"}])
def test_an_answer_that_is_no_text_meets_no_composition_of_text_checks(leaf: Any, least: int, answer: Any) -> None:
    parts = [leaf, {"max_words": 3}]
    keys = {"any_of": parts, "all_of": parts, "at_least": {"n": least, "of": parts}}
    assert [
        (no, key) for key in keys for no in ("", "not_") if met({f"{no}{key}": keys[key]}, answer) is not False
    ] == []


@pytest.mark.parametrize("key", ["any_of", "not_any_of"])
def test_a_turn_that_is_no_text_meets_no_composition(key: str) -> None:
    turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    assert met({key: [{"contains": "a", "turn": "each", "on": "messages"}]}, {"messages": turns}) is False


def test_a_composition_says_why_it_is_not_applicable() -> None:
    entry = {"not_any_of": [{"contains": "password"}, {"equals": "x"}]}
    assert unmet(entry, None) == (
        "found 0 of 2 met and 2 not applicable (found null, which is no text, expected contains: 'password'; "
        "found null, which is no text, expected equals: 'x'), "
        'expected not_any_of: [{"contains": "password"}, {"equals": "x"}]'
    )


def test_a_negated_composition_names_no_part_that_is_as_it_should_be() -> None:
    entry = {"not_any_of": [{"contains": "a"}, {"contains": "z"}]}
    assert unmet(entry, "ab") == 'found 1 of 2 met, expected not_any_of: [{"contains": "a"}, {"contains": "z"}]'


@given(trees(TEXT_CHECKS), NO_TEXTS)
def test_an_unreadable_answer_never_passes(entry: Any, answer: Any) -> None:
    assert met(entry, answer) is False


@given(TREES)
def test_a_check_and_its_opposite_are_never_both_met(entry: Any) -> None:
    assert not (met(entry, ANSWER) and met(negated(entry), ANSWER))


@given(TREES)
def test_negation_twice_is_identity(entry: Any) -> None:
    for key in ("not_any_of", "not_all_of"):
        assert met({key: [{key: [entry]}]}, ANSWER) is met(entry, ANSWER)
        assert met({key: [entry]}, ANSWER) is met(negated(entry), ANSWER)
        assert met({key: [negated(entry)]}, ANSWER) is met(entry, ANSWER)


@given(st.lists(TREES, min_size=1, max_size=3))
def test_de_morgan_holds(parts: list[Any]) -> None:
    opposites = list(map(negated, parts))
    assert met({"not_any_of": parts}, ANSWER) is met({"all_of": opposites}, ANSWER)
    assert met({"not_all_of": parts}, ANSWER) is met({"any_of": opposites}, ANSWER)
    for least in range(1, len(parts) + 1):
        counted = {"n": len(parts) - least + 1, "of": opposites}
        assert met({"not_at_least": {"n": least, "of": parts}}, ANSWER) is met({"at_least": counted}, ANSWER)


@given(trees(st.sampled_from([TRUE, FALSE, UNREADABLE, ERROR])))
def test_a_check_that_cannot_be_made_matters_if_it_could_change_the_result(entry: Any) -> None:
    outcomes = {met(each, ANSWER) for each in errors_replaced(entry)}
    assert met(entry, ANSWER) is (outcomes.pop() if len(outcomes) == 1 else None)
