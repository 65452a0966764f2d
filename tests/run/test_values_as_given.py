"""A law of every door: the object that the user's code gives is the object that the user's code gets."""

import asyncio
import dataclasses
import datetime as dt
import enum
import json
import math
import os
import pathlib
import re
from collections import OrderedDict, deque
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, SecretStr, computed_field, field_validator
from running import WITHOUT_UNUSED, run_python

import pytest_llmeval as ev
from pytest_llmeval.core import WrittenObject, form_of

UTC = dt.UTC


class Color(enum.Enum):
    RED = "red"


class Small(enum.IntEnum):
    ONE = 1


class Pay(BaseModel):
    amount: Decimal


class Base(BaseModel):
    key: str = "base"


class Sub(Base):
    more: int = 7


class Holder(BaseModel):
    things: list[Base]


class Camel(BaseModel):
    user_name: str = Field(alias="userName")


class Hidden(BaseModel):
    shown: int
    secret: str = Field("default", exclude=True)


class Twice(BaseModel):
    number: int

    @field_validator("number")
    @classmethod
    def add(cls, value: int) -> int:
        return value + 1


class Doubled(BaseModel):
    number: int

    @computed_field  # type: ignore[prop-decorator]  # (as pydantic documents it)
    @property
    def double(self) -> int:
        return 2 * self.number


class Kept(BaseModel):
    word: SecretStr


class Data(BaseModel):
    raw: bytes


class Tags(BaseModel):
    names: set[str]


@dataclasses.dataclass
class Entry:
    value: Any
    note: str = dataclasses.field(default="", compare=False)


@dataclasses.dataclass
class Later:
    first: int
    second: int = dataclasses.field(init=False, default=0)


class Point(NamedTuple):
    x: int
    y: int


class Plain:
    def __init__(self, a: int) -> None:
        self.a = a

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plain) and other.a == self.a

    def __hash__(self) -> int:
        return hash(self.a)


class Bare:
    """An own class that is equal to itself only."""


DECIMALS = st.decimals(allow_nan=False, allow_infinity=False, places=4)
MOMENTS = st.datetimes(timezones=st.just(UTC) | st.just(dt.timezone(dt.timedelta(hours=2))))
NUMBERS = st.integers(-1000, 1000)
WORDS = st.text("abcäß", max_size=4)

KINDS: dict[str, st.SearchStrategy[Any]] = {
    "model with a decimal": DECIMALS.map(lambda value: Pay(amount=value)),
    "money": st.just(Pay(amount=Decimal("12345678901234567.89"))),
    "dataclass": (DECIMALS | MOMENTS | st.timedeltas() | st.uuids() | st.sets(WORDS)).map(Entry),
    "dataclass with a field outside init": NUMBERS.map(Later),
    "nested subclass": NUMBERS.map(lambda value: Holder(things=[Sub(more=value), Base()])),
    "alias": WORDS.map(lambda value: Camel(userName=value)),
    "excluded field": WORDS.map(lambda value: Hidden(shown=1, secret=value)),
    "validator": NUMBERS.map(lambda value: Twice(number=value)),
    "computed field": NUMBERS.map(lambda value: Doubled(number=value)),
    "secret": WORDS.map(lambda value: Kept(word=SecretStr(value))),
    "model with bytes": st.binary().map(lambda value: Data(raw=value)),
    "model with a set": st.sets(WORDS).map(lambda value: Tags(names=value)),
    "list of models": st.lists(DECIMALS.map(lambda value: Pay(amount=value)), min_size=1),
    "dict of models": st.dictionaries(WORDS, NUMBERS.map(lambda value: Base(key=str(value))), min_size=1),
    "enum": st.just(Color.RED),
    "int enum": st.just(Small.ONE),
    "decimal": DECIMALS,
    "fraction": st.fractions(),
    "datetime": MOMENTS,
    "date": st.dates(),
    "time": st.times(),
    "timedelta": st.timedeltas(),
    "uuid": st.uuids(),
    "path": st.just(pathlib.PurePosixPath("a/b")),
    "tuple": st.tuples(NUMBERS, WORDS),
    "named tuple": st.builds(Point, NUMBERS, NUMBERS),
    "set": st.sets(NUMBERS),
    "frozenset": st.frozensets(WORDS),
    "bytes": st.binary(),
    "not a number": st.just(math.nan),
    "infinity": st.just(math.inf),
    "complex number": st.just(1 + 2j),
    "large number": st.just(2**70),
    "keys that are numbers": st.dictionaries(NUMBERS, WORDS),
    "keys of two types": st.just({1: "a", "1": "b"}),
    "ordered dict": st.just(OrderedDict(b=1, a=2)),
    "deque": st.lists(NUMBERS).map(deque),
    "array": st.lists(NUMBERS).map(np.array),
    "scalar of numpy": NUMBERS.map(np.int64),
    "own class": NUMBERS.map(Plain),
    "own class without equality": st.builds(Bare),
    "JSON data": st.dictionaries(WORDS, st.lists(NUMBERS | WORDS), min_size=1),
    "text": WORDS.filter(bool),
}

