"""Values in the types of Python's libraries score as their plain twins do, at every entrance."""

import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import make_dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

import numpy as np
import pandas as pd
import pytest
from examples import GENERATORS, answered
from pydantic import create_model

from pytest_llmeval import Case, LlmevalError, PredictionError, get_checks, get_evaluator, score, score_stream
from pytest_llmeval.core import form_of
from pytest_llmeval.data import rows_of
from pytest_llmeval.run import json_like

ROUNDS: Final = 8


def _enum(value: str) -> Enum:
    return Enum("Chosen", {"CHOSEN": value}).CHOSEN  # type: ignore[attr-defined]


_SCALARS: Final[Mapping[type, tuple[Callable[[Any], Any], ...]]] = {
    str: (np.str_, _enum, lambda value: pd.Series([value]).iloc[0]),
    bool: (np.bool_,),
    int: (np.int64, Decimal, np.array, lambda value: pd.Series([value]).iloc[0]),
    float: (np.float64, lambda value: Decimal(str(value)), np.array),
    type(None): (lambda _: pd.NA,),
}


def _array(values: list[Any]) -> Any:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


_LISTS: Final = (tuple, _array, lambda values: pd.Series(values, dtype=object))


def _model(values: dict[str, Any]) -> Any:
    return create_model("Model", **dict.fromkeys(values, (Any, ...)))(**values)


def _dataclass(values: dict[str, Any]) -> Any:
    return make_dataclass("Made", list(values))(**values)


def disguised(value: Any, rng: random.Random) -> Any:
    """Return a value in other types than those of JSON."""
    if isinstance(value, dict):
        inside = {name: disguised(each, rng) for name, each in value.items()}
        is_named = all(name.isidentifier() and not name.startswith("_") for name in inside)
        return rng.choice((MappingProxyType, _dataclass, _model) if is_named else (MappingProxyType,))(inside)
    if isinstance(value, list):
        return rng.choice(_LISTS)([disguised(each, rng) for each in value])
    return rng.choice(_SCALARS[type(value)])(value)


