"""The tables of the formats of other runners.

A path is written with dots; ``*`` is each item of a list or object, ``|`` separates alternatives, of which the first
that is present counts. A path that begins with ``$.`` is of the whole file, with the ``*`` of the result; ``@1`` is the
key at the second ``*`` of the result, ``@`` the last key of the score itself, ``.`` the score; ``=name`` is a text.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from math import inf
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from pytest_llmeval.core import excerpt
from pytest_llmeval.data import json_text
from pytest_llmeval.exchange._ledger import as_mapping, as_text, first_text, fit, fit_items, value_at, values_at
from pytest_llmeval.exchange.results import cell_number

FileResult: TypeAlias = Mapping[str, Any]
Kind: TypeAlias = Literal["number", "verdict", "either"]


class Scores(NamedTuple):
    """The paths of one kind of scores in the results of a runner's file.

    Attributes:
        at: Path of each below the result; empty: the result itself.
        metric: Its name.
        value: Its value.
        kind: A number, a verdict (true or false), or either.
        error: Why there is no value.
        reason: Why it is left out, for those that are.
        signature: How it is computed.
        without: Pattern of what the tool adds to the name.
    """

    at: str = ""
    metric: str = "@"
    value: str = ""
    kind: Kind = "number"
    error: str = ""
    reason: str = ""
    signature: str = ""
    without: str = ""


def _unchanged(data: Any) -> Any:
    """The data of a format of results that needs no change before its table applies."""
    return data


class ResultFormat(NamedTuple):
    """The table of a format of results: where a runner's file has cases, scores and errors.

    Attributes:
        written_by: What writes it, for people.
        read: What the table was made from: name, version, date.
        shapes: Paths that a file of the format has, as of `fits`, to the paths of its results.
        scores: Where a result has its scores.
        only: What a result has, as of `fits`, that is none of another kind.
        case: Id of the case.
        content: What identifies a case that has no id, such as its input. Positions are no ids.
        position: Pattern of ids that a tool makes of positions.
        suite: Name of the suite.
        repeat: Number of the repeat; without it, results of the same case and system are counted in their order.
        first: The number of the first repeat.
        apart: What results of the same case have in which they are no repeats, such as the metric of their only score.
        system: Parts of the name of the system; those after the first only where they differ in the file.
        error: Why a result has no scores at all.
        cost: Of the answer, in US dollars.
        latency: Of the answer.
        unit: Seconds that `latency` counts in.
        labels: Object of labels.
        expected: The expected answer.
        output: The answer.
        again: The tool's own command that repeats what errored; ``{files}`` is the files of results.
        codes: Text to score, ``abstained``, ``error`` or ``skipped``. The key ``None`` means null, infinity
            what is not finite.
        beside: Name to a path whose value `adapt` gets with the result.
        adapt: What a path cannot say: returns a result with the values where the table says; ``None`` if it is none.
        prepare: What the file as a whole needs before paths apply, such as a table whose columns are metrics.
        expects: Path to the only value that is understood, if there is one.
        refuses: Paths of a file of the tool that has no results of cases, to why.
    """

    written_by: str
    read: str
    shapes: Mapping[str, tuple[str, ...]]
    scores: tuple[Scores, ...]
    only: str = ""
    case: str = ""
    content: str = ""
    position: str = ""
    suite: str = ""
    repeat: str = ""
    first: int = 1
    apart: str = ""
    system: tuple[str, ...] = ()
    error: str = "error"
    cost: str = ""
    latency: str = ""
    unit: float = 1.0
    labels: str = ""
    expected: str = ""
    output: str = ""
    again: str = ""
    codes: Mapping[Any, float | str] = {}
    beside: Mapping[str, str] = {}
    adapt: Callable[[FileResult], FileResult | None] = _unchanged
    prepare: Callable[[Any], Any] = _unchanged
    expects: Mapping[str, Any] = {}
    refuses: Mapping[str, str] = {}

    @property
    def adapts(self) -> bool:
        """Whether results are not yet as the table says."""
        return bool(self.beside) or self.adapt is not _unchanged


_LONGEST_REASON: Final = 300


def reason_text(value: Any) -> str:
    """The reason of an error in a runner's results, as one line; of a traceback, the exception.

    Empty if there is none.
    """
    if value in (None, "", {}, [], False):
        return ""
    if isinstance(value, Mapping):
        value = next((value[key] for key in ("message", "exception_message", "error") if value.get(key)), value)
    text = json_text(value).strip()
    before, traceback, _ = text.partition("Traceback (most recent call last)")
    text = before.strip() or text.splitlines()[-1] if traceback else text
    return excerpt(" ".join(text.split()) or "unknown", _LONGEST_REASON)


def _promptfoo(item: FileResult) -> FileResult:
    """Adapt a promptfoo result: mark failed calls and graders, which have the score 0, as ``failures``.

    Code of an assertion that raises an error has failed as a grader.
    """
    own = value_at(item, "response.error")
    failures: dict[Any, FileResult] = {}
    for component in values_at(item, "gradingResult.componentResults.*"):
        raised = _PROMPTFOO_RAISED.match(as_text(value_at(component, "reason")))
        if raised or value_at(component, "metadata.graderError") is True:
            metrics = fit_items(str, values_at(component, "assertion.metric"))
            failures |= dict.fromkeys(("score", "success", *metrics), component)
    scores = item.get("namedScores")
    if failures and (known := as_mapping(scores)):
        scores = {key: score for key, score in known.items() if key not in failures}
    return {
        **{key: value for key, value in item.items() if key not in failures},
        "error": item.get("error") or own or "error" if own or item.get("failureReason") == _PROMPTFOO_ERROR else None,
        "namedScores": scores,
        "failures": [{"metric": metric, "error": failure.get("reason")} for metric, failure in failures.items()],
    }


_PROMPTFOO_ERROR: Final = 2
_PROMPTFOO_RAISED: Final = re.compile(
    "(Custom function threw|Webhook|Moderation API) error:|(Python code execution|Ruby code execution|Search rubric "
    "evaluation) failed:"
)
"""Beginnings of the reasons of assertions that could not be evaluated."""


def _pydantic_evals(item: FileResult) -> FileResult:
    """Adapt a pydantic-evals result: read the number of the repeat from its name, ``capital [2/3]``."""
    match = _REPEATED.fullmatch(first_text(item, "name"))
    return {**item, "repeat": int(match[1])} if match and item.get("source_case_name") else item


_REPEATED: Final = re.compile(r".* \[(\d{1,9})/\d+\]", re.DOTALL)


def _inspect(item: FileResult) -> FileResult:
    """Adapt an inspect_ai sample: a score for each value of a scorer, as the number that the tool computes with."""
    scores = item.get("scores")
    if not isinstance(scores, Mapping):  # of one scorer, in logs of 2024
        return {**item, "scores": {"score": score}} if (score := item.get("score")) is not None else item
    flat: dict[str, Any] = {}
    for name, score in scores.items():
        value = value_at(score, "value")
        inner = value if isinstance(value, Mapping) else dict(enumerate(value)) if isinstance(value, list) else {}
        named = {f"{name}.{key}": part for key, part in inner.items()} or {name: value}
        flat |= {key: _inspect_score(score, part) for key, part in named.items()}
    return {**item, "scores": flat}


def _inspect_score(score: Any, value: Any) -> Any:
    """A score of inspect_ai as the number that the tool computes with; other words are no score."""
    if not isinstance(score, Mapping):
        return score
    if not isinstance(value, str) or value in INSPECT_CODES:
        return {**score, "value": value}
    number = cell_number({"yes": "1", "no": "0"}.get(value.lower(), value))
    return {**score, "value": number} if number != value else {"value": None, "explanation": f"the score is {value!r}"}


INSPECT_CODES: Final = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Letters that Inspect writes for scores, to the numbers that it computes with."""


