"""A plugin with one of everything that can be added, as a type checker sees it.

It imports the package and its page of what can be added, and nothing else of it. The run of mypy in
`test_public_api` checks it; it is never run.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from msgspec import structs

import pytest_llmeval as ev
from pytest_llmeval import extend


@dataclass(frozen=True)
class Length(ev.Evaluator):
    """A metric."""

    name = "length"

    def describe(self) -> Sequence[ev.Metric]:
        return [ev.Metric("words", high=None, higher_is_better=False)]

    def measure(self, case: ev.Case) -> ev.Observation:
        return ev.Observation({"words": len(case.prediction.split()), "n": 1})

    def summarize(self, sums: ev.Sums) -> Mapping[str, ev.FloatArray]:
        return {"words": sums["words"] / sums["n"]}


def is_short(answer: str, most: int) -> bool:
    return len(answer) <= most


@dataclass(frozen=True)
class Ledger(extend.FileSource):
    format = "ledger"

    def read(self, file: extend.CaseFile) -> None:
        for number, line in enumerate(file.path.read_text(encoding="utf-8").splitlines(), 1):
            file.add(ev.Case(line, line, line=number))


@extend.gate_rule
class GapGate(extend.ScoreGate):
    max_gap: float = extend.owned(
        kw_only=False, max_gap=extend.GateKey(float, "the largest gap", looser="more", unit="change")
    )
    tags: ClassVar = ("max_gap",)
    title: ClassVar = "a gate with max_gap"
    statistics: ClassVar = ("value", "mean")
    form: ClassVar = extend.TextForm("gap", "<=", "max_gap")

    @property
    def allowed(self) -> float:
        return self.max_gap

    def verdict(self, score: extend.GateScore) -> tuple[extend.GateOutcome, float | None, str]:
        return ("passed" if 1 - score.value <= self.max_gap else "failed"), 1 - score.value, ""


class Memory:
    """A store of replies."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.kept: dict[str, extend.StoredJudgement] = {}

    def get(self, key: str) -> extend.StoredJudgement | None:
        return self.kept.get(key)

    def put(self, entries: Sequence[extend.StoredJudgement]) -> None:
        self.kept.update((entry.key, entry) for entry in entries)

    def entries(self) -> Iterator[extend.StoredJudgement]:
        return iter(self.kept.values())

    def verify(self) -> list[str]:
        return []

    def prune(self, older_than_s: float | None = None, model: str | None = None) -> int:
        return 0

    def close(self) -> None:
        pass


class Echo:
    """A client of a judge."""

    async def complete(self, request: ev.JudgeRequest) -> ev.JudgeReply:
        return ev.JudgeReply("yes")

    async def aclose(self) -> None:
        pass


def connect(spec: extend.JudgeSpec, patience: extend.Patience) -> extend.AsyncJudge:
    return Echo()


def open_store(path: Path) -> extend.ReplyStore:
    return Memory(path)


def rows_of(suite: extend.SuiteReport) -> Iterator[Sequence[str | float | None]]:
    case: extend.CaseReport
    for case in suite.cases:
        yield [case.id, case.outcome, *case.metrics.values()]


def write_table(report: extend.RunReport, path: Path) -> str | None:
    path.write_text("".join(line for suite in report.suites for line in extend.csv_lines(rows_of(suite))))
    return None


def import_lines(path: Path, display_path: str, options: extend.ImportOptions) -> extend.ImportedSource | None:
    cases = [{"id": word, "input": word} for word in path.read_text(encoding="utf-8").split()]
    return extend.ImportedSource(display_path, extend.ImportedSuite(path.stem, {"evaluators": ["text"]}, cases))


def greet(options: Namespace) -> extend.CommandResult:
    return extend.CommandResult(0, {}, ["hello"])


def add_arguments(parser: ArgumentParser) -> None:
    parser.set_defaults(run=greet)


def reverse(case: ev.Case, neighbours: ev.Neighbours) -> Any:
    return case.prediction[::-1]


def read_owner(reading: extend.SuiteReading, owner: str) -> str:
    if not owner.strip():
        reading.fault(("owner",), "the owner has no name")
    return owner.strip()


OWNER = extend.Key("the team that answers for the suite", type=str, default="nobody", read=read_owner, decides="form")


def drop_nothing(collected: extend.Collected, scope: extend.RunScope) -> extend.Collected:
    return collected


def owners(reported: extend.Reported) -> Iterator[str]:
    for judged in reported.judged.suites:
        suite: extend.LoadedSuite = judged.suite
        yield suite.extra["owner"]


def note_owners(reported: extend.Reported, scope: extend.RunScope) -> extend.Reported:
    return structs.replace(reported, notes=[*reported.notes, *owners(reported)])


def choose(suites: extend.Suites, terms: extend.ChoiceTerms) -> extend.CaseChooser:
    raise NotImplementedError


def place(spec: extend.TargetSpec, folder: Path) -> extend.BatchTarget:
    raise NotImplementedError


def plan(runner: extend.CaseRunner, cases: Sequence[Any], keeper: extend.Keeper) -> extend.PlanReport:
    raise NotImplementedError


async def trace(job: extend.Job, ask: extend.Next) -> extend.Answers:
    return await ask(job)


def watch(suites: extend.Suites, keeper: extend.Keeper, post: Any) -> extend.RunWatcher:
    raise NotImplementedError


def send(report: extend.RunReport, suites: extend.Suites, *, style: str, texts: bool) -> str:
    return f"{len(report.suites)} suites sent as {style}"


TALLY = extend.ResultFormat(
    "tally", "tally 1", {"tallies": ("tallies.*",)}, (extend.Scores("", "=points", "points"),), case="name"
)


def register(registry: extend.Registry) -> None:
    registry.register(Length)
    registry.register_check(is_short)
    registry.register_source(Ledger)
    registry.register_mutator(ev.Mutator("reversed", "it is reversed", reverse, advice="exact_match"))
    registry.register_command("greet", add_arguments, help="greet")
    registry.register_gate_rule(GapGate)
    registry.register_key("owner", OWNER)
    registry.register_report_format(".table", write_table)
    registry.register_results_formats({"tally": TALLY})
    registry.register_importer("lines", import_lines, ["*.lines"])
    registry.register_export("nowhere", add_arguments, help="takes a report nowhere")
    registry.register_provider("echo", connect)
    registry.register_store("memory", open_store)
    registry.extend("chosen", choose)
    registry.extend("collected", drop_nothing)
    registry.extend("placed", place)
    registry.extend("planned", plan)
    registry.extend("read", lambda value: value)
    registry.extend("reported", note_owners)
    registry.extend("sent", send)
    registry.extend("traced", trace)
    registry.extend("watched", watch)


plugin: extend.Plugin = register
