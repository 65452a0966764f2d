"""Values and results that tests start from: scores, runs, judgements, shards, histories.

``python tests/builders.py > docs/images/history.svg`` draws the history that the documentation shows.
"""

import asyncio
import gzip
import json
import math
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

from pytest_llmeval import (
    Case,
    Evaluator,
    JudgedEvaluator,
    JudgeError,
    Metric,
    Observation,
    Reads,
    Result,
    score,
)
from pytest_llmeval.baselines import History, ScoreFile, SnapshotMode
from pytest_llmeval.baselines._comparable import Comparable, EvaluatorPrint
from pytest_llmeval.baselines._scores import Approval, ApprovedScore, Cases, SuiteScores
from pytest_llmeval.core import CaseRecord, FloatArray, GateResult, LlmevalError, Sums
from pytest_llmeval.gates import ChangeGate, Gate, GateEvidence, LimitGate
from pytest_llmeval.gates._gate import PERCENTILES, VALUE
from pytest_llmeval.gates._rules import RULES, gate_of_mapping
from pytest_llmeval.judges import JudgeRequest, Message, Mode, Question, StoredJudgement, Usage, Verdict
from pytest_llmeval.judges._stored_judgement import components, judgement_key
from pytest_llmeval.numbers import CaseStatistics, RunPairing
from pytest_llmeval.reports import Point, Timeline
from pytest_llmeval.run import Checkout, Reported, ResultOptions, RunRecord, RunTerms, Shard, SuitePart, finish_run
from pytest_llmeval.run._checkout import print_suite, versions
from pytest_llmeval.run._execute import execute
from pytest_llmeval.run._job import CaseAnswer
from pytest_llmeval.run._run_record import Item, ItemResult
from pytest_llmeval.run._shards import Origin, SuiteVariant
from pytest_llmeval.suites import LoadedSuite, SuiteKey
from pytest_llmeval.tasks.memory_qa import EvalResult, QuestionType
from pytest_llmeval.workbench._history import history_svg


@dataclass(frozen=True)
class Length(Evaluator):
    """Counts letters; a prediction that is no text is malformed."""

    name = "length"
    error: Exception | None = None

    def describe(self) -> Sequence[Metric]:
        return [Metric("length", high=None)]

    def measure(self, case: Case) -> Observation:
        if self.error is not None:
            raise self.error
        if case.expected is None:
            return Observation({}, undefined={"length": "no gold"})
        if not isinstance(case.prediction, str):
            return Observation({"letters": 0}, malformed=f"found {case.prediction!r}, expected text")
        return Observation({"letters": len(case.prediction)})

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        return {"length": sums["letters"]}


def length_suite(*cases: Case, path: Path = Path("/root/s.eval.yaml"), **more: Any) -> LoadedSuite:
    """Return a suite of cases; `more` are its other attributes."""
    return LoadedSuite(
        path.name.partition(".")[0], path, **{"evaluators": {"length": Length()}, "cases": cases, **more}
    )


def key_of(suite: LoadedSuite, *, test: str = "", variant: str = "") -> SuiteKey:
    """Return what results of a suite are gathered under, in a run whose root is the folder of the suite."""
    return SuiteKey(str(suite.path), suite.path.name, test, variant)


@dataclass(frozen=True)
class Answers(Evaluator):
    """Case scores as given: ``score`` and its opposite ``loss``, of which less is better; an error where asked."""

    name = "answers"
    version = "1"
    signed: str = ""

    def describe(self) -> Sequence[Metric]:
        return [Metric("score", signature=self.signed), Metric("loss", higher_is_better=False)]

    def measure(self, case: Case) -> Observation:
        if case.prediction is None:
            return Observation({}, undefined={"score": "no gold", "loss": "no gold"})
        if case.prediction == "error":
            raise ValueError(case.prediction)
        return Observation({"score": case.prediction, "n": 1})

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        share = sums["score"] / sums["n"]
        return {"score": share, "loss": 1 - share}


def run(scores: Sequence[Any], labels: Sequence[str] = (), *, start: int = 0, signed: str = "") -> Result:
    cases = [
        Case(f"c{number + start:03}", prediction=each, labels={"talk": labels[number]} if labels else {})
        for number, each in enumerate(scores)
    ]
    return score(Answers(signed), cases, confidence=None)


def noisy(size: int, seed: int, shift: float = 0.0) -> list[float]:
    rng = np.random.default_rng(seed)
    return [float(each) for each in np.clip(rng.normal(0.6 - shift, 0.2, size), 0, 1)]


def pairing(here: Result, there: Result) -> RunPairing:
    return RunPairing(CaseStatistics.exact(here.records), CaseStatistics.exact(there.records), here.evaluators)


