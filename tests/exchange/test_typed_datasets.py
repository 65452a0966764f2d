"""Datasets of pydantic-evals whose outputs are objects: imported, they give the verdicts of the tool."""

from pathlib import Path

import pytest

import pytest_llmeval as ev
from pytest_llmeval.cli import main

APP = """
import datetime as dt
import enum
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from pydantic import BaseModel, Field


class Kind(enum.Enum):
    A = "a"


class Ticket(BaseModel):
    text: str


class Route(BaseModel):
    queue: str
    fee: Decimal = Decimal(0)


class Camel(BaseModel):
    model_config = {"populate_by_name": True}
    user_name: str = Field(alias="userName")
    fee: Decimal


@dataclass
class Entry:
    fee: Decimal
    route: Route | None = None


class Everything(BaseModel):
    at: dt.datetime
    took: dt.timedelta
    names: set[str]
    raw: bytes
    kind: Kind
    pair: tuple[int, Decimal]
    routes: list[Route]
    uid: UUID


MOMENT = dt.datetime(2026, 3, 5, tzinfo=dt.timezone.utc)


def everything(**more):
    return Everything(**{"at": MOMENT, "took": dt.timedelta(days=3, seconds=90),
        "names": {"b", "a"}, "raw": b"x", "kind": Kind.A, "pair": (1, Decimal("2.50")),
        "routes": [Route(queue="q", fee=Decimal("1.50"))], "uid": UUID(int=5), **more})


ROUTE = Route(queue="billing", fee=Decimal("1.50"))
OUTPUTS = {
    "same route": (Route, ROUTE, Route(queue="billing", fee=Decimal("1.5"))),
    "whole fee": (Route, Route(queue="tech"), Route(queue="tech", fee=Decimal(0))),
    "other fee": (Route, ROUTE, Route(queue="billing", fee=Decimal("1.51"))),
    "other queue": (Route, ROUTE, Route(queue="tech", fee=Decimal("1.5"))),
    "alias": (Camel, Camel(userName="x", fee=Decimal("1.50")), Camel(userName="x", fee=Decimal("1.5"))),
    "other alias": (Camel, Camel(userName="x", fee=Decimal("1.50")), Camel(userName="y", fee=Decimal("1.5"))),
    "dataclass": (Entry, Entry(Decimal("1.50"), ROUTE), Entry(Decimal("1.5"), ROUTE)),
    "other dataclass": (Entry, Entry(Decimal("1.50"), ROUTE), Entry(Decimal("1.5"))),
    "everything": (Everything, everything(), everything()),
    "other time": (Everything, everything(), everything(took=dt.timedelta(days=3))),
    "other set": (Everything, everything(), everything(names={"a"})),
    "other bytes": (Everything, everything(), everything(raw=b"y")),
    "list": (list[Route], [ROUTE], [ROUTE.model_copy()]),
    "other list": (list[Route], [ROUTE], [ROUTE, ROUTE]),
    "dict": (dict[str, Route], {"a": ROUTE}, {"a": ROUTE.model_copy()}),
    "decimal": (Decimal, Decimal("1.50"), Decimal("1.5")),
    "other decimal": (Decimal, Decimal("1.50"), Decimal("1.6")),
    "moment": (dt.datetime, MOMENT, MOMENT),
    "set": (set[str], {"b", "a"}, {"a", "b"}),
    "text": (str, "x", "x"),
}


async def answer(ticket: Ticket):
    return OUTPUTS[ticket.text][2]
"""


def test_objects_get_the_verdicts_of_pydantic_evals(pytester: pytest.Pytester) -> None:
    datasets = pytest.importorskip("pydantic_evals")
    pytester.makepyfile(typed_app=APP)
    pytester.syspathinsert()
    import typed_app  # type: ignore[import-not-found]

    theirs, by_kind = {}, {}
    for name, (kind, expected, _) in typed_app.OUTPUTS.items():
        case = datasets.Case(name=name, inputs=typed_app.Ticket(text=name), expected_output=expected)
        by_kind.setdefault(str(kind), (kind, []))[1].append(case)
    for number, (kind, cases) in enumerate(by_kind.values()):
        typed = datasets.Dataset[typed_app.Ticket, kind, dict]
        path = Path(f"d{number}.yaml")
        typed(name="d", cases=cases, evaluators=[datasets.evaluators.EqualsExpected()]).to_file(path, schema_path=None)
        for case in typed.from_file(path).cases:
            theirs[case.name] = case.expected_output == typed_app.OUTPUTS[case.name][2]
    assert len(set(theirs.values())) == 2
    sources = sorted(map(str, Path().glob("d*.yaml")))
    assert main(["import", "pydantic-evals", *sources, "--to", "evals"]) == 0
    for path in Path("evals").glob("*.eval.yaml"):
        text = path.read_text(encoding="utf-8")
        path.write_text(f"target:\n  python: typed_app:answer\n{text}", encoding="utf-8")
    pytester.makeini("[pytest]\npythonpath = .\nllmeval = true\n")
    run = pytester.runpytest_inprocess("evals", "-rA", "-p", "no:cacheprovider")
    ours = {
        line.partition("::")[2].partition(" - ")[0]: line.startswith("PASSED") for line in run.outlines if "::" in line
    }
    assert ours == theirs


def test_a_check_of_json_says_which_side_is_a_number() -> None:
    found = ev.score(ev.get_checks(ev.json_equals({"fee": "1.50"})), [ev.Case("a", prediction={"fee": 1.5})])
    (wrong,) = found.cases[0].details["checks"]["wrong"]
    assert wrong.startswith("found $.fee: number 1.5, not text '1.50'")
