"""Case records as JSON: the round trip is identity, and what is something else is refused by its field."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import observations

from pytest_llmeval import Observation
from pytest_llmeval.core import (
    AnswerShown,
    CaseRecord,
    JudgeCall,
    JudgingShown,
    TargetUsage,
    decode,
    encode,
    form_of,
    parse_digits,
)
from pytest_llmeval.core._codec import plain

RICH = CaseRecord(
    "a",
    {"kind": "x"},
    "failed",
    {"f1": Observation({"tp": 1, "fn": 0.5}, {"missed": ["x"]}, {"recall": "no gold"}, "no JSON", {"judge": "silent"})},
    {"other": "ValueError: no"},
    "f1: 0.5 < 0.9",
    1.25,
    [JudgeCall("k", True, 7, 2, 0.001, 0.5, "openai:a"), JudgeCall("l", False)],
    [0.25, 1],
    [TargetUsage(5, 6.5, 0.1), TargetUsage()],
    {"times": 2, "status": "flaky", "spread": {"f1": {"sd": 0.1}}},
    {"f1": ["missed: x"]},
    [AnswerShown({"text": "y"}, 2)],
    [JudgingShown("judge", "binary", {"answer": "y"}, "no", 0.0, 0.001, "openai:a")],
    [{"suite": "s.eval.yaml", "case": "a", "prediction": {"text": "y"}}],
)


def test_every_part_of_a_record_comes_back_as_it_was() -> None:
    again = decode(encode(RICH), CaseRecord)
    assert again == RICH
    assert repr(again) == repr(RICH), "2 and 2.0 are equal, but reports write them differently"


@given(observations, st.none() | st.text(), st.floats(0, 1e6))
def test_a_record_comes_back_whatever_is_in_it(observed: Observation, reason: str | None, duration: float) -> None:
    record = CaseRecord("c", {}, "failed", {"text": observed}, {"other": "ValueError: no"}, reason, duration)
    assert decode(encode(record), CaseRecord) == record
    assert b"\n" not in encode(record)


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("007", 7), ("0" * 5000 + "5", 5), ("٣", 3), ("9" * 18, 10**18 - 1)]
    + [(text, None) for text in ("", "²", "-1", "+1", "1_0", " 1", "1.0", "9" * 19, "9" * 5000)],
)
def test_digits_are_a_number_unless_they_are_too_many_for_python(text: str, number: int | None) -> None:
    assert parse_digits(text) == number


def test_half_of_a_surrogate_pair_comes_back() -> None:
    record = CaseRecord("c", outcome="failed", reason="\ud800", answers=[AnswerShown("\udfff", 1)])
    assert encode(record).isascii()
    assert decode(encode(record), CaseRecord) == record


def test_empty_parts_are_left_out() -> None:
    assert json.loads(encode(CaseRecord("c", outcome="failed"))) == {"id": "c", "outcome": "failed"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"outcome": "passed"}', "missing required field `id`"),
        ('{"id": 7}', "Expected `str`, got `int` - at `$.id`"),
        ('{"id": "c", "outcome": "fine"}', "Invalid enum value 'fine' - at `$.outcome`"),
        ('{"id": "c", "obs": {"f1": {"counts": {"tp": "many"}}}}', "got `str` - at `$.obs[...].counts[...]`"),
        ('{"id": "\\ud800", "obs": 7}', "Expected `object`, got `int` - at `$.obs`"),
        ('{"id": "c"', "delimiter"),
        ("", "Expecting value"),
    ],
)
def test_what_is_no_record_is_refused_by_its_field(text: str, found: str) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        decode(text, CaseRecord)
    assert found in str(error.value)


class Shout(str):
    __slots__ = ()


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ({"a": (1, 2.0), 3: "x", None: True}, {"a": [1, 2.0], "3": "x", "null": True}),
        ([np.float64(0.5), Shout("x"), 10**30], [0.5, "x", 10**30]),
        ({"x": "\ud800"}, {"x": "\ud800"}),
    ],
)
def test_plain_data_is_what_a_file_would_hold(value: Any, read: Any) -> None:
    assert plain(value) == read
    assert repr(plain(value)) == repr(read)


def test_an_observation_is_copied_as_plain_data() -> None:
    counts, details = {"n": np.float64(2), "k": np.int64(3), "whole": 1}, {"seen": ("a", "b")}
    observation = Observation(counts, details)  # type: ignore[arg-type]  # (numbers of numpy)
    kept = observation.plain()
    counts["n"] = details["seen"] = ()  # type: ignore[assignment]
    assert kept == Observation({"n": 2.0, "k": 3.0, "whole": 1}, {"seen": ["a", "b"]})
    assert [type(each) for each in kept.counts.values()] == [float, float, int]


@dataclass(frozen=True)
class Point:
    x: int


def test_strict_forms_replace_objects_next_to_plain_values_and_copy_nothing_else() -> None:
    assert form_of({"plain": [1], "typed": Point(2)}, strict=True) == {"plain": [1], "typed": {"x": 2}}
    data = {"plain": [1], "text": "a"}
    assert form_of(data, strict=True) is data
