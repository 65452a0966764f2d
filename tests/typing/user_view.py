"""The public interface as a user's type checker sees it. Checked by mypy, never run."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, assert_type

import pytest

import pytest_llmeval as ev
from pytest_llmeval import (
    MISSING,
    Case,
    CaseResult,
    CaseTable,
    Comparison,
    ConfusionMatrix,
    Count,
    Detail,
    Difference,
    ErrorBucket,
    Evaluator,
    EvidenceMatch,
    EvidenceMatcher,
    GroupResult,
    LabelTable,
    LlmevalError,
    Metric,
    MetricTable,
    MetricValue,
    Mutator,
    Neighbours,
    Observation,
    Panel,
    Parts,
    PredictionError,
    Registry,
    Result,
    SuiteError,
    Sums,
    Totals,
    compare,
    get_checks,
    get_evaluator,
    register_tokenizer,
    score,
)
from pytest_llmeval.data import CaseFile, FileSource
from pytest_llmeval.plugin._score_snapshot import ScoreSnapshot
from pytest_llmeval.qa import (
    EvalResult,
    QAPair,
    QuestionType,
    Sample,
    compute_metrics,
    load_dataset,
    run_eval,
    to_table,
    token_f1,
)


@dataclass(frozen=True)
class Length(Evaluator):
    """An evaluator of one's own."""

    name = "length"
    unit: str = "words"

    def describe(self) -> list[Metric]:
        return [Metric("length", high=None, higher_is_better=False)]

    def measure(self, case: Case) -> Observation:
        if case.expected is None:
            return Observation({}, undefined={"length": "no gold"})
        return Observation({"size": len(case.prediction.split()), "n": 1}, details={"unit": self.unit})

    def summarize(self, sums: Sums) -> Mapping[str, Any]:
        return {"length": sums["size"] / sums["n"]}

    def error_buckets(self) -> list[ErrorBucket]:
        return [ErrorBucket("too_long", "length", above=20)]

    def tables(self) -> list[MetricTable | LabelTable | ConfusionMatrix | CaseTable]:
        rows = [(("all",), ("length", Count("n")))]
        return [
            MetricTable("Length", ("cases", "length", "n"), rows),
            LabelTable("By label", "label", {"length": "length[label]"}),
            ConfusionMatrix("Confusion", labels=("short", "long")),
            CaseTable("Cases", {"length": "length", "unit": Detail("unit")}),
        ]

    def check(self, case: Case) -> Iterable[str]:
        if not isinstance(case.expected, str):
            yield "expected text"


@dataclass(frozen=True)
class Lines(FileSource):
    """A source of one's own."""

    format = "lines"
    strip: bool = True

    def read(self, file: CaseFile) -> None:
        for number, line in enumerate(file.path.read_text(encoding="utf-8").splitlines(), 1):
            if line:
                file.add(Case(str(number), line.strip() if self.strip else line, line=number))
            else:
                file.faults.add(number, 1, "", "found an empty line, expected text")


def backwards(case: Case, near: Neighbours) -> Any:
    del near
    return case.prediction[::-1] if isinstance(case.prediction, str) else None


def count(options: Namespace) -> int:
    return len(options.file)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file")
    parser.set_defaults(run=count)


def pytest_llmeval_register(registry: Registry) -> None:
    assert_type(registry.register(Length), type[Length])
    registry.register("my_package.evaluators:Depth", name="depth")
    registry.register_source(Lines)
    assert_type(registry.register_mutator(Mutator("backwards", "it is written backwards", backwards)), Mutator)
    assert_type(registry.mutators, tuple[Mutator, ...])
    registry.register_command("count", add_arguments, help="count lines")


@pytest.fixture
def llmeval_target() -> Any:
    async def answer(question: str) -> str:
        return question

    return answer


@pytest.mark.llmeval("capitals.eval.yaml")
def test_capitals(eval_case: ev.Case, evaluators: Mapping[str, Evaluator]) -> None:
    assert_type(eval_case.id, str)
    assert_type(eval_case.score("Paris"), dict[str, float | None])
    assert_type(evaluators["text"].evaluate("Paris", "Paris"), dict[str, Any])


