"""Data that needs no validator gives what the validator gives."""

import json
from dataclasses import InitVar, dataclass, field
from functools import cache
from typing import Annotated, Any, ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, TypeAdapter, field_validator
from pydantic.dataclasses import dataclass as validated

from pytest_llmeval.baselines._history import _HistoryLine
from pytest_llmeval.baselines._scores import SuiteScores, TestScores
from pytest_llmeval.data.files._validation import NotPlainError, by_types, plain
from pytest_llmeval.data.formats._base import ColumnMap
from pytest_llmeval.data.formats._rows import JsonlSource
from pytest_llmeval.evaluators._classification import Classification
from pytest_llmeval.evaluators._text import TextEvaluator
from pytest_llmeval.gates import DropGate, LimitGate
from pytest_llmeval.gates._rules import gate_entry
from pytest_llmeval.judges import JudgeSpec
from pytest_llmeval.numbers import Repeats
from pytest_llmeval.suites._cases import CaseEntry
from pytest_llmeval.suites._keys import SuiteEntry
from pytest_llmeval.suites._systems import MatrixSpec
from pytest_llmeval.targets import TargetSpec


@dataclass(frozen=True)
class Inner:
    words: tuple[str, ...]
    rate: float | None = None
    way: Literal["long", "short"] | None = None


@dataclass(frozen=True, slots=True)
class Slotted:
    count: int


def test_an_object_with_slots_is_read_as_any_other() -> None:
    assert by_types(Slotted, {"count": 3}) == Slotted(3)
    with pytest.raises(NotPlainError):
        by_types(Slotted, {"count": 3, "other": 1})


@dataclass(frozen=True)
class Outer:
    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    inner: Inner
    mode: Literal["a", "b"] = "a"
    label: str | int | float | bool = ""
    either: str | list[str] | dict[str, Inner] | None = None
    least: Annotated[int, Field(ge=0)] = 0
    share: float = 0.0
    anything: Any = None
    counts: dict[str, int] = field(default_factory=dict)


@dataclass
class OwnInit:
    word: str

    def __init__(self, word: str) -> None:
        self.word = word.upper()


SCALARS = st.one_of(
    *(st.none(), st.booleans(), st.integers(-2, 3), st.integers(2**52, 2**70), st.floats(allow_nan=False)),
    *(st.sampled_from(["a", "b", "auto", "f1", "long", "1"]), st.text(st.characters(), max_size=3)),
)
VALUES = st.recursive(
    SCALARS,
    lambda inside: st.one_of(st.lists(inside, max_size=3), st.dictionaries(st.text(max_size=2), inside, max_size=2)),
    max_leaves=4,
)
INNER = st.fixed_dictionaries(
    {"words": st.lists(st.sampled_from(["x", "y"]), max_size=2)},
    optional={"rate": SCALARS, "way": st.sampled_from(["long", "b", None])},
)
KINDS: dict[Any, dict[str, st.SearchStrategy[Any]]] = {
    Outer: {"inner": INNER, "either": st.one_of(VALUES, st.dictionaries(st.text(max_size=2), INNER, max_size=2))},
    SuiteEntry: {"mode": st.sampled_from(["items", "bulk", "all"])},
    **{
        each: {}
        for each in (
            CaseEntry,
            gate_entry(LimitGate),
            Repeats,
            TargetSpec,
            JudgeSpec,
            MatrixSpec,
            ColumnMap,
            JsonlSource,
            SuiteScores,
            TestScores,
            _HistoryLine,
        )
    },
    **{each: {"metrics": st.lists(st.sampled_from(["f1", "recall"]))} for each in (TextEvaluator, Classification)},
}


VALIDATOR = cache(TypeAdapter)


def validated_as(kind: Any, data: Any) -> Any:
    return VALIDATOR(kind).validate_json(json.dumps(data), strict=True)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_what_is_read_without_the_validator_is_what_the_validator_reads(kind: type, data: st.DataObject) -> None:
    names = dict.fromkeys(kind.__dataclass_fields__, VALUES) | KINDS[kind]  # type: ignore[attr-defined]  # it is one
    entry = data.draw(st.fixed_dictionaries({}, optional=names))
    try:
        found = by_types(kind, entry)
    except NotPlainError:
        return
    assert repr(found) == repr(validated_as(kind, entry))


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (CaseEntry, {"id": 7, "input": {"q": ["x", 1.5, None, True]}, "expected": "y", "labels": {"a": 1, "b": True}}),
        (SuiteEntry, {"evaluators": [{"text": {"metrics": ["f1"]}}], "mode": "bulk", "confidence": 1, "cases": [{}]}),
        (gate_entry(DropGate), {"metric": "f1", "max_drop": 0.02, "rule": "significant_drop"}),
        (TextEvaluator, {"metrics": ["exact_match", "f1"]}),
        (JsonlSource, {"path": "x.jsonl", "fields": {"id": "key"}}),
        (Outer, {"inner": {"words": ["x"], "rate": 2, "way": "long"}, "either": {"k": {"words": []}}, "share": 1}),
        (tuple[str, ...], ["x", "ü"]),
        (str | list[str], ["x"]),
        (OwnInit, {"word": "x"}),
    ],
)
def test_what_most_files_hold_needs_no_validator(kind: Any, data: Any) -> None:
    assert repr(by_types(kind, data)) == repr(validated_as(kind, data))


@dataclass
class WithInitVar:
    word: InitVar[str]


@dataclass
class WithRule:
    word: str

    @field_validator("word")
    @classmethod
    def upper(cls, word: str) -> str:
        return word.upper()


@dataclass
class WithDefault:
    word: str = Field(default="a", max_length=2)


@dataclass
class Trimmed:
    __pydantic_config__: ClassVar[dict[str, Any]] = {"str_strip_whitespace": True}

    word: str


@dataclass
class Refusing:
    word: str

    def __post_init__(self) -> None:
        raise ValueError("found a word")


@validated
class Validated:
    word: Annotated[str, Field(max_length=2)]


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        *((kind, {"word": "longer"}) for kind in (WithInitVar, Trimmed, Refusing)),
        *((Inner, {}), (Inner, {"words": [], "extra": 1}), (Inner, ["x"])),
        *((bool, 1), (float, True), (float, float("nan")), (int, 1.0), (str, "\ud800"), (Any, ("x",))),
        *((Any, {1: "x"}), (int | str, True), (int | float | None, 2**60), (Literal["a"], "b"), (set[str], ["x"])),
    ],
)
def test_what_is_not_certain_is_left_to_the_validator(kind: Any, data: Any) -> None:
    with pytest.raises(NotPlainError):
        by_types(kind, data)


@pytest.mark.parametrize("kind", [WithRule, WithDefault, Validated])
def test_where_pydantic_is_loaded_it_reads_everything_since_classes_may_have_its_rules(kind: Any) -> None:
    with pytest.raises(NotPlainError):
        plain(kind, {"word": "x"})


def test_data_that_two_cases_share_in_a_file_is_a_copy_in_each() -> None:
    shared = {"question": ["x"]}
    assert by_types(CaseEntry, {"input": shared}).input is not shared
    assert by_types(CaseEntry, {"input": shared}).input["question"] is not shared["question"]
