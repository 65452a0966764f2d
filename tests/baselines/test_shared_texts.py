"""Fingerprints of cases that share large objects: the same digits, and the objects are written once."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.baselines import _comparable as comparable
from pytest_llmeval.baselines import fingerprint
from pytest_llmeval.baselines._comparable import SharedTexts

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.just("long " * 300)
KEYS = st.text() | st.integers(0, 20)
DATA = st.recursive(LEAVES, lambda each: st.lists(each) | st.dictionaries(KEYS, each) | st.tuples(each), max_leaves=12)


@given(st.lists(DATA, max_size=4))
def test_shared_texts_change_no_fingerprint(values: list[Any]) -> None:
    shared = SharedTexts()
    for each in [*values, values, *values]:
        assert fingerprint(each, shared) == fingerprint(each)


def test_a_conversation_is_written_once_for_all_its_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    conversation = {"session_1": [{"speaker": "Ada", "text": "It rained all day. " * 60} for _ in range(20)]}
    inputs = [{"question": f"Question {number}?", "conversation": conversation} for number in range(200)]
    written = []
    monkeypatch.setattr(comparable, "plain", lambda value: written.append(value) or value)
    shared = SharedTexts()
    assert len({fingerprint(each, shared) for each in inputs}) == 200
    assert len(written) == 20  # each turn, once