_OPENAI_ID: Final = r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$"


def _braintrust(item: FileResult) -> FileResult | None:
    """Adapt a Braintrust result: leave out spans inside of results."""
    inside = item.get("is_root") is False or item.get("span_parents")
    return None if inside else item


def _langsmith(item: FileResult) -> FileResult:
    """Adapt a LangSmith result: mark failed evaluators, and leave out values that are words."""
    results = value_at(item, "evaluation_results.results")
    if not isinstance(results, list):
        return item
    scores = []
    for result in results:
        if value_at(result, "extra.error"):
            scores.append({**result, "error": result.get("comment") or "the evaluator failed"})
        elif value_at(result, "score") is not None or value_at(result, "value") is None:
            scores.append(result)
    return {**item, "evaluation_results": {"results": scores}}


def _plugin_eval(item: FileResult) -> FileResult:
    """Adapt a plugin eval's run: tell failed runs, and judges not asked, from runs and graders that did not pass.

    Graders that are not part of the score are left out. A judge that could not be asked says so in place of its votes.
    """
    judged = ("llm", "baseline")
    judges = [
        value_at(definition, "name")
        for definition in values_at(item, "definitions.*")
        if value_at(definition, "type") in judged
    ]
    graders = []
    for grader in values_at(item, "graders.*"):
        reason = value_at(grader, "explanation")
        voted = not isinstance(reason, str) or reason.startswith("judge votes") or "judgeVotes" in grader
        if value_at(grader, "scored") is not False:
            graders.append(grader if voted or grader.get("name") not in judges else {**grader, "error": reason})
    unasked = next(filter(None, (value_at(grader, "error") for grader in graders)), None)
    skipped = "paid graders were skipped at the cost ceiling" if item.get("skippedPaidGraders") else None
    error = item.get("error") or ("aborted" if item.get("aborted") else None) or unasked or skipped
    return {**item, "error": error, **({"graders": graders} if graders else {})}


