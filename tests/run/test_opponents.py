"""Answers of other systems beside a case: each system is asked once, whoever wants its answer."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

import pytest
from project import load_text

from pytest_llmeval import JudgeRequest
from pytest_llmeval.core import SuiteError
from pytest_llmeval.judges import CachePlace, JudgeOptions
from pytest_llmeval.run import CaseRunner, EarlyCalls, Execution, FromFixtures, LoadedCase
from pytest_llmeval.suites import LoadedSuite, SuiteKey
from pytest_llmeval.targets import Recordings
from pytest_llmeval.workbench.plan._making import plan_cases

EARLY = EarlyCalls(target=True, judge=True)

APP = """\
asked = []

def small(value):
    asked.append(f"small {value}")
    return value

def large(value):
    asked.append(f"large {value}")
    return 3 * value

def ill(value):
    asked.append(f"ill {value}")
    if value == "one":
        raise ValueError("out of order")
    if value == "two":
        raise SystemExit(3)
    return {"answer": "xx", "usage": {"input_tokens": 3}}
"""

SUITE = """\
systems:
  small: {python: "APP:small"}
  large: {python: "APP:large"}
  file: {predictions: answers.json}
  ill: {python: "APP:ill"}
evaluators: [pairwise: {against: AGAINST}]
cases: [{id: one, input: one}, {id: two, input: two}, {id: three, input: three}]
"""


def longer(request: JudgeRequest) -> str:
    shown = json.loads(request.messages[-1].content.removeprefix("<data>").removesuffix("</data>"))
    return json.dumps({"better": "first" if len(shown["first"]) > len(shown["second"]) else "second"})


@dataclass
class World:
    """A suite of four systems, its application, and a process that runs its cases."""

    folder: Path
    app: str
    runners: list[CaseRunner] = field(default_factory=list)

    def suite(self, against: str = "systems") -> LoadedSuite:
        text = SUITE.replace("APP", self.app).replace("AGAINST", against)
        return load_text(text, self.folder)

    def asked(self) -> Counter[str]:
        """Return what the application was asked."""
        asked: list[str] = import_module(self.app).asked
        return Counter(asked)

    def runner(self, concurrency: int = 4, recordings: Recordings | None = None) -> CaseRunner:
        options = JudgeOptions(concurrency=concurrency, cache=CachePlace(self.folder / "cache.sqlite3"))
        self.runners.append(CaseRunner(options, recordings))
        return self.runners[-1]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[World]:
    app = f"app_of_{''.join(filter(str.isalnum, request.node.name))}"  # modules of targets stay imported
    (tmp_path / f"{app}.py").write_text(APP, encoding="utf-8")
    (tmp_path / "answers.json").write_text('{"one": "from a file", "three": null}', encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    made = World(tmp_path, app)
    yield made
    for each in made.runners:
        each.close(whole_run=True)


def run(
    runner: CaseRunner, suite: LoadedSuite, *systems: str, early: EarlyCalls = EARLY, again: bool = False
) -> dict[str, Execution]:
    """Run the cases of systems, in the order of a suite's items."""
    jobs = loaded(suite, *systems)
    given = FromFixtures(judge=lambda: longer)
    done = {}
    for place, each in enumerate(jobs):
        for _ in range(2 if again else 1):
            execution = runner.run(each, given, jobs[place + 1 :], early)
        done[f"{each.case.id}[{each.key.variant}]"] = execution
    return done


def loaded(suite: LoadedSuite, *systems: str) -> list[LoadedCase]:
    """Return the cases of systems, in the order of a suite's items."""
    return [
        LoadedCase(suite.for_variant(name), cases[name], SuiteKey(str(suite.path), "s.eval.yaml", variant=name))
        for cases in (
            dict(zip(systems, each, strict=True))
            for each in zip(*(suite.for_variant(name).cases for name in systems), strict=True)
        )
        for name in systems
    ]


def planned(runner: CaseRunner, suite: LoadedSuite) -> dict[str, tuple[int, int]]:
    """Return the calls of target and judge that a run of the system ``large`` would make, by system."""
    plan = plan_cases(runner, ((each, False) for each in loaded(suite, "large")))
    return {each.system: (each.target.expected, each.judge.expected) for each in plan.suites}


def rates(execution: Execution, suite: LoadedSuite) -> dict[str, float | None]:
    """Return opponent to win rate."""
    scores = execution.scores(suite)
    return {name[9:-1]: value for name, value in scores.items() if name.startswith("win_rate[")}


