"""The subcommand judge: another judge is asked the recorded questions, and a bridge is approved."""

import json
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from judged_projects import KEY, shown_to
from llm_server import Answer, Call, LlmServer, Sent, reply

from pytest_llmeval import Case
from pytest_llmeval.cli import main
from pytest_llmeval.judge.options import JudgeOptions
from pytest_llmeval.judge.recordings import judgements_of, write_judgements
from pytest_llmeval.judge.store.cache import Cache
from pytest_llmeval.judge.stored_judgement import StoredJudgement
from pytest_llmeval.run.case_runner import CaseRunner
from pytest_llmeval.run.collected import CollectedRun, CollectedSuite, SuiteResults, judges_of
from pytest_llmeval.run.job import EarlyCalls, LoadedCase
from pytest_llmeval.run.judging import JudgedRun, judge_run
from pytest_llmeval.snapshots.files import score_file
from pytest_llmeval.snapshots.keeper import Keeper
from pytest_llmeval.snapshots.layout import parse
from pytest_llmeval.snapshots.mode import Mode
from pytest_llmeval.snapshots.scores import SuiteScores
from pytest_llmeval.suite.loading import load_suite
from pytest_llmeval.suite.registry import default_registry
from pytest_llmeval.suite.suite import SuiteKey
from pytest_llmeval.targets.python import recording

WORDS = [f"w{number:02}" for number in range(40)]
OLD, NEW = "openai:old", "openai:new"


def graded(yes: Callable[[str, str], bool]) -> Answer:
    """Answer yes or no, by the model and the answer that is judged."""

    def answer(call: Call) -> Sent:
        return reply("yes" if yes(call.body["model"], shown_to(call)["answer"]) else "no")(call)

    return answer


class Suites:
    """A suite in a folder, runs of it without pytest, and the command.

    Attributes:
        server: Both judges.
    """

    def __init__(self, folder: Path, server: LlmServer, capsys: pytest.CaptureFixture[str]) -> None:
        self.path = folder / "s.eval.yaml"
        self.server = server
        self._capsys = capsys

    def write(self, answers: Sequence[str], model: str = OLD, **top: Any) -> None:
        cases = [
            {"id": word, "input": f"Say {word}!", "expected": word, "prediction": answer}
            for word, answer in zip(WORDS, answers, strict=False)
        ]
        content = {
            "evaluators": [{"judge": {"mode": "default_binary"}}],
            "judge": {"model": model, "base_url": self.server.base_url, "retries": 0},
            "snapshot": {"tolerance": 0.01},
            "gates": [{"metric": "judge_score", "max_drop": 0.05}],
            **top,
            "cases": cases,
        }
        content = {name: value for name, value in content.items() if value is not None}
        self.path.write_text(json.dumps(content), encoding="utf-8")

    def run(self, *, update: bool = False, system: str = "") -> JudgedRun:
        """Run the suite as pytest does, and record its verdicts if it is approved."""
        suite = load_suite(self.path, default_registry(), root=self.path.parent, shown=self.path.name).of(system)
        key = SuiteKey(str(self.path), self.path.name, variant=system)
        runner = CaseRunner(JudgeOptions())
        loaded = [LoadedCase(suite, case, key) for case in suite.cases]
        done = [
            runner.run(each, following=loaded[n:], early=EarlyCalls(judge=True)) for n, each in enumerate(loaded, 1)
        ]
        judges = judges_of(suite, runner.judges, key.shown)
        runner.close(whole_run=True)
        results = SuiteResults(key, suite.total, {each.record.id: each.record for each in done})
        run = CollectedRun(datetime(2026, 11, 22, tzinfo=UTC), "abc", [CollectedSuite(results, suite, judges)])
        keeper = Keeper(Mode(update=update))
        judged = judge_run(run, keeper)
        if update:
            keeper.settle(whole=True)
            write_judgements(judgements_of(self.path), [entry for each in done for entry in each.entries])
        return judged

    def verdicts(self, run: JudgedRun) -> dict[str, tuple[str, str]]:
        """Return metric or gate to outcome and reason."""
        (suite,) = run.suites
        found = {each.metric: (each.outcome, each.reason) for each in suite.report.snapshot}
        return found | {each.gate: (each.outcome, each.reason) for each in suite.report.gates}

    def scores(self, system: str = "") -> SuiteScores:
        path = score_file(SuiteKey(str(self.path), self.path.name, variant=system))
        found: SuiteScores = parse(path, "scores", SuiteScores)
        return found

    def llmeval(self, *arguments: str) -> tuple[int, str]:
        code = main(list(arguments))
        told = self._capsys.readouterr()
        return code, told.out + told.err

    def migrate(self, *arguments: str) -> tuple[int, str]:
        address = ("--base-url", self.server.base_url)
        return self.llmeval("judge", "migrate", self.path.name, "--to", NEW, *address, *arguments)