def judge(gate: ChangeGate, here: Result, there: Result, **said: str) -> GateResult:
    return GateEvidence.judge_together([gate.examine(pairing(here, there), **said)])[0]


def gate(max_drop: float = 0.0, *, rule: str = "significant_drop", **others: Any) -> ChangeGate:
    rules: list[Any] = [each for each in RULES if each.tags == ("max_drop",) and each.rule == rule]
    made: ChangeGate = rules[0](**{"metric": "score", "max_drop": max_drop, **others})
    return made


def parse_gate(text: str) -> LimitGate:
    """The limit of a text."""
    gate = LimitGate.from_text(text)
    assert gate is not None, text
    return gate


def gate_of(entry: Mapping[str, Any]) -> Any:
    """The gate of a mapping form whose types are right."""
    return gate_of_mapping(entry, lambda kind, values: kind(**values))


def subjects_of(rule: type[Gate], metric: str = "f1") -> list[str]:
    """A metric in each statistic that a rule understands; of percentiles, one."""
    percentiles = [statistic for statistic in ("p10", *PERCENTILES) if statistic in rule.statistics]
    named = [statistic for statistic in rule.statistics if statistic not in PERCENTILES]
    statistics = [*named, *percentiles[:1]]
    return [metric if statistic == VALUE else f"{statistic}({metric})" for statistic in statistics]


def binary(worse: int, better: int, same: int) -> tuple[Result, Result]:
    """A run and its baseline."""
    return run([0] * worse + [1] * (better + same)), run([1] * worse + [0] * better + [1] * same)


def result(number: int, kind: str = "single_hop", answer: str = "In Paris", sample: str = "s") -> EvalResult:
    return EvalResult(sample, f"q{number}", QuestionType(kind), f"Where? {number}", "Paris", answer)


RESULTS = [result(number) for number in range(5)]


class Scripted:
    """A judge that answers by the number that ends the question, and counts."""

    def __init__(self, replies: Sequence[str | BaseException]) -> None:
        self.replies = replies
        self.prompts: list[str] = []

    def __call__(self, request: JudgeRequest) -> str:
        prompt = str(request)
        self.prompts.append(prompt)
        reply = self.replies[int(prompt.partition("Where? ")[2][0])]
        if isinstance(reply, BaseException):
            raise reply
        return reply


def scored(*scores: float) -> list[str | BaseException]:
    return [json.dumps({"score": score}) for score in scores]


def kept(path: Path) -> dict[str, float]:
    """Return the scores of a file, without the digests of its keys."""
    return {key.partition("#")[0]: score for key, score in json.loads(path.read_text(encoding="utf-8")).items()}


def plain(request: JudgeRequest) -> str:
    del request
    return "yes"


async def awaited(request: JudgeRequest) -> str:
    await asyncio.sleep(0)
    return plain(request)


MODE = Mode(
    name="strict",
    version="1",
    instructions={"en": "Grade the answer.", "zh": "评分。"},
    fields=("question", "answer"),
    scale=(0.0, 1.0),
    read=lambda text: Verdict(float(text)),
)


def question(answer: str = "Paris", *, language: str = "en", **mode: Any) -> Question:
    return Question(replace(MODE, **mode), {"question": "Capital of France?", "answer": answer}, language)


def messages(asked: Question) -> tuple[Message, ...]:
    return (
        Message("system", asked.mode.instructions[asked.language]),
        Message("user", repr(sorted(asked.texts.items()))),
    )


def question_key(
    asked: Question, *, model: str = "openai:a", parameters: Mapping[str, Any] | None = None, repeat: int = 0
) -> str:
    return judgement_key(asked, messages(asked), model=model, parameters=parameters or {}, repeat=repeat)


def entry(
    answer: str = "Paris",
    *,
    case: str = "paris",
    reply: str = "0.5",
    asked: Question | None = None,
    model: str = "openai:a",
    parameters: Mapping[str, Any] | None = None,
    repeat: int = 0,
) -> StoredJudgement:
    asked = asked or question(answer)
    made_of = components(asked, messages(asked), model=model, parameters=parameters or {}, repeat=repeat)
    key = question_key(asked, model=model, parameters=parameters, repeat=repeat)
    return StoredJudgement(key, case, made_of, reply, 0.5, Usage(30, 4), 0.25, 0.001)


LINK = Mode("link", "1", {"en": "Say a number."}, ("answer", "link"), (0, 10), MODE.read)


