"""Early calls: what is asked before its turn, in which order, and what is left to the case's own turn."""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from builders import key_of, length_suite
from project import load_text
from servers import PATIENCE

from pytest_llmeval import Case
from pytest_llmeval.judges import CachePlace, JudgeOptions, JudgeRequest
from pytest_llmeval.run import CaseRunner, EarlyCalls, FromFixtures, LoadedCase
from pytest_llmeval.services import Background
from pytest_llmeval.suites import LoadedSuite

EARLY = EarlyCalls(target=True, judge=True)
JUDGE_ONLY = EarlyCalls(target=False, judge=True)
NEVER = EarlyCalls()


@dataclass
class Bot:
    """A target and a judge that note what they are asked; one event loop asks in a certain order."""

    asked: list[str] = field(default_factory=list)
    judged: list[str] = field(default_factory=list)
    made: int = 0

    async def answer(self, value: str) -> str:
        self.asked.append(value)
        return value.upper()

    def client(self) -> Any:
        self.made += 1
        return self.verdict

    async def verdict(self, request: JudgeRequest) -> str:
        text = request.messages[-1].content
        self.judged.append(next(name for name in "abcx" if f'"answer": "{name.upper()}"' in text))
        return "yes"

    @property
    def given(self) -> FromFixtures:
        return FromFixtures(self.answer, self.client)


@pytest.fixture
def bot() -> Bot:
    return Bot()


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., CaseRunner]]:
    made: list[CaseRunner] = []

    def runner(concurrency: int = 4) -> CaseRunner:
        made.append(
            CaseRunner(JudgeOptions(concurrency=concurrency, cache=CachePlace(tmp_path / "cache.sqlite3"), run="run"))
        )
        return made[-1]

    yield runner
    for each in made:
        each.close(whole_run=True)


def cases(suite: LoadedSuite, *, test: str = "", variant: str = "") -> dict[str, LoadedCase]:
    return {case.id: LoadedCase(suite, case, key_of(suite, test=test, variant=variant)) for case in suite.cases}


def plain(*names: str, **more: Any) -> LoadedSuite:
    return length_suite(*(Case(name, input=name, expected="x") for name in names), **more)


def judged(folder: Path, *names: str, predicted: str = "", repeats: int = 1) -> LoadedSuite:
    """Return a suite with a judge; some of its cases carry their prediction."""
    listed = [
        {"id": name, "input": name, "expected": "x", **({"prediction": name.upper()} if name in predicted else {})}
        for name in names
    ]
    content = {"evaluators": [{"judge": {"mode": "default_binary"}}], "repeats": repeats, "cases": listed}
    return load_text(json.dumps(content), folder)


def test_what_may_not_be_asked_early_is_asked_in_its_turn(make: Callable[..., CaseRunner], bot: Bot) -> None:
    runner, own = make(), cases(plain("a", "b"))
    execution = runner.run(own["a"], bot.given, [own["b"]], NEVER)
    assert (execution.case.prediction, bot.asked) == ("A", ["a"])


def test_the_case_itself_goes_first_then_those_to_come_and_nothing_is_asked_twice(
    make: Callable[..., CaseRunner], bot: Bot, tmp_path: Path
) -> None:
    runner, own = make(), cases(judged(tmp_path, "a", "b", "c", repeats=2))
    runner.run(own["a"], bot.given, [own["b"], own["c"]], EARLY)
    runner.finish()
    assert bot.asked == ["a", "a", "b", "b", "c", "c"]
    answers = [runner.run(own[name], bot.given, (), EARLY).answered for name in "bc"]
    assert [[each.prediction for each in answer] for answer in answers] == [["B", "B"], ["C", "C"]]
    assert len(bot.asked) == 6


def test_a_case_that_runs_again_is_asked_again(make: Callable[..., CaseRunner], bot: Bot) -> None:
    runner, own = make(), cases(plain("a", "b"))
    for name, following in (("a", [own["b"]]), ("b", []), ("b", [])):
        runner.run(own[name], bot.given, following, EARLY)
    assert bot.asked.count("b") == 2