RUNS = settings(max_examples=settings().max_examples // 5, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> st.SearchStrategy[Any]:
    return KINDS[request.param]


class Seen:
    """What the user's code got."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.got: list[Any] = []

    def target(self, value: Any) -> Any:
        self.got.append(value)
        return self.value

    def look(self, case: Any) -> bool:
        self.got += [case.input, case.expected, case.prediction]
        return True

    def suite(self) -> Any:
        evaluators = [ev.evaluator(self.look, name="own")]
        checks = [ev.check(self.look, name="looked")]
        return ev.suite("values", cases=[self.case], evaluators=evaluators, checks=checks)

    @property
    def case(self) -> ev.Case:
        return ev.Case("a", self.value, self.value)

    def all_identical(self, count: int) -> bool:
        return len(self.got) == count and all(each is self.value for each in self.got)


@given(data=st.data())
@RUNS
def test_run_and_arun_hand_out_the_object(kind: st.SearchStrategy[Any], data: st.DataObject) -> None:
    seen = Seen(data.draw(kind))
    suite = seen.suite()
    assert suite.run(seen.target, progress=False).cases[0].reason is None
    asyncio.run(suite.arun(seen.target, progress=False))
    assert seen.all_identical(14)


@given(data=st.data())
@RUNS
def test_score_hands_out_the_object(kind: st.SearchStrategy[Any], data: st.DataObject) -> None:
    seen = Seen(data.draw(kind))
    case = dataclasses.replace(seen.case, prediction=seen.value)
    ev.score([ev.evaluator(seen.look, name="own").evaluator, ev.get_checks(ev.check(seen.look, name="looked"))], [case])
    assert seen.all_identical(6)


@given(data=st.data())
@RUNS
def test_what_equals_the_expectation_scores_1(kind: st.SearchStrategy[Any], data: st.DataObject) -> None:
    value = data.draw(kind)
    record = {"value": value}
    same = ev.evaluator(lambda case: ev_equal(case.expected, case.prediction), name="same")
    entries = [Entry(value), record, {"value": 1}]
    cases = [
        ev.Case(str(n), str(n), each, checks=(ev.json_equals(each if n in (0, 1) else {"value": 2}),))
        for n, each in enumerate(entries)
    ]
    suite = ev.suite("equal", cases=cases, evaluators=[ev.fields(), same])
    answers = {"0": Entry(value), "1": {"value": value}}
    result = suite.run(lambda number: answers.get(number, {"value": 1}), progress=False)
    for case in result.cases[:2]:
        assert (case.metrics["fields_exact"], case.metrics["same"]) == (1.0, 1.0), case
        assert case.metrics["check_rate"] == 1.0, case
    assert result.cases[2].metrics["check_rate"] == 0.0
    whole = ev.suite("whole", cases=[ev.Case("a", "q", value)], evaluators=[same], checks=[ev.json_equals(value)])
    metrics = whole.run(lambda _: value, progress=False).cases[0].metrics
    assert (metrics["same"], metrics["check_rate"]) == (1.0, 1.0)


def ev_equal(first: Any, second: Any) -> bool:
    return first is second or bool(np.all(first == second))


@given(word=WORDS)
@RUNS
def test_a_text_of_any_class_is_a_text(word: str) -> None:
    class Name(str):
        __slots__ = ()

    name = Name(word or "x")
    suite = ev.suite("text", cases=[ev.Case("a", name, name)], evaluators=[ev.text(metrics=["exact_match"])])
    assert suite.run(lambda value: value, progress=False).metrics["exact_match"].value == 1.0


def test_what_differs_does_not_score_1() -> None:
    pairs = [
        (Kept(word=SecretStr("x")), Kept(word=SecretStr("other"))),
        (Pay(amount=Decimal("9007199254740993.01")), Pay(amount=Decimal("9007199254740993.02"))),
        (Entry(Plain(1)), Entry(Plain(2))),
        (Entry(Bare()), Entry(Bare())),
        (Entry(b"a"), Entry(b"b")),
    ]
    for expected, prediction in pairs:
        suite = ev.suite("s", cases=[ev.Case("a", "q", expected)], evaluators=[ev.fields()])
        result = suite.run(lambda _, answer=prediction: answer, progress=False)  # type: ignore[misc]
        assert result.metrics["fields_exact"].value == 0.0, expected
    assert "hush" not in str(result_of_secret().cases[0].details)


def result_of_secret() -> Any:
    suite = ev.suite("s", cases=[ev.Case("a", "q", Kept(word=SecretStr("hush")))], evaluators=[ev.fields()])
    return suite.run(lambda _: Kept(word=SecretStr("y")), progress=False)


@pytest.mark.parametrize("at", ["suite", "case"])
def test_a_check_compares_objects_and_not_their_texts(at: str) -> None:
    class Odd(Plain):
        def __repr__(self) -> str:
            return "5"

    expected, answers = Odd(1), [Odd(1), Odd(2), "5", 5, [Odd(1)]]
    check = ev.json_equals(expected)
    cases = [ev.Case(str(n), str(n), checks=(check,) if at == "case" else ()) for n in range(len(answers))]
    suite = ev.suite("objects", cases=cases, checks=[check] if at == "suite" else None)
    result = suite.run(lambda number: answers[int(number)], progress=False)
    assert [case.metrics["check_rate"] for case in result.cases] == [1, 0, 0, 0, 0]
    found, *_ = (case for case in result.cases if case.outcome == "failed")
    assert found.reason == "checks: found $: 5, expected json_equals: '5'"


@dataclasses.dataclass
class Route:
    queue: str
    fee: Decimal = Decimal("1.50")
    at: dt.datetime = dt.datetime(2026, 1, 1, tzinfo=UTC)


class Named(BaseModel):
    model_config = {"populate_by_name": True}
    user_name: str = Field(alias="userName")


WHOLE = {"queue": "a", "fee": "1.50", "at": "2026-01-01T00:00:00Z"}
ROUTE, NAMED = Route("a"), Named(userName="u")
WRITTEN: dict[str, tuple[Any, Any]] = {
    "rows of a type": (ev.cases([{"id": "a", "input": "q", "queue": "a"}], expected=Route), ROUTE),
    "objects": ([ev.Case("a", "q", Route("a"))], ROUTE),
    "data": ([ev.Case("a", "q", WHOLE, checks=(ev.json_equals(WHOLE),))], ROUTE),
    "data without defaults": ([ev.Case("a", "q", {"queue": "a"})], ROUTE),
    "data in other keys": ([ev.Case("a", "q", {"userName": "u"})], NAMED),
    "data around an object": ([ev.Case("a", "q", {"routes": [WHOLE]})], {"routes": [ROUTE]}),
}


@pytest.mark.parametrize(("cases", "answer"), WRITTEN.values(), ids=WRITTEN)
def test_a_recorded_object_is_scored_as_the_object(
    cases: Any, answer: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    got = []
    own = ev.evaluator(lambda case: got.append(case.prediction) is None, name="own")
    suite = ev.suite("written", cases=cases, evaluators=[ev.fields(), own])
    ran = suite.run(lambda _: answer, record="r.jsonl", progress=False)
    written = pathlib.Path("r.jsonl").read_bytes()
    again = suite.run(replay="r.jsonl", record="r.jsonl", progress=False)
    assert ran.cases[0].metrics == again.cases[0].metrics
    assert (ran.cases[0].outcome, ran.cases[0].metrics["fields_exact"]) == ("passed", 1.0)
    assert pathlib.Path("r.jsonl").read_bytes() == written
    if answer is ROUTE and not isinstance(got[1], dict):
        assert (got[0], str(got[1].fee)) == (got[1], "1.50")


@pytest.mark.parametrize("kind", [None, "chat"], ids=["no spans", "spans"])
def test_a_traced_object_is_itself(kind: str | None) -> None:
    trace = pytest.importorskip("opentelemetry.trace")
    got, answer = [], Pay(amount=Decimal("1.50"))

    def target(_: str) -> Pay:
        if kind is not None:
            with trace.get_tracer("app").start_as_current_span(kind, attributes={"gen_ai.operation.name": kind}):
                pass
        return answer

    own = ev.evaluator(lambda case: got.append(case.prediction) is None, name="own")
    whole = {"python": target, "traces": True}
    suite = ev.suite("traced", cases=[ev.Case("a", "q", answer)], evaluators=[own, ev.fields()], target=whole)
    assert suite.run(progress=False).metrics["fields_exact"].value == 1.0
    assert got[0] is answer


def test_a_record_that_tells_its_usage_is_itself() -> None:
    class Told(BaseModel):
        text: str
        usage: dict[str, int]

    answer, got = Told(text="x", usage={"input_tokens": 3}), []
    own = ev.evaluator(lambda case: got.append(case.prediction) is None, name="own")
    suite = ev.suite("told", cases=[ev.Case("a", "q", answer)], evaluators=[own, ev.fields()])
    assert suite.run(lambda _: answer, progress=False).metrics["fields_exact"].value == 1.0
    assert got[0] is answer


def test_an_answer_that_is_data_is_no_object_of_the_expected_type() -> None:
    answer = {"amount": 1.5}
    got = []
    own = ev.evaluator(lambda case: got.append(case.prediction) is None, name="own")
    suite = ev.suite("data", cases=[ev.Case("a", "q", Pay(amount=Decimal("1.50")))], evaluators=[own])
    suite.run(lambda _: answer, progress=False)
    assert got[0] is answer


def test_inputs_that_look_alike_are_not_taken_for_each_other(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    class Table(Plain):
        def __repr__(self) -> str:
            return "a table\nof many rows"

    def ran(value: Any) -> Any:
        suite = ev.suite("alike", cases=[ev.Case("a", value, 1)], checks=[ev.json_equals(1)])
        return suite.run(lambda table: table.a, record="r.jsonl", replay="r.jsonl", progress=False)

    with pytest.warns(UserWarning, match="NOT recorded, since they hold what JSON cannot say"):
        assert (ran(Table(1)).pass_rate.value, ran(Table(2)).pass_rate.value) == (1.0, 0.0)
    assert str(form_of(Table(1))) == "a table of many rows"


def test_decimals_of_a_changed_recording_are_left_out() -> None:
    form = {"a": [1.5, "x"]}
    places: list[Any] = [["a", 0], ["a", 7], ["a", 1, "b"], ["b"], [0], ["a", "c"]]
    written = WrittenObject(decimals=[(place, "1.50") for place in places] + [(["a", 1], "no number")])
    assert str(written.restored(form)) == "{'a': [Decimal('1.50'), 'x']}"
    assert form == {"a": [1.5, "x"]}


@pytest.mark.parametrize("note", [7, {"typed": "x"}, {"decimals": [["a"]]}, {"other": 1}])
def test_a_recording_with_another_note_is_refused(
    note: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    row = {"case": "a", "input": "x", "prediction": 1, "suite": "s", "variant": "", "object": note}
    pathlib.Path("r.jsonl").write_text(json.dumps(row), encoding="utf-8")
    suite = ev.suite("note", cases=[ev.Case("a", "q", 1)], checks=[ev.json_equals(1)])
    with pytest.raises(ev.LlmevalError, match=r"r\.jsonl:1:1 .*expected an object with suite"):
        suite.run(replay="r.jsonl", progress=False)


def test_a_row_keeps_its_types_beside_others() -> None:
    values: list[Any] = [Pay(amount=Decimal("2.5")), Data(raw=b"\xff"), Twice(number=1), {"a": 1}, Bare(), "text"]
    got = []
    suite = ev.suite(
        "rows", cases=[ev.Case(str(n), value, "x") for n, value in enumerate(values)], evaluators=[ev.text()]
    )
    suite.run(lambda value: got.append(value) or "x", progress=False)
    assert sorted(map(id, got)) == sorted(map(id, values))


def test_declared_types_build_from_mappings_and_leave_instances_alone() -> None:
    row = Twice(number=1)
    got: list[Any] = []
    cases = ev.cases([{"input": row, "expected": "x"}, {"input": {"number": 1}, "expected": "x"}], input=Twice)
    suite = ev.suite("declared", cases=cases, evaluators=[ev.text()])
    suite.run(lambda value: got.append(value) or "x", progress=False)
    assert [each is row for each in got].count(True) == 1
    assert [each.number for each in got] == [2, 2]


def test_keys_that_are_numbers_have_a_type() -> None:
    value = {1: "a"}
    got: list[Any] = []
    cases = ev.cases([{"input": value, "expected": "x"}], input=dict[int, str])
    ev.suite("keys", cases=cases, evaluators=[ev.text()]).run(lambda given: got.append(given) or "x", progress=False)
    assert got[0] is value


MODULE = """
import dataclasses, datetime as dt, enum, fractions, os, pathlib, uuid
from collections import OrderedDict, deque
from decimal import Decimal
from typing import NamedTuple

import numpy as np
import pytest
from pydantic import BaseModel, Field, SecretStr, field_validator

import pytest_llmeval as ev
from pytest_llmeval.core import are_equal

SHARED = "PYTEST_XDIST_WORKER" in os.environ
NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)