@dataclass(frozen=True)
class Chain(JudgedEvaluator):
    """Asks about one link after the other, as long as the judge gives a number above 0.

    Attributes:
        links: What is asked, in order; a link that is ``broken`` cannot be asked about.
        asks_again: As in `Mode`.
    """

    name = "chain"
    reads = Reads("answer")

    links: tuple[str, ...] = ("first", "second", "third")
    asks_again: bool = False

    def describe(self) -> Sequence[Metric]:
        return [Metric("links", high=None)]

    def questions(self, case: Case) -> Sequence[Question]:
        return self._about(case, 0)

    def follow_up(self, case: Case, verdicts: Sequence[Verdict | JudgeError]) -> Sequence[Question]:
        last = verdicts[-1]
        return self._about(case, len(verdicts)) if isinstance(last, Verdict) and last.score > 0 else []

    def _about(self, case: Case, place: int) -> Sequence[Question]:
        if place >= len(self.links):
            return []
        if self.links[place] == "broken":
            raise ValueError("no such link")
        mode = replace(LINK, asks_again=self.asks_again)
        return [Question(mode, {"answer": str(case.prediction), "link": self.links[place]})]

    def measure_judged(self, case: Case, verdicts: Sequence[Verdict | JudgeError]) -> Observation:
        del case
        for each in verdicts:
            if isinstance(each, JudgeError):
                raise each
        said = [each.score for each in verdicts if isinstance(each, Verdict)]
        return Observation({"links": sum(said), "n": 1}, {"said": said})

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        return {"links": sums["links"] / sums["n"]}


@dataclass
class KnownSuites:
    """Implements `pytest_llmeval.run._stages.Suites` for suites at hand; the file of any other one has gone."""

    root: Path
    suites: Mapping[Path, LoadedSuite]
    known: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def read(self, path: Path) -> LoadedSuite:
        if path not in self.suites:
            raise LlmevalError("the file has gone")
        return self.suites[path]

    def judges(self, key: SuiteKey, suite: LoadedSuite) -> Mapping[str, Mapping[str, str]]:
        del key, suite
        return self.known


def recorded(suite: LoadedSuite, *records: CaseRecord, into: RunRecord | None = None, **key: str) -> RunRecord:
    """Return the record of a run, or add to one, in which each case of a suite was an item that passed."""
    run = RunRecord(started=1_767_312_000.0, seconds=1.5) if into is None else into
    for each in records:
        part = SuitePart(key_of(suite, **key), suite.total, [each])
        run.items[Item(suite.path.name, f"{suite.path.name}::{key}::{each.id}")] = ItemResult(part, "passed", 0.5)
    return run


def finished(
    run: RunRecord,
    suites: Iterable[LoadedSuite],
    root: Path = Path("/root"),
    *,
    recordings: Any = None,
    update: bool = False,
    **terms: Any,
) -> Reported:
    """Judge, write and report a run."""
    known = KnownSuites(root, {each.path: each for each in suites})
    return finish_run(run, RunTerms(**terms), known, SnapshotMode(update=update), recordings=recordings)


CASES = [
    {"id": word, "expected": "a", "prediction": "a" if word != "wrong" else "b"}
    for word in ["p", "q", "r", "s", "wrong"]
]
NAME = "s.eval.json"


def write_suite(folder: Path, **top: Any) -> Path:
    """Write a suite of five cases, of which one is wrong."""
    path = folder / NAME
    content = {"evaluators": [{"text": {"metrics": ["exact_match"]}}], "gates": ["exact_match >= 0.8"], **top}
    path.write_text(json.dumps({"cases": CASES, **content}), encoding="utf-8")
    return path


def origin(root: Path, shard: str = "", **more: Any) -> Origin:
    """Return what a run in a folder is made of."""
    suite = Checkout(root, {}).read(root / NAME)
    index, _, count = shard.partition("/")
    part = Shard(int(index), int(count)) if shard else None
    known: dict[str, Any] = {
        "shard": shard,
        "commit": None,
        "versions": versions(),
        "options": ResultOptions(),
        "require_gates": False,
        "collected": "sha256:0",
        "items": len(CASES),
        "imports": [],
        "suites": [print_suite(suite, root, [], part)],
        "variants": [SuiteVariant(SuiteKey(NAME, NAME))],
    }
    return Origin(**{**known, **more})


def ran(root: Path, shard: str = "", only: Collection[str] = (), **more: Any) -> RunRecord:
    """Return the record of a run of a shard, or of chosen cases; the others are deselected."""
    suite = Checkout(root, {}).read(root / NAME)
    index, _, count = (shard or "1/1").partition("/")
    part = Shard(int(index), int(count))
    items = {}
    deselected = set()
    for case in suite.cases:
        nodeid = f"{NAME}::{case.id}"
        if part.has(NAME, f"case {case.id}") and (not only or case.id in only):
            key = SuiteKey(str(suite.path), NAME)
            made = SuitePart.from_executions(key, suite.total, [execute(suite, CaseAnswer(case))])
            items[Item(NAME, nodeid)] = ItemResult(made, "passed", 0.25)
        else:
            deselected.add(nodeid)
    return RunRecord(started=1e9, seconds=2.5, items=items, deselected=deselected, selected={str(suite.path)}, **more)