def _skill_creator(item: FileResult) -> FileResult:
    """Adapt a skill-creator run: tell ungraded runs (pass rate 0, no expectation) from failed ones."""
    total = value_at(item, "result.total")
    ungraded = total == 0 and total is not False
    return {**item, "error": "the run was not graded: it has no expectation"} if ungraded else item


def _vally(item: FileResult) -> FileResult:
    """Adapt a Vally trial: one that did not end well is an error, with any grade."""
    status = item.get("status")
    failed = status if status not in ("success", None) else None
    return {**item, "error": item.get("error") or (f"status {json_text(failed)}" if failed else None)}


def _harbor(item: FileResult) -> FileResult:
    """Adapt a Harbor trial: a reward that says nothing is no reward of 0."""
    exceptions = [*values_at(item, "exception_info"), *values_at(item, "step_results.*.exception_info")]
    first = next(filter(None, exceptions), None)
    if first is None or item.get("reward_valid") is True:
        return {**item, "error": None}
    kind = value_at(first, "exception_type")
    return {**item, "error": f"{kind}: {reason_text(first)}" if kind else reason_text(first)}


def _junit(data: Any) -> Any:
    """Prepare a JUnit file: join class and name. A run before a rerun that shows no reason is an error."""
    if not hasattr(data["junit"], "iter"):
        return data
    tests = [
        run
        for suite in data["junit"].iter("testsuite")
        for case in suite.findall("testcase")
        for run in _junit_runs(suite.get("name"), case)
    ]
    for this, following in pairwise(tests):
        again = all(this[key] == following[key] for key in ("suite", "case"))
        if again and this["status"] == "passed" and not this["attempt"]:  # pytest-rerunfailures, where it ran again
            this |= {"status": "error", "message": "it ran again, and the file does not say how this run ended"}
    return {"junit": tests}