@pytest.mark.parametrize("concurrency", [4, 1])
def test_each_system_is_asked_once_about_each_case(world: World, concurrency: int) -> None:
    suite = world.suite()
    done = run(world.runner(concurrency), suite, "small", "large", "file", "ill")
    assert set(world.asked().values()) == {1}
    assert len(world.asked()) == 9
    assert rates(done["three[large]"], suite) == {"small": 1.0, "file": 1.0, "ill": 1.0}
    assert rates(done["one[large]"], suite) == {"small": 1.0, "file": 0.0}


def test_a_system_alone_asks_those_that_it_is_compared_with(world: World) -> None:
    suite = world.suite("[small, file]")
    done = run(world.runner(), suite, "large")
    assert world.asked() == Counter(f"{name} {word}" for name in ("large", "small") for word in ("one", "two", "three"))
    assert rates(done["one[large]"], suite) == {"small": 1.0, "file": 0.0}


def test_an_opponent_without_an_answer_is_a_reason_and_costs_the_case_nothing_else(world: World) -> None:
    suite = world.suite("[ill, file]")
    done = run(world.runner(), suite, "large", "ill")
    first, second = (done[f"{name}[large]"].record for name in ("one", "two"))
    assert (first.outcome, second.outcome) == ("passed", "not_scored")
    assert first.observations["pairwise"].undefined["win_rate"] == "ill: ValueError: out of order"
    assert second.observations["pairwise"].undefined["win_rate[ill]"] == "ill: the target called sys.exit(3)"
    assert second.observations["pairwise"].undefined["win_rate[file]"].startswith("file: the system 'file' has no pre")
    assert done["one[ill]"].record.outcome == "errored"


def test_the_text_of_an_answer_with_usage_is_compared(world: World) -> None:
    suite = world.suite("ill")
    done = run(world.runner(), suite, "small")
    asked = done["three[small]"].record.judgings
    assert {each.question["first"] for each in asked} == {"three", "xx"}


def test_a_system_that_is_its_own_only_opponent_is_a_tie_and_nobody_is_asked(world: World) -> None:
    suite = world.suite("small")
    done = run(world.runner(), suite, "small")
    assert {each.scores(suite)["ties"] for each in done.values()} == {1.0}
    assert not any(each.record.calls for each in done.values())


def test_a_case_that_runs_again_gets_another_answer_of_its_own_and_the_same_of_others(world: World) -> None:
    run(world.runner(), world.suite("small"), "large", again=True)
    assert (world.asked()["small one"], world.asked()["large one"]) == (1, 2)


def test_opponents_are_recorded_and_replayed_like_any_answer(world: World) -> None:
    path = world.folder / "predictions.jsonl"
    recordings = Recordings.of_run(path, "auto", world.folder, "run", merges=False)
    suite = world.suite("small")
    assert planned(world.runner(recordings=recordings), suite) == {"large": (3, 6), "small": (3, 0)}
    run(world.runner(recordings=recordings), suite, "large")
    recordings.update([])
    assert world.asked()["small one"] == 1
    replayed = Recordings.open(path, "replay")
    (world.folder / "cache.sqlite3").unlink()
    assert planned(world.runner(recordings=replayed), suite) == {"large": (0, 6)}
    done = run(world.runner(recordings=replayed), suite, "large")
    assert {each.scores(suite)["win_rate"] for each in done.values()} == {1.0}
    assert set(world.asked().values()) == {1}


@pytest.mark.parametrize("against", ["nobody", "[small, nobody]"])
def test_an_opponent_that_the_suite_does_not_have_is_a_fault_with_its_place(world: World, against: str) -> None:
    with pytest.raises(Exception, match=r"s\.eval\.yaml:6.*evaluators\[0\]\.pairwise: unknown opponent nobody"):
        world.suite(against)


def test_a_faulty_system_is_no_unknown_opponent(world: World) -> None:
    text = SUITE.replace("AGAINST", "systems").replace("python:", "target:").replace("predictions:", "target:")
    with pytest.raises(SuiteError) as error:
        load_text(text, world.folder)
    assert {fault.path.partition(".")[0] for fault in error.value.faults} == {"systems"}


def test_names_that_mean_something_else_are_no_systems(world: World) -> None:
    text = SUITE.replace("small:", "reference:").replace("APP", world.app).replace("AGAINST", "reference")
    with pytest.raises(Exception, match="'reference', which is also a system of the suite"):
        load_text(text, world.folder)
    without = "evaluators: [pairwise: {against: systems}]\ncases: [{id: one, input: one, prediction: x}]\n"
    with pytest.raises(Exception, match="unknown opponent systems"):
        load_text(without, world.folder)
