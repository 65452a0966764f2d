"""Targets, worlds, systems, users and judges of suites in Python: the objects themselves, not only their names."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

import pytest_llmeval as ev
from pytest_llmeval.core import LlmevalError, SuiteError
from pytest_llmeval.run._finishing import compared_metrics

CASES = [{"id": "a", "input": "France", "expected": "Paris"}, {"id": "b", "input": "Japan", "expected": "Tokyo"}]
CAPITALS = {"France": "Paris", "Japan": "Tokyo"}


@pytest.fixture(autouse=True)
def _no_stored_verdicts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def suite(**more: Any) -> Any:
    return ev.suite("capitals", **{"cases": CASES, "evaluators": [ev.text(metrics=["exact_match"])], **more})


def answer(question: str, known: dict[str, str] = CAPITALS) -> str:
    return known.get(question, "?")


class Agent:
    def __init__(self, known: dict[str, str]) -> None:
        self.known = known

    def __call__(self, question: str) -> str:
        return answer(question, self.known)

    async def ask(self, question: str) -> str:
        return answer(question, self.known)


def local() -> Callable[[str], str]:
    def nested(question: str) -> str:
        return answer(question)

    return nested


TARGETS = {
    "function": (answer, f"{__name__}:answer"),
    "nested function": (local(), f"{__name__}:local.<locals>.nested"),
    "instance": (Agent(CAPITALS), f"{__name__}:Agent"),
    "bound method": (Agent(CAPITALS).ask, f"{__name__}:Agent.ask"),
    "lambda with a name": (ev.named(lambda question: CAPITALS[question], name="looked_up"), "looked_up"),
    "partial with a name": (ev.named(partial(answer, known=CAPITALS), "looked up"), "looked up"),
}


@pytest.mark.parametrize(("target", "identity"), TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("options", [{}, {"timeout": 30}], ids=["alone", "with options"])
def test_a_target_is_the_object_itself(target: Any, identity: str, options: dict[str, Any]) -> None:
    declared = suite(target={"python": target, **options} if options else target)
    assert declared.run().metrics["exact_match"].value == 1.0
    assert yaml.safe_load(declared.to_yaml())["target"]["python"] == identity


@pytest.mark.parametrize("target", [lambda question: question, partial(answer)], ids=["lambda", "partial"])
@pytest.mark.parametrize("place", ["target", "target.world", "judge", "conversation.user.model"])
def test_what_has_no_name_asks_for_one(target: Any, place: str) -> None:
    kind = "lambda" if "lambda" in repr(target) else "partial"
    first, *inner = place.split(".")
    value: Any = target
    for key in reversed(inner):
        value = {key: value}
    with pytest.raises(LlmevalError, match=rf"{place}: found a {kind}, which has no name .*ev.named\(.*name='"):
        suite(**{first: value})


def test_what_cannot_be_called_is_refused_where_it_stands() -> None:
    with pytest.raises(LlmevalError, match=r"target: found 3, expected a function"):
        suite(target=3)
    with pytest.raises(LlmevalError, match=r"systems.small.python: found 3, expected a function"):
        suite(systems={"small": {"python": 3}})


@pytest.mark.parametrize("name", ["", " small", "a\nb", 3, None])
def test_a_name_is_a_text_on_one_line(name: Any) -> None:
    with pytest.raises(LlmevalError, match=r"ev.named: found .*, expected a name on one line"):
        ev.named(answer, name=name)


@pytest.mark.parametrize("value", ["text", 3, None, {"python": answer}])
def test_only_what_can_be_called_or_asked_has_a_name(value: Any) -> None:
    with pytest.raises(LlmevalError, match=r"ev.named: found .*, expected a function or a client"):
        ev.named(value, name="small")


def test_a_client_is_no_target() -> None:
    class Client:
        def complete(self, request: Any) -> str:
            return str(request)

    with pytest.raises(LlmevalError, match=r"target: found .*Client.*, expected a function"):
        suite(target=ev.named(Client(), name="small"))


FAULTS = {
    "misspelt key": ({"target": {"python": answer, "wrold": Agent}}, r"target.*wrold.*, did you mean world\?"),
    "list of systems": ({"systems": [answer]}, "systems: found a list of 1, expected a mapping"),
    "function as a number": ({"target": {"python": answer, "timeout": len}}, r"target.timeout: .*<len>"),
    "function as a gate": ({"gates": [len]}, r"gates.*found '<len>'"),
}


@pytest.mark.parametrize(("keys", "message"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_named_where_objects_are_out_of_place(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(SuiteError, match=message) as raised:
        suite(**keys).load()
    assert " at 0x" not in str(raised.value)


def test_an_object_as_target_may_be_traced() -> None:
    declared = suite(target={"python": Agent(CAPITALS), "traces": True})
    assert declared.run().metrics["exact_match"].value == 1.0


def test_two_objects_of_one_name_are_refused() -> None:
    judges = [Wordy("yes"), Wordy("no")]
    with pytest.raises(LlmevalError, match=r"judges: found two objects 'fixture:.*:Wordy', .*ev.named"):
        suite(judges=judges)


def test_systems_are_objects_by_name() -> None:
    systems = {
        "half": Agent({"France": "Paris"}),
        "whole": Agent(CAPITALS),
        "none": lambda question: f"{question}?",
        "slow": {"python": Agent(CAPITALS).ask, "timeout": 30},
    }
    declared = suite(systems=systems)
    values = {name: declared.run(system=name).metrics["exact_match"].value for name in systems}
    assert values == {"half": 0.5, "whole": 1.0, "none": 0.0, "slow": 1.0}


class Counter:
    """A world that is a class; also the context manager itself."""

    open = 0

    def __enter__(self) -> dict[str, str]:
        type(self).open += 1
        return CAPITALS

    def __exit__(self, *error: object) -> None:
        type(self).open -= 1


def test_worlds_are_functions_classes_and_closures() -> None:
    entered = []

    @contextmanager
    def world(case: ev.Case) -> Iterator[dict[str, str]]:
        entered.append(case.id)
        yield CAPITALS

    def lookup(question: str, world: dict[str, str]) -> str:
        return world[question]

    assert suite(target={"python": lookup, "world": world}).run().metrics["exact_match"].value == 1.0
    assert sorted(entered) == ["a", "b"]
    assert suite(target={"python": lookup, "world": Counter}).run().metrics["exact_match"].value == 1.0
    assert Counter.open == 0
    assert suite(target={"world": world}).run(lookup).metrics["exact_match"].value == 1.0
    assert suite(systems={"one": {"python": lookup, "world": world}}).run(system="one").pass_rate.value == 1.0


class Wordy:
    def __init__(self, reply: str) -> None:
        self.reply = reply
        self.requests: list[Any] = []

    def complete(self, request: Any) -> str:
        self.requests.append(request)
        return json.dumps({"reasoning": "x", "score": 1.0 if self.reply == "yes" else 0.0})


def judged(**more: Any) -> Any:
    return suite(evaluators=[ev.judge(mode="continuous")], target=answer, **more)


def test_a_judge_is_a_client() -> None:
    client = Wordy("yes")
    result = judged(judge=client).run()
    assert len(client.requests) == 2
    assert result.metrics["judge_score"].value == 1.0
    assert {request.model for request in client.requests} == {f"{__name__}:Wordy"}
    with_options = Wordy("yes")
    judged(judge={"model": with_options, "temperature": 0}).run()
    assert with_options.requests[0].parameters == {"temperature": 0}


def test_the_judge_of_a_run_takes_the_place_of_the_suites() -> None:
    client, other = Wordy("yes"), Wordy("no")
    assert judged(judge=client).run(judge=other).metrics["judge_score"].value == 0.0
    assert not client.requests


def test_jurors_are_clients() -> None:
    clients = [Wordy("yes"), Wordy("yes"), Wordy("no")]
    named = [ev.named(each, name=f"juror {place}") for place, each in enumerate(clients)]
    result = judged(judges=named).run()
    assert [len(each.requests) for each in clients] == [2, 2, 2]
    assert result.metrics["judge_score"].value == pytest.approx(2 / 3)


def test_a_cascade_has_clients() -> None:
    small, large = ev.named(Wordy("no"), name="small"), ev.named(Wordy("yes"), name="large")
    result = judged(judge={"first": small, "then": {"model": large}, "when": {"disagree": 2}, "audit": 1.0}).run()
    assert result.metrics["judge_score"].value == 1.0


def test_a_simulated_user_is_a_client() -> None:
    said = []

    class Customer:
        def complete(self, request: Any) -> str:
            said.append(request)
            turn = {"message": "France?", "stop": None} if len(said) == 1 else {"message": None, "stop": "goal_reached"}
            return json.dumps({**turn, "reason": "r"})

    def agent(messages: list[dict[str, str]]) -> str:
        return f"Paris, after {len(messages)} messages"

    declared = ev.suite(
        "talk",
        cases=[{"id": "a", "input": "Learn the capital of France."}],
        evaluators=["conversation"],
        conversation={"user": {"model": Customer(), "checks_role": False}},
        target=agent,
    )
    other = Wordy("no")
    result = declared.run(judge=other)  # judges, and does not play the user
    assert result.metrics["stop_reason[goal_reached]"].value == 1.0
    assert not other.requests


def test_a_file_says_that_its_objects_are_not_in_it(tmp_path: Path) -> None:
    path = tmp_path / "capitals.eval.yaml"
    path.write_text(
        suite(target=ev.named(lambda question: f"{question}?", name="looked_up")).to_yaml(), encoding="utf-8"
    )
    with pytest.raises(SuiteError, match="found 'looked_up', expected MODULE:NAME"):
        ev.suite.from_file(path).load()


def test_a_case_outside_of_tests_says_how_it_is_scored() -> None:
    with pytest.raises(LlmevalError, match=r"case 'a': score is for the fixture case .* pytest_llmeval\.score"):
        ev.Case[str, str]("a", input="France", expected="Paris").score("Paris")


def test_an_evaluator_of_users_may_have_metrics_of_any_kind() -> None:
    @dataclass(frozen=True)
    class Own(ev.Evaluator):
        metrics: None = None
        name: ClassVar = "own"

        def describe(self) -> list[ev.Metric]:
            return [ev.Metric("share")]

        def measure(self, case: ev.Case) -> ev.Observation:
            return ev.Observation({"right": float(case.prediction == case.expected), "n": 1.0})

        def summarize(self, sums: Any) -> Any:
            return {"share": sums["right"] / sums["n"]}

    declared = suite(evaluators=[Own()])
    result = declared.run(answer)
    assert result.metrics["share"].value == 1.0
    assert compared_metrics(declared.load(), result) == ["share"]