def _junit_runs(suite: str | None, case: Any) -> Iterator[dict[str, Any]]:
    """Yield how a JUnit test ended: first its earlier attempts, which some runners list inside of it."""
    base = {"suite": suite, "case": ".".join(filter(None, (case.get("classname"), case.get("name"))))}
    for child in case:
        if child.tag in _ATTEMPTS:
            yield {**base, "status": _ATTEMPTS[child.tag], "message": child.get("message"), "attempt": True}
    end = next((child for child in case if child.tag in _ENDS), None)
    idle = "skipped" if case.get("status") in ("notrun", "disabled") else "passed"
    status = _ENDS[end.tag] if end is not None else idle
    message = (end.get("message") or end.text or status) if end is not None else None
    time = cell_number((case.get("time") or "").replace(",", ""))
    yield {**base, "status": status, "message": message, "time": time, "attempt": False}


_ATTEMPTS: Final = {"flakyFailure": "failed", "flakyError": "error", "rerunFailure": "failed", "rerunError": "error"}
"""Elements of Surefire for attempts that a test was given before, to how they ended."""
_ENDS: Final = {"failure": "failed", "error": "error", "skipped": "skipped"}


def _columns(rows: Any, metrics: re.Pattern[str]) -> Any:
    """Gather the metrics of a results table: columns with numbers, or nothing at all where every score failed."""
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        return rows
    matches = map(metrics.fullmatch, dict.fromkeys(str(key) for row in rows for key in row))
    names = {match[0]: match["metric"] for match in matches if match}
    cells = {name: [cell_number(row.get(name)) for row in rows] for name in names}
    numeric = [name for name in names if any(not isinstance(cell, str) for cell in cells[name])]
    return [
        {
            **row,
            "scores": {names[name]: cells[name][number] for name in numeric},
            # LangSmith has each input in a column of its own.
            "inputs": row.get("inputs") or {key: value for key, value in row.items() if str(key).startswith("inputs.")},
            "execution_time": cell_number(row.get("execution_time")),
        }
        for number, row in enumerate(rows)
    ]


def _ctrf(item: FileResult) -> FileResult:
    """Adapt a CTRF test, named by its suites. Earlier attempts are repeats; a pass after unlisted ones is an error.

    So is a failure of a fixture, which pytest-json-ctrf counts as failed; a test that is still to be written is none.
    """
    test = as_mapping(item.get("test")) or item
    suite, name = test.get("suite"), first_text(test, "name")
    parents = fit_items(str, suite) if isinstance(suite, list) else [suite] if suite else []
    named = {"case": " > ".join(map(str, (*parents, name)))} if name else {}
    status = _CTRF_STATUS.get(first_text(item, "rawStatus"), item.get("status"))
    listed = values_at(item, "retryAttempts.*")
    if status == "passed" and (fit(int, item.get("retries")) or 0) > len(listed):
        status, named["message"] = "other", "it ran again, and the file does not say how earlier runs ended"
    return {**item, "labels": test.get("labels"), "status": status, **named}


_CTRF_STATUS: Final = {"setup_failed": "error", "teardown_failed": "error", "todo": "pending"}
"""Words of pytest-json-ctrf and jest-ctrf-json-reporter to what they mean here."""

_STATUS: Final[Mapping[str, float | str]] = {
    "passed": 1.0,
    "failed": 0.0,
    "error": "error",
    "skipped": "skipped",
    "pending": "skipped",
    "other": "error",
}
_RAGAS_METRICS: Final = re.compile(
    "(?!(?:id|user_input|question|response|answer|reference|ground_truth|rubrics|multi_responses|persona_name"
    "|query_style|query_length|synthesizer_name|reference_(tool_calls|topics)|((retrieved|reference)_)?contexts"
    "|[a-z]+_context_ids)$)(?P<metric>.+)",
    re.DOTALL,
)
"""Columns that are not those of data sets."""
_LANGSMITH_METRICS: Final = re.compile(r"feedback\.(?P<metric>.+)", re.DOTALL)

