"""Checks that were pickled: another process prepares them anew."""

import pickle
from typing import Any

import pytest
from examples import ARGUMENTS

from pytest_llmeval import Case
from pytest_llmeval.evaluators import Check, CheckKind, CheckReader, Checks
from pytest_llmeval.evaluators.checks._check import View
from pytest_llmeval.evaluators.checks._reading import Unlocated

CASE = Case("c", prediction='{"a": 2}')


def shouts(answer: str, mark: str) -> bool:
    return answer.endswith(mark)


def read(entry: Any) -> Check:
    kind = CheckKind.from_function(shouts)
    host = Unlocated()
    checks = CheckReader(Checks.kinds({kind.name: kind}), host).read([entry], ())
    assert host.faults == []
    return checks[0]


@pytest.mark.parametrize(("name", "argument"), [*ARGUMENTS.items(), ("shouts", "!")])
def test_a_check_that_was_pickled_finds_and_asks_the_same(name: str, argument: Any) -> None:
    made = read({"any_of": [name if argument is None else {f"not_{name}": argument}]})
    sent: Check = pickle.loads(pickle.dumps(made))
    assert list(sent.node.questions(View(CASE))) == list(made.node.questions(View(CASE)))
    if not made.judged:
        assert sent.node.find(View(CASE)) == made.node.find(View(CASE))


def test_what_is_remembered_of_cases_stays_where_it_is() -> None:
    checks = Checks(({"contains": "b"},))
    sent = pickle.dumps(checks)
    checks.measure(Case("own", prediction="b", checks=(read({"contains": "x" * 1000}),)))
    assert len(pickle.dumps(checks)) == len(sent)