def test_digest(score_snapshot: ScoreSnapshot) -> None:
    score_snapshot.assert_match({"f1": 0.7, "loss": None}, tolerance=0.01, lower_is_better=("loss",))
    score_snapshot.assert_match({"rougeL": 1}, tolerance={"rougeL": {"relative": 0.05}})


def scoring() -> None:
    case = Case("paris", input="What?", expected="Paris", labels={"kind": "easy"})
    if case.prediction is MISSING:
        case = case.answered("It is Paris")
    assert_type(case, Case[str, str])
    assert_type(case.labels, Mapping[str, str])

    evaluator = get_evaluator("text", metrics=["f1"])
    assert_type(score(get_checks({"contains": "x"}, "is_json"), []), Result)
    assert_type(evaluator, Evaluator)
    assert_type(evaluator.evaluate("Paris", ["Paris", "paris"], text="context"), dict[str, Any])
    assert_type(evaluator.describe(), Sequence[Metric])

    result = score(evaluator, [case], group_by=["kind"], confidence=None)
    assert_type(result, Result)
    assert_type(result.metrics["f1"], MetricValue)
    assert_type(score(evaluator, [case], parts=Parts(answer="text"), on="contexts"), Result)
    panel = Panel({"named": "openai:a", "own": str}, "majority", min_judges=1)
    assert_type(score(evaluator, [case], judge=panel), Result)
    assert_type(case.parts, Mapping[str, Any])
    assert_type(result.metrics["f1"].value, float | None)
    assert_type(result.metrics["f1"].scored, int)
    assert_type(result.groups["kind"]["easy"], GroupResult)
    assert_type(result.cases[0], CaseResult)
    assert_type(result.cases[0].metrics["f1"], float | None)
    assert_type(result.cases[0].reason, str | None)
    assert_type(score(Length(unit="letters"), iter([case])).pass_rate, MetricValue)
    comparison = compare(result, result, confidence=0.9, method="bca", statistic="mean", cluster_by="kind")
    assert_type(comparison, Comparison)
    assert_type(comparison.metrics["length"], Difference)
    assert_type(comparison.metrics["length"].drop_interval, tuple[float, float] | None)
    register_tokenizer("commas", lambda text: text.split(","))


def citing() -> None:
    matcher = EvidenceMatcher(threshold=0.5, form="original", tokenizer="words", matching="original")
    cited = matcher.extract("According to the log, 5%.", [{"content": "Log", "url": ""}, "Chart"])
    assert_type(cited, list[str])
    found = matcher.match(cited, ["Log"])
    assert_type(found, EvidenceMatch)
    assert_type(found.precision, float)
    assert_type(found.missed, tuple[str, ...])
    assert_type(found.pairs[0].why, Literal["contains", "address", "host", "words"])


def adding_up(some: Sequence[Observation]) -> None:
    total = Totals.add_up(some) + Totals()
    assert_type(total, Totals)
    assert_type(total["n"], float)
    assert_type(Totals.from_json(total.to_json()), Totals)
    assert_type(Observation.from_json(some[0].to_json()), Observation)


def failing(path: Path) -> None:
    try:
        path.read_text(encoding="utf-8")
    except SuiteError as error:
        assert_type(error.faults[0].line, int)
    except (PredictionError, LlmevalError) as error:
        assert_type(error, PredictionError | LlmevalError)


class Notebook:
    """A memory of one's own."""

    def reset(self) -> None: ...


class Agent:
    """An agent of one's own."""

    memory = Notebook()

    def ingest_sample(self, sample: Sample) -> None: ...

    def answer(self, question: str) -> str:
        return question


def remembering() -> None:
    pair = QAPair("1", "When?", "May", QuestionType.TEMPORAL)
    results = run_eval([Sample("s", ["hello"], [pair])], Agent(), show_progress=False)
    assert_type(results, list[EvalResult])
    metrics = compute_metrics(results, [1.0, None], metrics=["f1"])
    assert_type(metrics, dict[str, Any])
    assert_type(to_table({"a": metrics}, "f1"), str)
    assert_type(load_dataset("locomo", "locomo10.json"), list[Sample])
    assert_type(token_f1("May", "May"), float)