@pytest.fixture
def suites(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Suites]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with LlmServer() as server:
        yield Suites(here, server, capsys)


GATE = "drop(judge_score) <= 0.05"
GOOD, BAD = "good", "bad"
HALF = [GOOD] * 20 + [f"so so {number}" for number in range(10)] + [BAD] * 10


def milder(model: str, answer: str) -> bool:
    """The new judge accepts what is so so."""
    return answer.startswith(GOOD) or (model == "new" and answer.startswith("so so"))


def stricter(model: str, answer: str) -> bool:
    """The old judge accepted what is so so."""
    return answer.startswith(GOOD) or (model == "old" and answer.startswith("so so"))


def test_a_drop_that_a_milder_judge_hides_is_found_across_the_bridge(suites: Suites) -> None:
    suites.server.script(graded(milder))
    suites.write(HALF)
    suites.run(update=True)
    worse = [GOOD] * 6 + HALF[20:30] + [BAD] * 24
    suites.write(worse, model=NEW)
    refused = suites.verdicts(suites.run())
    wanted = f"measure what the change does with: llmeval judge migrate s.eval.yaml --to {NEW}"
    assert (refused[GATE][0], refused["judge_score"][0]) == ("failed", "failed")
    assert refused[GATE][1].startswith("not comparable: the judge's model of 'judge' is openai:new")
    assert wanted in refused[GATE][1]
    assert wanted in refused["judge_score"][1]

    suites.write(HALF)
    code, told = suites.migrate("--approve")
    assert code == 0, told
    assert "bridge written to __llmeval__/s.scores.json" in told
    suites.write(worse, model=NEW)
    found = suites.verdicts(suites.run())
    assert found[GATE][0] == "failed"
    assert "0.7500 -> 0.4000, drop 0.3500" in found[GATE][1]
    assert "a drop beyond 0.05 is established" in found[GATE][1]
    outcome, reason = found["judge_score"]
    assert outcome == "failed"
    assert reason.startswith("fell from 0.75 to 0.4, worse by 0.35; tolerance 0.1")
    assert "; 0.5 when approved, which a change of judge moves by +0.2500 (95% interval " in reason


def test_a_stricter_judge_makes_no_false_drop_across_the_bridge(suites: Suites) -> None:
    suites.server.script(graded(stricter))
    suites.write(HALF)
    suites.run(update=True)
    assert suites.migrate("--approve")[0] == 0
    suites.write(HALF, model=NEW)
    found = suites.verdicts(suites.run())
    assert found[GATE][0] == found["judge_score"][0] == "passed"
    assert "0.5000 -> 0.5000, drop 0.0000" in found[GATE][1]
    assert "across a change of judge, which by itself moves it by -0.2500" in found[GATE][1]


def test_a_run_by_the_old_judge_and_one_by_a_third_are_compared_as_before(suites: Suites) -> None:
    suites.server.script(graded(milder))
    suites.write(HALF)
    suites.run(update=True)
    before = suites.verdicts(suites.run())
    assert suites.migrate("--approve")[0] == 0
    assert suites.verdicts(suites.run()) == before
    suites.write(HALF, model="openai:third")
    assert suites.verdicts(suites.run())[GATE][0] == "failed"
    assert "not comparable" in suites.verdicts(suites.run())["judge_score"][1]


def test_approving_a_run_of_the_new_judge_ends_the_use_of_the_bridge_and_keeps_it(suites: Suites) -> None:
    suites.server.script(graded(milder))
    suites.write(HALF)
    suites.run(update=True)
    suites.migrate("--approve")
    suites.write(HALF, model=NEW)
    suites.run(update=True)
    (bridge,) = suites.scores().bridges
    assert (bridge.old["model"], bridge.new["model"]) == (OLD, NEW)
    found = suites.verdicts(suites.run())
    assert found["judge_score"] == ("passed", "is 0.75, as approved")


def test_the_bridge_stands_where_earlier_versions_accept_any_text(suites: Suites) -> None:
    suites.write([GOOD, BAD, GOOD])
    suites.run(update=True)
    path = score_file(SuiteKey(str(suites.path), suites.path.name))
    before = json.loads(path.read_text(encoding="utf-8"))
    suites.migrate("--approve")
    after = json.loads(path.read_text(encoding="utf-8"))
    judges = after["comparable"].pop("judges")
    assert judges.pop("judge") == before["comparable"].pop("judges")["judge"]
    assert {type(text) for entry in judges.values() for text in entry.values()} == {str}
    assert after | {"checksum": ""} == before | {"checksum": ""}