FORMATS: Final[Mapping[str, ResultFormat]] = {
    "promptfoo": ResultFormat(
        "`promptfoo eval -o FILE.json` or `.jsonl`",
        "promptfoo 0.121.20, files of November 2026",
        {
            "results.results results.prompts": ("results.results.*",),
            "*.promptIdx *.testCase": ("*",),
        },
        (
            Scores("namedScores.*"),
            Scores("", "=score", "score"),
            Scores("", "=success", "success", "verdict"),
            Scores("failures.*", "metric", "none", error="error"),
        ),
        case="testCase.description",
        content="vars | prompt.raw",
        position=r"Row #\d+",
        suite="$.config.description",
        system=("provider.label | provider.id | provider", "prompt.label | prompt.raw"),
        cost="cost",
        latency="latencyMs",
        unit=0.001,
        labels="testCase.metadata",
        expected="testCase.assert.0.value",
        output="response.output",
        again="promptfoo eval --filter-errors-only {files}",
        adapt=_promptfoo,
    ),
    "pydantic-evals": ResultFormat(
        "`EvaluationReport`, and its JSON by `EvaluationReportAdapter.dump_json`",
        "pydantic-evals 2.62.0, files of November 2026",
        {"cases failures analyses": ("cases.*", "failures.*"), "cases.*.assertions cases.*.scores": ("cases.*",)},
        (
            Scores("scores.*", "@", "value", "either", signature="evaluator_version"),
            Scores("assertions.*", "@", "value", "verdict", signature="evaluator_version"),
            Scores("evaluator_failures.*", "name", "none", error="error_message"),
        ),
        case="source_case_name | name",
        content="inputs",
        position=r"Case \d+",
        suite="$.dataset_name",
        repeat="repeat",
        error="error_message",
        cost="metrics.cost",
        latency="task_duration",
        labels="metadata",
        expected="expected_output",
        output="output",
        adapt=_pydantic_evals,
    ),
    "deepeval": ResultFormat(
        "`EvaluationResult` of `evaluate`, its `model_dump_json`, and `test_run_*.json` of `DEEPEVAL_RESULTS_FOLDER`",
        "deepeval 4.3.1, files of November 2026",
        {
            "test_results": ("test_results.*",),
            "testCases testPassed": ("testCases.*", "conversationalTestCases.*"),
            "testRunData.testCases": ("testRunData.testCases.*", "testRunData.conversationalTestCases.*"),
        },
        (
            Scores("metrics_data.*", "name", "score", error="error", signature="evaluation_model"),
            Scores("metricsData.*", "name", "score", error="error", signature="evaluationModel"),
        ),
        case="name",
        content="input | turns",
        position=r"(conversational_)?test_case_\d+",
        latency="runDuration",
        labels="metadata",
        expected="expected_output | expectedOutput",
        output="actual_output | actualOutput",
    ),
    "inspect-ai": ResultFormat(
        "Inspect: logs `.eval` and `.json`, and `EvalLog`",
        "inspect_ai 0.3.285, files of May 2025 to November 2026",
        {"eval.task eval.model samples": ("samples.*",), "eval.task eval.model status": ("samples.*",)},
        (Scores("scores.*", "@", "value", "either", reason="explanation"),),
        case="id",
        content="input",
        position=r"\d+",
        suite="$.eval.task",
        repeat="epoch",
        system=("$.eval.model",),
        cost="total_cost",
        latency="total_time",
        labels="metadata",
        expected="target",
        output="output.completion | output.choices.0.message.content",
        again="inspect eval-retry {files}",
        codes={**INSPECT_CODES, inf: "abstained"},
        adapt=_inspect,
    ),
    "openai-evals": ResultFormat(
        "OpenAI Evals: the output items of a run, as the API lists them (JSON), or one per line",
        "API reference of OpenAI, object eval.run.output_item, November 2026",
        {
            "data.*.object=eval.run.output_item": ("data.*",),
            "*.object=eval.run.output_item": ("*",),
        },
        (Scores("results.*", "name", "score", "either", error="sample.error", without=_OPENAI_ID),),
        case="datasource_item.id | datasource_item.item.id",
        content="datasource_item.item | datasource_item | datasource_item_id",
        suite="eval_id",
        system=("sample.model",),
        error="sample.error",
        output="sample.output.0.content",
        expects={"has_more": False},  # true: a page of a longer list
    ),
    "braintrust": ResultFormat(
        "Braintrust: `EvalResultWithSummary` of `Eval`, and events of an experiment (JSON or JSONL)",
        "braintrust 0.48.1, files of November 2026; API reference, experiment fetch",
        {
            "summary results.*.scores": ("results.*",),
            "events.*.root_span_id": ("events.*",),
            "*.root_span_id *.span_id": ("*",),
        },
        (Scores("scores.*", "@", "", "either"), Scores("metadata.scorer_errors.*", "@", "none", error=".")),
        case="dataset_record_id | origin.id",
        content="input",
        error="exc_info | error",
        cost="metrics.estimated_cost",
        latency="metrics.duration",
        labels="metadata",
        codes={None: "abstained"},
        expected="expected",
        output="output",
        adapt=_braintrust,
    ),
    "langsmith": ResultFormat(
        "LangSmith: `ExperimentResults` of `evaluate`, its rows as JSON, and its `to_pandas()`",
        "langsmith 0.15.1, files of November 2026",
        {"*.run *.example *.evaluation_results": ("*",), "*.example_id *.execution_time": ("*",)},
        (
            Scores("evaluation_results.results.*", "key", "score", "either", error="error"),
            Scores("scores.*", "@", "", "either"),
        ),
        case="example.id | run.reference_example_id | example_id",
        content="inputs | run.inputs",
        error="run.error | error",
        cost="run.total_cost",
        latency="execution_time",
        labels="example.metadata",
        expected="example.outputs",
        output="run.outputs",
        adapt=_langsmith,
        prepare=lambda rows: _columns(rows, _LANGSMITH_METRICS),
    ),
    "ragas": ResultFormat(
        "ragas: `EvaluationResult` of `evaluate`, and its `to_pandas()` as CSV, JSON, JSONL or Parquet",
        "ragas 0.4.3, files of November 2026",
        {"*.user_input": ("*",), "*.question *.contexts": ("*",)},
        (Scores("scores.*", "@", ""),),
        case="id",
        content="user_input | question",
        expected="reference | ground_truth",
        output="response | answer",
        prepare=lambda rows: _columns(rows, _RAGAS_METRICS),
    ),
    "claude-plugin-eval": ResultFormat(
        "Claude Code: `claude plugin eval`, `aggregate-result.json`",
        "format `schemaVersion` 1 of Claude Code 2.1.269, documentation of October 2026",
        {"schemaVersion suite cases": ("cases.*.arms.*.*",), "schemaVersion cases.*.arms": ("cases.*.arms.*.*",)},
        (
            Scores("", "=score", "score"),
            Scores("", "=passed", "passed", "verdict"),
            Scores("graders.*", "name", "passed", "verdict", error="error"),
        ),
        case="$.cases.*.name",
        suite="$.suite.plugins.0.name",
        system=("@1",),
        cost="costUsd",
        latency="durationSeconds",
        beside={"definitions": "$.cases.*.graders"},
        adapt=_plugin_eval,
        expects={"schemaVersion": 1},
    ),
    "skill-creator": ResultFormat(
        "skill-creator: `benchmark.json` of its benchmark mode",
        "anthropics/skills, skill-creator/scripts/aggregate_benchmark.py, commit 12726c43 of 2026",
        {"runs.*.configuration runs.*.eval_id": ("runs.*",), "runs run_summary": ("runs.*",)},
        (Scores("", "=expectation_pass_rate", "result.pass_rate"),),
        case="eval_id",
        suite="$.metadata.skill_name",
        repeat="run_number",
        system=("configuration",),
        latency="result.time_seconds",
        adapt=_skill_creator,
    ),
    "vally": ResultFormat(
        "Vally: `results.jsonl` of `vally eval` and `vally experiment run`",
        "Vally 0.18.0, its reference pages and recorded trials, October 2026; trials of 0.16.0",
        {"*.type=trial-result": ("*",)},
        (
            Scores("", "=score", "gradeResult.score"),
            Scores("", "=passed", "gradeResult.passed", "verdict"),
            Scores("gradeResult.details.*", "name", "score", "either"),
        ),
        only="type=trial-result",
        case="stimulus.name | stimulus",
        repeat="trialIndex",
        first=0,
        suite="evalName",
        system=("variant", "model | trajectory.metadata.model"),
        latency="durationMs",
        unit=0.001,
        adapt=_vally,
    ),
    "harbor": ResultFormat(
        "Harbor: `result.json` of a trial, a job folder, or a list of trials",
        "harbor 0.26.0, its models of results, November 2026",
        {
            "trial_name task_name": ("",),
            "trial_results.*.task_name": ("trial_results.*",),
            "*.trial_name *.task_name": ("*",),
        },
        (Scores("verifier_result.rewards.*"),),
        case="task_name",
        suite="source",
        system=("agent_info.name", "agent_info.model_info.name"),
        cost="agent_result.cost_usd",
        adapt=_harbor,
        refuses={"stats.evals n_total_trials": "totals of a job: pass its folder, or the result.json of its trials"},
    ),
    "junit": ResultFormat(
        "JUnit XML of any test runner",
        "files of pytest 9, and the schema of Jenkins",
        {"junit": ("junit.*",)},
        (Scores("", "=passed", "status", "verdict", reason="message"),),
        case="case",
        suite="suite",
        latency="time",
        output="message",
        again="pytest --last-failed",
        codes=_STATUS,
        prepare=_junit,
    ),
    "ctrf": ResultFormat(
        "CTRF: JSON of any test runner",
        "CTRF 1.0.0, its schema and examples",
        {"results.tool results.tests": ("results.tests.*.retryAttempts.*", "results.tests.*")},
        (Scores("", "=passed", "status", "verdict", reason="message"),),
        case="case",
        suite="$.results.tool.name",
        output="message",
        latency="duration",
        unit=0.001,
        labels="labels",
        codes=_STATUS,
        beside={"test": "$.results.tests.*"},
        adapt=_ctrf,
    ),
    "every-eval-ever": ResultFormat(
        "Every Eval Ever: instance-level JSONL",
        "schema instance_level_eval 0.3.0",
        {"*.evaluation_id *.sample_id *.evaluation": ("*",)},
        (Scores("", "evaluation_result_id | =score", "evaluation.score"),),
        case="sample_id",
        content="input.raw",
        suite="evaluation_name",
        expected="input.reference",
        output="output.raw",
        apart="evaluation_result_id",
        system=("model_id",),
        latency="performance.latency_ms",
        unit=0.001,
        refuses={
            "evaluation_results schema_version": "averages without cases: pass the instance-level JSONL beside it"
        },
    ),
    "scores": ResultFormat(
        "rows with an id and an object of scores or metrics, as scripts write them (JSON or JSONL)",
        "own scripts",
        {
            f"{row}{scores} {row}{case}": (row.rstrip("."),)
            for row in ("*.", "")
            for scores in ("scores", "metrics")
            for case in ("id", "case")
        },
        (Scores("scores.*", "@", "", "either"), Scores("metrics.*", "@", "", "either")),
        case="id | case",
        content="input | question",
        suite="suite",
        repeat="repeat",
        system=("system | model",),
        cost="cost",
        latency="latency",
        labels="labels",
        expected="expected",
        output="output | answer",
    ),
}