PAIRS: Final = [
    (np.int64(1), 1),
    (np.float32(0.5), 0.5),
    (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
    (np.datetime64("2026-03-01"), "2026-03-01"),
    (pd.Timestamp("2026-03-01T10:00:00Z"), "2026-03-01T10:00:00+00:00"),
    (pd.Index(["a", "b"]), ["a", "b"]),
    (datetime(2026, 3, 1, tzinfo=UTC), "2026-03-01T00:00:00+00:00"),
    (date(2026, 3, 1), "2026-03-01"),
    (timedelta(seconds=90), "PT90S"),
    (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    (Decimal("2.50"), 2.5),
    (Decimal(3), 3),
    ({np.int64(2): "a", True: "b", None: "c"}, {"2": "a", "true": "b", "null": "c"}),
    ({"at": pd.NaT}, {"at": None}),
    (range(3), [0, 1, 2]),
]


@pytest.mark.parametrize(("value", "twin"), PAIRS, ids=lambda value: type(value).__name__)
def test_a_value_is_its_plain_twin(value: Any, twin: Any) -> None:
    assert form_of(value, strict=True) == twin
    assert repr(json_like({"answer": value})) == repr({"answer": twin})
    assert repr(list(rows_of([{"input": [value]}]))) == repr([{"input": [twin]}])


UNKNOWN: Final = [{1, 2}, b"x", memoryview(b"x"), object(), len, float("nan"), float("inf"), (each for each in "a")]


@pytest.mark.parametrize("value", UNKNOWN, ids=lambda value: type(value).__name__)
def test_what_json_cannot_say_is_wrong_text_and_no_data_of_a_file(value: Any) -> None:
    text = get_evaluator("text", metrics=["exact_match"])
    cases = [Case("good", expected="a", prediction="a"), Case("odd", expected="a", prediction={"answer": [value]})]
    result = score(text, cases, confidence=None)
    assert result.metrics["exact_match"].value == 0.5
    streamed = score_stream(text, cases, confidence=None).metrics["exact_match"]
    assert (streamed.value, streamed.errored) == (0.5, 0)
    if callable(value) or isinstance(value, Iterator):
        with pytest.raises(PredictionError, match="expected a value"):
            json_like(value)
    with pytest.raises(ValueError, match="expected"):
        text.evaluate(value, "a")
    if value == value:  # noqa: PLR0124 (a NaN is what a data frame has for an absent value)
        with pytest.raises(LlmevalError, match="row 0"):
            list(rows_of([{"input": value}]))


@pytest.mark.parametrize("name", GENERATORS)
def test_every_evaluator_scores_disguised_values_as_plain_ones(name: str) -> None:
    generator = GENERATORS[name]
    rng = random.Random(f"{name}, disguised")
    evaluator = generator.build()
    plain = [
        Case(str(number), generator.input(rng), generator.gold(rng), generator.answer(rng)) for number in range(ROUNDS)
    ]
    others = [
        Case(each.id, disguised(each.input, rng), disguised(each.expected, rng), disguised(each.prediction, rng))
        for each in plain
    ]
    judge = answered if evaluator.asks else None
    scores = [score(evaluator, cases, confidence=None, judge=judge) for cases in (plain, others)]
    assert [repr(case) for case in scores[0].cases] == [repr(case) for case in scores[1].cases]
    assert [json_like(each.prediction) for each in others] == [each.prediction for each in plain]
    if not evaluator.asks:
        streams = [score_stream(evaluator, cases, confidence=None).metrics for cases in (plain, others)]
        assert repr(streams[0]) == repr(streams[1])
        for one, two in zip(plain, others, strict=True):
            pairs = [(each.prediction, each.expected, each.input) for each in (one, two)]
            assert repr(evaluator.evaluate(*pairs[0])) == repr(evaluator.evaluate(*pairs[1]))


def _reads_answers(name: str) -> bool:
    reads = GENERATORS[name].build().reads
    return reads.part == "answer" or bool(reads.own_keys)


USAGE: Final = {"input_tokens": 3, "cost_usd": 0.01}


NEIGHBOURS: Final[dict[str, Any]] = {
    "usage": USAGE,
    "messages": [],
    "tool_calls": [],
    "trace": {"spans": []},
    "cost_usd": 0.1,
    "latency_s": 2.5,
    "model": "small",
    "documents": [{"id": 7, "text": "Orrin Bay"}],
    "metadata": {"run": 3},
    "evidence_sources": [],
    "order": 9,
}


@pytest.mark.parametrize("name", [*filter(_reads_answers, GENERATORS)])
def test_what_stands_next_to_an_answer_changes_no_score(name: str) -> None:
    generator = GENERATORS[name]
    rng = random.Random(f"{name}, alone")
    evaluator = generator.build()
    alone = [
        Case(str(number), generator.input(rng), generator.gold(rng), generator.answer(rng)) for number in range(ROUNDS)
    ]
    written = [replace(each, prediction=json.dumps(each.prediction)) for each in alone]
    judge = answered if evaluator.asks else None
    for cases in (alone, written):
        expected = score(evaluator, cases, confidence=None, judge=judge)
        for more in (*({neighbour: value} for neighbour, value in NEIGHBOURS.items()), NEIGHBOURS):
            wrapped = [replace(each, prediction={"answer": each.prediction, **more}) for each in cases]
            result = score(evaluator, wrapped, confidence=None, judge=judge)
            assert [case.metrics for case in result.cases] == [case.metrics for case in expected.cases], more


RECORDS: Final[list[dict[str, Any]]] = [
    {"total": 3, "to": {"city": "Orrin"}},
    {"answer": "30 days", "order": 7},
    {"answer": "30 days"},
]
PARTS_NEXT_TO_IT: Final = {"usage": USAGE, "messages": [], "tool_calls": [], "contexts": []}


def _rates(record: Any, prediction: Any) -> tuple[float | None, float | None]:
    evaluator = get_evaluator("fields")
    metrics = score(evaluator, [Case("a", expected=record, prediction=prediction)], confidence=None).metrics
    return metrics["field_f1"].value, metrics["extra_fields"].value


@pytest.mark.parametrize("more", [{"usage": USAGE}, PARTS_NEXT_TO_IT])
@pytest.mark.parametrize("record", RECORDS)
def test_parts_next_to_a_record_are_no_fields(record: dict[str, Any], more: dict[str, Any]) -> None:
    assert _rates(record, {**record, **more}) == (1, 0)


@pytest.mark.parametrize("record", RECORDS)
def test_nothing_next_to_a_wrapped_record_is_a_field(record: dict[str, Any]) -> None:
    wrong = {**record, "order": 8}
    for reply in (record, json.dumps(record), f"```json\n{json.dumps(record)}\n```", wrong, json.dumps(wrong)):
        for more in (*({name: value} for name, value in NEIGHBOURS.items()), NEIGHBOURS, PARTS_NEXT_TO_IT):
            assert _rates(record, {"answer": reply, **more}) == _rates(record, reply), (reply, more)


@pytest.mark.parametrize(("name", "metric"), [("text", "exact_match"), ("classification", "accuracy")])
def test_the_answer_of_a_record_is_read_whatever_stands_next_to_the_record(name: str, metric: str) -> None:
    record = {"answer": "30 days", "order": 7}
    evaluator = get_evaluator(name)
    for more in ({}, {"usage": USAGE}, NEIGHBOURS):
        case = Case("a", expected=record, prediction={"answer": record, **more})
        for other in (case, replace(case, expected={"answer": record, "tool_calls": []})):
            assert score(evaluator, [other], confidence=None).metrics[metric].value == 1, (other.expected, more)
        assert get_checks({"contains": "30 days"}).evaluate(case.prediction, None)["check_rate"] == 1, more