declared = ev.suite(
    "declared",
    cases=ev.cases([{"id": "a", "question": "q", "answer": "b"}], input=["question"], expected="answer"),
    evaluators=[ev.fields(), ev.text(metrics=["f1"]), ev.judge(mode="continuous"), ev.narrative_characters()],
    checks=[ev.max_words(30), ev.not_(ev.contains("sorry")), ev.any_of(ev.judge("Is polite."), "is_json")],
    thresholds={"f1": 0.4},
    gates=["f1 >= 0.5", {"metric": "f1", "max_drop": 0.02}],
    snapshot=True,
)


@dataclass(frozen=True)
class Ask:
    """What is asked."""

    question: str


@dataclass(frozen=True)
class Reply:
    """What is expected."""

    total: int


@declared.test
async def test_declared(case: ev.Case[Ask, Reply]) -> None:
    assert_type(case.input.question, str)
    assert_type(case.expected.total, int)
    assert_type(case.score(case.expected), dict[str, float | None])


def test_answer(evaluate: ev.Evaluate) -> None:
    scored = evaluate.text("Paris", "Paris")
    assert_type(scored, ev.TestScored)
    assert_type(scored["f1"], float | None)
    assert_type(scored.wrong, list[str])


def shares(sums: Sums) -> dict[str, ev.FloatArray]:
    return {"share": sums["size"] / sums["n"]}


class Client:
    """A judge of one's own."""

    def complete(self, request: ev.JudgeRequest) -> str:
        return str(request)


async def polite(case: ev.Case[Ask, Reply]) -> bool:
    return "please" in case.input.question


by_value = ev.suite(
    "by_value",
    cases=[Case("a", input=Ask("q"), expected=Reply(1))],
    evaluators=[polite, ev.evaluator(polite, name="polite_too"), Length()],
    checks=[polite, ev.check(polite, "is_polite"), ev.all_of("is_json", polite)],
    target=ev.named(lambda question: Reply(len(question)), name="counts"),
    systems={"small": backwards, "large": {"python": backwards, "world": Notebook}},
    judge=Client(),
    conversation={"user": {"model": Client()}},
)


typed: ev.Suite[Ask, Reply] = ev.suite("typed", cases=[Case("a", input=Ask("q"), expected=Reply(1))])


@typed.evaluator
def total(case: ev.Case[Ask, Reply]) -> float:
    return case.expected.total - len(case.input.question)


@typed.check
def is_new(case: ev.Case[Ask, Reply]) -> bool:
    return not case.id


def reply(ask: Ask) -> Reply:
    return Reply(len(ask.question))


async def reply_in(ask: Ask, case: ev.Case[Ask, Reply]) -> Reply:
    return Reply(len(ask.question + case.id))


def of_types() -> None:
    both = ev.suite("both", cases=ev.cases([{}], input=Ask, expected=Reply))
    assert_type(both, ev.Suite[Ask, Reply])
    assert_type(ev.suite("one", cases=ev.cases([{}], input=Ask)), ev.Suite[Ask, Any])
    assert_type(ev.suite("other", cases=ev.cases([{}], expected=Reply)), ev.Suite[Any, Reply])
    assert_type(ev.suite("cases", cases=[Case("a", input=Ask("q"), expected=Reply(1))]), ev.Suite[Ask, Reply])
    assert_type(ev.suite("rows", cases=[{"id": "a"}]), ev.Suite[Any, Any])
    ev.cases([{}], id="n")
    typed.run(reply)
    typed.run(reply_in)
    typed.run(ev.named(reply, "short"))


def runner(suite: ev.Suite[Ask, Reply]) -> ev.SuiteResult:
    assert_type(suite, ev.Suite[Ask, Reply])
    return suite.run()


def in_a_notebook() -> None:
    assert_type(declared.run(str), ev.SuiteResult)
    assert_type(declared.to_yaml(), str)
    assert_type(ev.suite.from_file("capitals.eval.yaml").name, str)
    assert_type(ev.max_words(3), dict[str, Any])
    assert_type(score([get_evaluator("text"), get_checks({"empty": True})], []).to_dicts(), list[dict[str, Any]])


def judged_results() -> None:
    verdict = ev.gate([{"case": "a", "metric": "m", "score": 1}], "m >= 0.8", baseline="old.jsonl", undecided="pass")
    assert_type(verdict, ev.GateVerdict)
    assert_type(list(verdict.lines()), list[str])
