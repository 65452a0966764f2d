"""Suites by two judges: runs without pytest, approvals, and the command that changes the judge."""

__all__ = ("BAD", "GATE", "GOOD", "HALF", "NEW", "OLD", "Suites", "graded", "milder", "stricter")

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from finished_runs import KnownSuites
from judged_projects import shown_to
from llm_server import Answer, Call, LlmServer, Sent, reply

from pytest_llmeval.baselines.files import score_file
from pytest_llmeval.baselines.keeper import Keeper
from pytest_llmeval.baselines.layout import parse
from pytest_llmeval.baselines.mode import SnapshotMode
from pytest_llmeval.baselines.scores import SuiteScores
from pytest_llmeval.baselines.stamp import Stamp
from pytest_llmeval.cli import main
from pytest_llmeval.judge.options import JudgeOptions
from pytest_llmeval.judge.recordings import judgements_of, write_judgements
from pytest_llmeval.run.case_runner import CaseRunner
from pytest_llmeval.run.job import EarlyCalls, LoadedCase
from pytest_llmeval.run.judging import judge
from pytest_llmeval.run.run_record import Item, ItemResult, RunRecord, SuitePart
from pytest_llmeval.run.stages import Judged, RunScope, RunTerms, collect, judges_of
from pytest_llmeval.suite.loading import load_suite
from pytest_llmeval.suite.registry import default_registry
from pytest_llmeval.suite.suite import SuiteKey

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

    def run(self, *, update: bool = False, system: str = "") -> Judged:
        """Run the suite as pytest does, and record its verdicts if it is approved."""
        suite = load_suite(
            self.path, default_registry(), root=self.path.parent, display_path=self.path.name
        ).for_variant(system)
        key = SuiteKey(str(self.path), self.path.name, variant=system)
        runner = CaseRunner(JudgeOptions())
        loaded = [LoadedCase(suite, case, key) for case in suite.cases]
        done = [
            runner.run(each, following=loaded[n:], early=EarlyCalls(judge=True)) for n, each in enumerate(loaded, 1)
        ]
        judges = judges_of(suite, runner.judges, key.display_path)
        runner.close(whole_run=True)
        run = RunRecord(
            items={Item(key.display_path, ""): ItemResult(SuitePart.of(key, suite.total, done), "passed", 0.0)}
        )
        keeper = Keeper(SnapshotMode(update=update))
        known = KnownSuites(self.path.parent, {self.path: suite}, judges)
        scope = RunScope(run, RunTerms(), known, keeper, Stamp("2026-11-22", "abc"))
        judged = judge(collect(scope), scope)
        if update:
            keeper.settle(judged.suites, whole=True)
            write_judgements(judgements_of(self.path), [entry for each in done for entry in each.entries])
        return judged

    def verdicts(self, run: Judged) -> dict[str, tuple[str, str]]:
        """Return metric or gate to outcome and reason."""
        (suite,) = run.suites
        found = {each.metric: (each.outcome, each.reason) for each in suite.snapshot.verdicts}
        return found | {each.gate: (each.outcome, each.reason) for each in suite.gates}

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


GATE = "drop(judge_score) <= 0.05"
GOOD, BAD = "good", "bad"
HALF = [GOOD] * 20 + [f"so so {number}" for number in range(10)] + [BAD] * 10


def milder(model: str, answer: str) -> bool:
    """The new judge accepts what is so so."""
    return answer.startswith(GOOD) or (model == "new" and answer.startswith("so so"))


def stricter(model: str, answer: str) -> bool:
    """The old judge accepted what is so so."""
    return answer.startswith(GOOD) or (model == "old" and answer.startswith("so so"))