class Pay(BaseModel):
    amount: Decimal

class Base(BaseModel):
    key: str = "base"

class Sub(Base):
    more: int = 7

class Holder(BaseModel):
    things: list[Base]

class Data(BaseModel):
    raw: bytes

class Tags(BaseModel):
    names: set[str]

class Camel(BaseModel):
    user_name: str = Field(alias="userName")

class Hidden(BaseModel):
    shown: int
    secret: str = Field("default", exclude=True)

class Kept(BaseModel):
    word: SecretStr

class Twice(BaseModel):
    number: int

    @field_validator("number")
    @classmethod
    def add(cls, value):
        return value + 1

@dataclasses.dataclass
class Entry:
    value: object
    later: int = dataclasses.field(init=False, default=0)

class Color(enum.Enum):
    RED = "red"

class Small(enum.IntEnum):
    ONE = 1

class Point(NamedTuple):
    x: int

class Plain:
    def __init__(self, a):
        self.a = a

    def __eq__(self, other):
        return isinstance(other, Plain) and other.a == self.a

    def __hash__(self):
        return hash(self.a)

VALUES = [Pay(amount=Decimal("12345678901234567.89")), Data(raw=b"x"), Plain(3), Holder(things=[Sub(more=2)]),
    Tags(names={"a", "b"}), Entry(Decimal("1.50")), Entry(NOON), Camel(userName="x"), Twice(number=1), Kept(word="x"),
    Hidden(shown=1, secret="x"), [Pay(amount="2.5")], {"a": Sub()}, Color.RED, Small.ONE, Decimal("1.50"), Point(1),
    fractions.Fraction(1, 3), NOON, NOON.date(), NOON.time(), dt.timedelta(seconds=90), uuid.UUID(int=5), (1, 2),
    pathlib.PurePosixPath("a/b"), {1, 2}, frozenset("ab"), b"x", float("nan"), 1 + 2j, 2**70, {1: "a"},
    {1: "a", "1": "b"}, OrderedDict(b=1), deque([1]), np.arange(3), np.int64(3), {"a": [1]}]