def forged(data: bytes, number: int, change: Callable[[Any], object]) -> bytes:
    """Change a line of a shard file, and make its end agree."""
    lines = gzip.decompress(data).splitlines(keepends=True)[:-1]
    content = json.loads(lines[number])
    change(content)
    lines[number] = json.dumps(content).encode() + b"\n"
    return packed(lines)


def packed(lines: Collection[bytes]) -> bytes:
    """Return the file of a shard that has these lines, and an end that agrees."""
    text = b"".join(lines)
    end = {"lines": len(lines), "sha256": sha256(text).hexdigest()}
    return gzip.compress(text + json.dumps(end).encode() + b"\n")


def recorded_case(name: str, outcome: str = "passed", **scores: float | None) -> dict[str, Any]:
    """Return a case of a report."""
    return {"id": name, "outcome": outcome, "metrics": scores, "details": {}, "reason": None, "duration_s": 0.1}


def recorded_suite(cases: Sequence[Mapping[str, Any]], **more: Any) -> dict[str, Any]:
    """Return a suite of a report whose metrics are those of its cases."""
    nothing = {"value": None, "mean": None, "low": None, "high": None}
    counts = {"scored": len(cases), "undefined": 0, "errored": 0, "missing": 0, "signature": ""}
    outcomes = [case["outcome"] for case in cases]
    return {
        "suite": "s",
        "path": "s.eval.yaml",
        "counts": {"total": len(cases), **{each: outcomes.count(each) for each in dict.fromkeys(outcomes)}},
        "metrics": {name: {**nothing, **counts} for case in cases for name in case["metrics"]},
        "groups": {},
        "gates": [],
        "cases": list(cases),
        **more,
    }


def write_run(path: Path, *suites: Mapping[str, Any], day: int = 2, **more: Any) -> Path:
    """Write the report of a run in January."""
    run = {"started_at": f"2026-01-{day:02d}T10:00:00+00:00", "duration_s": 1.0, "version": "1", "commit": "c" * 40}
    path.write_text(json.dumps({"schema_version": 1, "run": run, "suites": suites, **more}), encoding="utf-8")
    return path


def run_line(day: int, value: float | None = 0.5, **more: Any) -> str:
    """Return a line of a run of ``s.eval.yaml`` in January."""
    data = {
        "time": f"2026-01-{day:02d}T10:00:00+00:00",
        "commit": f"{day:02d}" * 20,
        "path": "s.eval.yaml",
        "test": "",
        "variant": "",
        "cases": 4,
        "values": {"f1": value},
        "intervals": {},
        "gates": {},
        "basis": {},
        **more,
    }
    return json.dumps(data)


def note_runs(root: Path, *lines: str) -> None:
    """Write the history of a folder."""
    path = History.path_in(root)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"))


def write_approvals(root: Path, approvals: Sequence[Mapping[str, Any]], variant: str = "") -> Path:
    """Write the score file of ``s.eval.yaml`` with these approvals; return its path."""
    history = tuple(Approval(each["time"], each.get("commit"), each["values"]) for each in approvals)
    value = history[-1].values["f1"]
    score = ApprovedScore(value, 0.25, 0.75, 4, 0, 0, 0)
    comparable = Comparable("c", "d", "", {"text": EvaluatorPrint("text", "1")})
    scores = SuiteScores("s.eval.yaml", "", variant, Cases(4, "x"), comparable, {"f1": score}, history=history)
    path = ScoreFile.of_suite(SuiteKey(str(root / "s.eval.yaml"), "s.eval.yaml", variant=variant)).path
    path.parent.mkdir(exist_ok=True)
    path.write_text(scores.text, encoding="utf-8")
    return path


def picture() -> str:
    """Return the picture of a month: an approved rise, another judge, and two runs whose gate failed."""
    points = []
    for day in range(1, 29):
        level = 0.74 + 0.08 * (day >= 9) - 0.16 * (day in (20, 21))
        value, rate = level + 0.02 * math.sin(day * day), min(1.0, level + 0.14 + 0.01 * math.cos(day * day))
        points.append(
            Point(
                datetime(2026, 10, day, 9, tzinfo=UTC),
                f"{day:02d}" * 20,
                {"judge_score": round(value, 4), "pass_rate": round(rate, 2)},
                {"judge_score": (value - 0.06, value + 0.05)},
                {"judge_score >= 0.7": "failed" if value < 0.7 else "passed"},
                basis={"judge": "new" if day >= 15 else "old"},
                approved=day in (1, 9, 15),
            )
        )
    timeline = Timeline("support.eval.yaml", "", points)
    return history_svg([timeline], {timeline.title: timeline.metrics})


if __name__ == "__main__":
    sys.stdout.write(picture())