def test_a_migration_reports_agreement_flips_gates_and_scores(suites: Suites) -> None:
    suites.server.script(graded(milder))
    suites.write(HALF, gates=["judge_score >= 0.7", "judge_score >= 0.2"], thresholds={"judge_score": 1})
    suites.run(update=True)
    asked = len(suites.server.calls)
    code, told = suites.migrate()
    assert (code, len(suites.server.calls) - asked) == (0, 40)
    for line in (
        "s.eval.yaml: openai:old -> openai:new, 40 cases compared, 0 left out",
        "40 calls of the new judge",
        "default_binary          40       30  0.5000  0.7500  0.2500   0.4733",
        "  w20: case failed -> passed",
        "  w20: judge_score 0 -> 1",
        "gates that change:",
        "  judge_score >= 0.7: failed -> passed",
        "  judge_score: 0.5000 -> 0.7500",
        "  pass_rate: 0.5000 -> 0.7500",
        "left out: none",
        "nothing was changed; --approve lets later runs be compared",
    ):
        assert line in told.splitlines()
    assert "judge_score >= 0.2" not in told
    assert suites.scores().bridges == ()
    again = suites.migrate()[1]
    assert "0 calls of the new judge" in again
    assert len(suites.server.calls) - asked == 40


def test_judges_that_always_agree_leave_the_difference_at_0_with_an_interval(suites: Suites) -> None:
    suites.server.script(graded(lambda _model, answer: answer == GOOD))
    suites.write([GOOD] * 20 + [BAD] * 20)
    suites.run(update=True)
    suites.migrate("--approve")
    shift = suites.scores().bridges[0].shifts["judge_score"]
    assert (shift.value, shift.low < 0 < shift.high, shift.high < 0.2) == (0.0, True, True)


def test_a_spent_budget_ends_a_migration_that_another_one_completes(suites: Suites) -> None:
    suites.write([GOOD] * 5)
    suites.run(update=True)
    asked = len(suites.server.calls)
    code, told = suites.migrate("--budget", "calls=3", "--concurrency", "1", "--approve")
    assert (code, len(suites.server.calls) - asked) == (1, 3)
    assert "the budget of 3 calls is spent; finished verdicts are stored: run the command again" in told
    assert suites.scores().bridges == ()
    assert suites.migrate("--budget", "calls=2", "--approve")[0] == 0


def test_cases_without_a_recorded_verdict_are_named_and_not_asked(suites: Suites) -> None:
    suites.write([GOOD] * 4)
    suites.run(update=True)
    suites.write([GOOD] * 3 + ["another answer"])
    asked = len(suites.server.calls)
    code, told = suites.migrate()
    assert (code, len(suites.server.calls) - asked) == (0, 3)
    assert "3 cases compared, 1 left out" in told
    assert "w03: JudgeError: case 'w03': no recorded verdict" in told