def test_a_judge_may_be_asked_early_where_a_target_may_not(
    make: Callable[..., CaseRunner], bot: Bot, tmp_path: Path
) -> None:
    runner, own = make(), cases(judged(tmp_path, "a", "b", "x", "c", predicted="bc"))
    runner.run(own["a"], bot.given, [own[name] for name in "bxc"], JUDGE_ONLY)
    runner.finish()
    assert (bot.asked, sorted(bot.judged)) == (["a"], ["a", "b", "c"])
    runner.run(own["x"], bot.given, [own["c"]], JUDGE_ONLY)
    assert (bot.asked, sorted(bot.judged)) == (["a", "x"], ["a", "b", "c", "x"])


def test_for_what_is_known_no_judge_is_made_and_nobody_asked(
    make: Callable[..., CaseRunner], bot: Bot, tmp_path: Path
) -> None:
    own = cases(judged(tmp_path, "a", "b", predicted="ab"))
    first = make()
    for each in own.values():
        first.run(each, bot.given, (), EARLY)
    other = Bot()
    again = make().run(own["a"], other.given, [own["b"]], EARLY)
    assert (again.record.outcome, bot.asked, sorted(bot.judged)) == ("passed", [], ["a", "b"])
    assert (other.made, other.asked, other.judged) == (0, [], [])


@pytest.mark.parametrize("place", [{"test": "test_it"}, {"variant": "gpt"}])
def test_what_was_asked_for_an_item_is_no_answer_for_a_python_test_or_another_variant(
    make: Callable[..., CaseRunner], bot: Bot, place: dict[str, str]
) -> None:
    runner, suite = make(), plain("a", "b")
    runner.run(cases(suite)["a"], bot.given, [cases(suite)["b"]], EARLY)
    runner.finish()
    runner.run(cases(suite, **place)["b"], bot.given, (), EARLY)
    assert bot.asked == ["a", "b", "b"]


def test_a_case_lets_calls_that_are_under_way_go_on_before_it_is_scored(
    make: Callable[..., CaseRunner], monkeypatch: pytest.MonkeyPatch
) -> None:
    given_way: list[bool] = []
    monkeypatch.setattr(Background, "give_way", lambda _: given_way.append(True))
    runner, own, arrived, over = make(), cases(plain("a", "b")), threading.Event(), threading.Event()

    def target(value: str) -> str:
        if value == "b":
            arrived.set()
            over.wait(PATIENCE)
        else:
            arrived.wait(PATIENCE)
        return value

    runner.run(own["a"], FromFixtures(target), [own["b"]], EARLY)
    assert given_way == [True]
    over.set()
    runner.finish()
    runner.run(own["b"], FromFixtures(target), (), EARLY)
    assert given_way == [True]


def test_what_a_user_interrupts_is_under_way_as_far_as_it_got(make: Callable[..., CaseRunner], bot: Bot) -> None:
    runner, own = make(), cases(plain("a", "b", "c"))

    def following() -> Iterator[LoadedCase]:
        yield own["b"]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runner.run(own["a"], bot.given, following(), EARLY)
    runner.finish()  # would wait for ever for what was never begun
    assert bot.asked == ["a", "b"]


def test_cases_to_come_are_looked_at_in_portions_and_at_once_by_a_case_that_was_not_foreseen(
    make: Callable[..., CaseRunner], bot: Bot
) -> None:
    runner, own = make(), cases(plain(*"0123456789"))
    looks: list[str] = []

    def following(name: str) -> Iterator[LoadedCase]:
        looks.append(name)
        yield from (own[str(number)] for number in range(int(name) + 1, 6))

    for name in "012394":
        runner.run(own[name], bot.given, following(name), EARLY)
    assert looks == ["0", "3", "9"]