try:
    import pandas as pd
    VALUES += [pd.DataFrame({"a": [1, 2]}), pd.Timestamp("2026-01-01")]
except ImportError:
    pass
ROWS = [ev.Case(f"c{n}", value, value) for n, value in enumerate(VALUES)]

def whole(case):
    same = case.prediction is case.input or SHARED and are_equal(case.prediction, case.input)
    return case.expected is case.input and same

suite = ev.suite("doors", cases=ROWS, evaluators=[whole], checks=[ev.check(whole, name="looked")], gates=["whole >= 1"],
    target=ev.named(lambda value: value, name="echo"))

tested = ev.suite("tested", cases=ROWS, evaluators=[whole], gates=["whole >= 1"])

@tested.test
def test_door(case):
    assert case.input is VALUES[int(case.id[1:])]
    assert case.expected is case.input
    case.score(case.input)

def test_fixture(evaluate):
    for value in VALUES:
        got = []
        def look(case):
            got.extend([case.input, case.expected, case.prediction])
            return True
        evaluate.checks(value, ev.check(look, name="look"), expected=value, input=value)
        assert all(each is value for each in got) and len(got) == 3
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_items_tests_and_fixtures_get_the_object(pytester: pytest.Pytester, workers: int) -> None:
    pytester.makepyfile(MODULE)
    line = ["-m", "pytest", "--llmeval", "-p", "no:cacheprovider", *WITHOUT_UNUSED, *([f"-n{workers}"] * bool(workers))]
    done = run_python(line, os.environ, pytester.path, workers=workers)
    assert re.search(r"(77|81) passed", done.out)  # two for each of the values, with frames or without, and one for all
    assert done.code == 0