def test_no_target_is_called_and_recorded_predictions_are_judged(suites: Suites) -> None:
    folder = suites.path.parent
    (folder / "app.py").write_text('raise RuntimeError("the target was imported")\n', encoding="utf-8")
    suites.write([GOOD, BAD, GOOD])
    suites.run(update=True)
    content = json.loads(suites.path.read_text(encoding="utf-8"))
    rows = [recording("s.eval.yaml", "", Case(**each)) for each in content["cases"]]
    bare = [{name: value for name, value in each.items() if name != "prediction"} for each in content["cases"]]
    suites.path.write_text(json.dumps({**content, "target": "app:answer", "cases": bare}), encoding="utf-8")
    code, told = suites.migrate()
    assert (code, "case 'w00' is not recorded in --predictions FILE" in told) == (1, True)
    (folder / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    code, told = suites.migrate("--predictions", "p.jsonl")
    assert (code, "3 cases compared, 0 left out" in told) == (0, True)


def test_each_system_has_a_bridge_of_its_own(suites: Suites) -> None:
    suites.write([GOOD, BAD, GOOD])
    content = json.loads(suites.path.read_text(encoding="utf-8"))
    rows = [{"id": each["id"], "prediction": each.pop("prediction")} for each in content["cases"]]
    (suites.path.parent / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    content["systems"] = {"one": {"predictions": "p.jsonl"}, "two": {"predictions": "p.jsonl"}}
    suites.path.write_text(json.dumps(content), encoding="utf-8")
    suites.run(update=True, system="one")
    code, told = suites.migrate("--approve")
    assert code == 1
    assert "s.eval.yaml[one]: openai:old -> openai:new" in told
    assert "found no approved scores __llmeval__/s.two-" in told
    suites.run(update=True, system="two")
    assert suites.migrate("--approve")[0] == 0
    assert [len(suites.scores(name).bridges) for name in ("one", "two")] == [1, 1]


def test_the_old_judge_has_the_parameters_of_the_approved_run(suites: Suites) -> None:
    judge = {"base_url": suites.server.base_url, "retries": 0}
    suites.write([GOOD] * 4, judge={**judge, "model": OLD, "temperature": 0, "parameters": {"top_p": 0.5}})
    suites.run(update=True)
    suites.write([GOOD] * 4, judge={**judge, "model": NEW, "max_tokens": 9})
    code, told = suites.migrate("--approve")
    assert code == 0, told
    (bridge,) = suites.scores().bridges
    assert json.loads(bridge.old["parameters"]) == {"temperature": 0.0, "top_p": 0.5}
    assert json.loads(bridge.new["parameters"]) == {"max_tokens": 9}
    assert suites.server.calls[-1].body["max_tokens"] == 9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--to", OLD), "which judges already, expected another judge"),
        (("--to", "fixture:mine"), "expected a model: a fixture judges in pytest only"),
        (("--to", "new"), "expected PROVIDER:NAME"),
        (("--to", NEW, "--budget", "calls"), "--budget: found 'calls'"),
        (("--to", NEW, "--concurrency", "0"), "--concurrency: found 0"),
        (("--to", NEW, "--from", "openai:third"), "found nothing to compare: JudgeError: case 'w00'"),
    ],
)
def test_a_migration_that_cannot_be_made_says_why(suites: Suites, arguments: tuple[str, ...], message: str) -> None:
    suites.write([GOOD] * 2)
    suites.run(update=True)
    code, told = suites.llmeval("judge", "migrate", suites.path.name, *arguments)
    assert code == 1
    assert message in told


def test_a_bridge_begins_at_approved_scores_and_at_those_of_the_old_judge(suites: Suites) -> None:
    suites.write([GOOD] * 3)
    suites.run(update=True)
    suites.write([GOOD] * 3, snapshot=False)
    path = score_file(SuiteKey(str(suites.path), suites.path.name))
    approved = path.read_text(encoding="utf-8")
    path.unlink()
    code, told = suites.migrate("--approve")
    assert (code, path.exists()) == (1, False)
    assert "found no approved scores __llmeval__/s.scores.json, expected some" in told
    path.write_text(approved, encoding="utf-8")
    suites.write([GOOD] * 3, model="openai:other")
    suites.run()
    write_judgements(judgements_of(suites.path), _entries())
    code, told = suites.migrate("--from", "openai:other", "--approve")
    assert code == 1
    assert "found scores of 'judge' approved with model openai:old, expected model openai:other" in told


def _entries() -> list[StoredJudgement]:
    with Cache(JudgeOptions().cache) as cache:
        return list(cache.entries())


def test_one_case_is_too_little_for_a_bridge(suites: Suites) -> None:
    suites.write([GOOD])
    suites.run(update=True)
    code, told = suites.migrate("--approve")
    assert code == 1
    assert "found too few cases to measure the difference of 'judge', expected at least 2" in told


def test_a_judge_that_writes_its_own_steps_is_bridged_with_these_and_no_others(suites: Suites) -> None:
    steps = {"old": "Look.", "new": "Think."}

    def answer(call: Call) -> Sent:
        model, shown = call.body["model"], shown_to(call)
        if "grades" in shown:
            return reply(json.dumps({"steps": [steps[model], "Compare."]}))(call)
        return reply(json.dumps({"reasoning": "r", "score": 5 if milder(model, shown["answer"]) else 1}))(call)

    suites.server.script(answer)
    criteria = [{"judge": {"criteria": "Short and right."}}]
    suites.write(HALF, evaluators=criteria)
    suites.run(update=True)
    assert suites.migrate("--approve")[0] == 0
    suites.write(HALF, model=NEW, evaluators=criteria)
    found = suites.verdicts(suites.run())
    assert (found[GATE][0], found["judge_score"][0]) == ("passed", "passed")
    assert "across a change of judge" in found[GATE][1]
    steps["new"] = "Guess."
    JudgeOptions().cache.unlink()
    found = suites.verdicts(suites.run())
    assert (found[GATE][0], found["judge_score"][0]) == ("failed", "failed")
    assert "not comparable: computed as" in found[GATE][1]
