"""Results on their way from an item to the controller."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from strategies import observations

from pytest_llmeval import Case, Observation
from pytest_llmeval.core.results import CaseRecord
from pytest_llmeval.run.execute import Execution
from pytest_llmeval.run.payload import decode, encode
from pytest_llmeval.suite.suite import SuiteKey
from pytest_llmeval.targets.python import input_digest

KEY = SuiteKey("/root/s.eval.yaml", "s.eval.yaml", "test_it", "gpt")


def sent(record: CaseRecord, **case: Any) -> Execution:
    return Execution(Case(record.id, **case), record)


@given(observations, st.none() | st.text(), st.floats(0, 1e6))
def test_a_record_arrives_as_it_was_sent(observed: Observation, reason: str | None, duration: float) -> None:
    record = CaseRecord("c", {}, "failed", {"text": observed}, {"other": "ValueError: no"}, reason, duration)
    payload = decode(encode(KEY, 7, [sent(record)], predictions=False))
    assert (payload.key, payload.total, payload.records, payload.predictions) == (KEY, 7, [record], [])


@given(st.text())
def test_the_payload_is_one_line_of_ascii_whatever_is_in_it(text: str) -> None:
    record = CaseRecord(text, reason=text, errors={text: text})
    payload = encode(SuiteKey(text, text, text, text), 1, [sent(record, prediction=text)], predictions=True)
    assert payload.isascii()
    assert payload.isprintable()
    assert decode(payload).records == [record]


def test_what_is_empty_is_not_sent() -> None:
    assert json.loads(encode(KEY, 1, [sent(CaseRecord("c"))], predictions=False))[2] == [
        {"id": "c", "outcome": "passed"}
    ]


def test_predictions_travel_only_where_they_are_recorded() -> None:
    execution = sent(CaseRecord("c"), input="q", prediction={"a": None})
    assert decode(encode(KEY, 1, [execution], predictions=False)).predictions == []
    assert decode(encode(KEY, 1, [execution], predictions=True)).predictions == [
        {"suite": "s.eval.yaml", "variant": "gpt", "case": "c", "input": input_digest("q"), "prediction": {"a": None}}
    ]


def test_a_case_without_prediction_records_none() -> None:
    errored = sent(CaseRecord("c", outcome="errored", errors={"": "target fell over"}))
    skipped = sent(CaseRecord("d", outcome="skipped", reason="no GPU"))
    assert decode(encode(KEY, 2, [errored, skipped], predictions=True)).predictions == []
