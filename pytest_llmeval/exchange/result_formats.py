"""The tables of the formats of other runners: where their files hold cases, repeats, systems, scores and errors.

A path is written with dots; ``*`` is each item of a list or object, ``|`` separates alternatives, of which the first
that is present counts. A path that begins with ``$.`` is of the whole file, with the ``*`` of the result; ``@1`` is the
key at the second ``*`` of the result, ``@`` the last key of the score itself, ``.`` the score; ``=name`` is a text.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from pytest_llmeval.core.wording import excerpt
from pytest_llmeval.data.formats.base import json_text

FileResult: TypeAlias = Mapping[str, Any]
Kind: TypeAlias = Literal["number", "verdict", "either"]


class Scores(NamedTuple):
    """Where a result has scores of one kind.

    Attributes:
        at: Path of each below the result; empty: the result itself.
        metric: Its name.
        value: Its value.
        kind: A number, a verdict (true or false), or either.
        error: Why there is no value.
        reason: Why it is left out, for those that are.
        signature: How it is computed.
    """

    at: str = ""
    metric: str = "@"
    value: str = ""
    kind: Kind = "number"
    error: str = ""
    reason: str = ""
    signature: str = ""


class ResultFormat(NamedTuple):
    """The table of a format.

    Attributes:
        written_by: What writes it, for people.
        read: What the table was made from: name, version, date.
        shapes: Paths that a file of the format has, separated by spaces, ``path=text`` with a value; to the paths of
            its results.
        scores: Where a result has its scores.
        case: Id of the case.
        content: What identifies a case that has no id, such as its input. Positions are no ids.
        position: Pattern of ids that a tool makes of positions.
        suite: Name of the suite.
        repeat: Number of the repeat; without it, results of the same case and system are counted in their order.
        first: The number of the first repeat.
        system: Parts of the name of the system; those after the first only where they differ in the file.
        error: Why a result has no scores at all.
        cost: Of the answer, in US dollars.
        latency: Of the answer.
        unit: Seconds that `latency` counts in.
        labels: Object of labels.
        codes: Text to score, ``abstained`` or ``error``.
        null: What a score that is null is.
        nan: What a score that is not finite is.
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
    case: str = ""
    content: str = ""
    position: str = ""
    suite: str = ""
    repeat: str = ""
    first: int = 1
    system: tuple[str, ...] = ()
    error: str = ""
    cost: str = ""
    latency: str = ""
    unit: float = 1.0
    labels: str = ""
    codes: Mapping[str, float | str] = {}
    null: str = "error"
    nan: str = "error"
    beside: Mapping[str, str] = {}
    adapt: Callable[[FileResult], FileResult | None] | None = None
    prepare: Callable[[Any], Any] | None = None
    expects: Mapping[str, Any] = {}
    refuses: Mapping[str, str] = {}


_LONGEST_REASON: Final = 300


def reason_text(value: Any) -> str:
    """Return a reason, a text or an object with a message, as one line; of a traceback, what was raised."""
    if isinstance(value, Mapping):
        value = next((value[key] for key in ("message", "exception_message", "error") if value.get(key)), value)
    text = json_text(value).strip()
    before, traceback, _ = text.partition("Traceback (most recent call last)")
    text = before.strip() or text.splitlines()[-1] if traceback else text
    return excerpt(" ".join(text.split()) or "unknown", _LONGEST_REASON)


def _promptfoo(item: FileResult) -> FileResult:
    """Tell failed calls and graders (``failures``), for which promptfoo writes 0, from assertions that failed."""
    response, graded = item.get("response"), item.get("gradingResult")
    own = response.get("error") if isinstance(response, Mapping) else None
    failed = item.get("failureReason") == _PROMPTFOO_ERROR or own
    failures: dict[str, FileResult] = {}
    for each in _objects(graded.get("componentResults")) if isinstance(graded, Mapping) else ():
        metadata, assertion = each.get("metadata"), each.get("assertion")
        if isinstance(metadata, Mapping) and metadata.get("graderError") is True:
            metric = assertion.get("metric") if isinstance(assertion, Mapping) else None
            failures |= dict.fromkeys(("score", "success", *([metric] if isinstance(metric, str) else [])), each)
    scores = item.get("namedScores")
    left = {key: each for key, each in item.items() if key not in failures}
    return {
        **left,
        "error": item.get("error") or own or "error" if failed else None,
        "namedScores": {key: each for key, each in scores.items() if key not in failures}
        if isinstance(scores, Mapping) and failures
        else scores,
        "failures": [{"metric": metric, "error": each.get("reason")} for metric, each in failures.items()],
    }


_PROMPTFOO_ERROR: Final = 2


def _pydantic_evals(item: FileResult) -> FileResult:
    """Read the number of the repeat from the name: ``capital [2/3]``."""
    match = _REPEATED.fullmatch(name) if isinstance(name := item.get("name"), str) else None
    return {**item, "repeat": int(match[1])} if match and item.get("source_case_name") else item


_REPEATED: Final = re.compile(r".* \[(\d{1,9})/\d+\]", re.DOTALL)


def _inspect(item: FileResult) -> FileResult:
    """Make a score for each value of a scorer that gives several, and a number of what is one for the tool."""
    scores = item.get("scores")
    if not isinstance(scores, Mapping):  # of one scorer, in logs of 2024
        return {**item, "scores": {"score": score}} if (score := item.get("score")) is not None else item
    flat: dict[str, Any] = {}
    for name, score in scores.items():
        if not isinstance(score, Mapping):
            flat[name] = score
            continue
        value = score.get("value")
        inner = value if isinstance(value, Mapping) else dict(enumerate(value)) if isinstance(value, list) else {}
        flat |= {f"{name}.{key}": _inspect_score(score, each) for key, each in inner.items()} or {
            name: _inspect_score(score, value)
        }
    return {**item, "scores": flat}


def _inspect_score(score: FileResult, value: Any) -> FileResult:
    """Return a score whose value is a number where the tool computes with one; other words are no score."""
    if not isinstance(value, str) or value in INSPECT_CODES:
        return {**score, "value": value}
    number = cell_number({"yes": "1", "no": "0"}.get(value.lower(), value))
    return {**score, "value": number} if number != value else {"value": None, "explanation": f"the score is {value!r}"}


INSPECT_CODES: Final = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Letters that Inspect writes for scores, to the numbers that it computes with."""


def _openai(item: FileResult) -> FileResult:
    """Leave out what the service adds to the names of graders."""
    results = item.get("results")
    graders = [
        {**each, "name": _GRADER_ID.sub("", each["name"])}
        if isinstance(each, Mapping) and isinstance(each.get("name"), str)
        else each
        for each in (results if isinstance(results, list) else ())
    ]
    return {**item, "results": graders}


_GRADER_ID: Final = re.compile(r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


def _braintrust(item: FileResult) -> FileResult | None:
    """Leave out spans inside of results."""
    inside = item.get("is_root") is False or item.get("span_parents")
    return None if inside else item


def _langsmith(item: FileResult) -> FileResult:
    """Mark failed evaluators, and leave out values that are words."""
    held = item.get("evaluation_results")
    results = held.get("results") if isinstance(held, Mapping) else None
    scores = []
    for each in results if isinstance(results, list) else ():
        extra = each.get("extra") if isinstance(each, Mapping) else None
        if isinstance(extra, Mapping) and extra.get("error"):
            scores.append({**each, "error": each.get("comment") or "the evaluator failed"})
        elif not isinstance(each, Mapping) or each.get("score") is not None or each.get("value") is None:
            scores.append(each)
    return {**item, "evaluation_results": {"results": scores}} if isinstance(results, list) else item


def _plugin_eval(item: FileResult) -> FileResult:
    """Tell runs that failed, and judges that could not be asked, from runs and graders that did not pass.

    Graders that are not part of the score are left out. A judge that could not be asked says so in place of its votes.
    """
    judges = [each.get("name") for each in _objects(item.get("definitions")) if each.get("type") in ("llm", "baseline")]
    graders = []
    for each in item["graders"] if isinstance(item.get("graders"), list) else ():
        reason = each.get("explanation") if isinstance(each, Mapping) else None
        voted = not isinstance(reason, str) or reason.startswith("judge votes") or "judgeVotes" in each
        if not isinstance(each, Mapping) or each.get("scored") is not False:
            graders.append(each if voted or each.get("name") not in judges else {**each, "error": reason})
    unasked = next((each["error"] for each in _objects(graders) if each.get("error")), None)
    skipped = "paid graders were skipped at the cost ceiling" if item.get("skippedPaidGraders") else None
    error = item.get("error") or ("aborted" if item.get("aborted") else None) or unasked or skipped
    return {**item, "error": error, **({"graders": graders} if graders else {})}


def _objects(value: Any) -> list[FileResult]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def _skill_creator(item: FileResult) -> FileResult:
    """Tell runs that nobody graded, which have a pass rate of 0 and no expectation, from runs that failed."""
    result = item.get("result")
    ungraded = isinstance(result, Mapping) and result.get("total") == 0 and not isinstance(result["total"], bool)
    return {**item, "error": "the run was not graded: it has no expectation"} if ungraded else item


def _vally(item: FileResult) -> FileResult | None:
    """Leave out lines that are no trials; a trial that did not end well is an error with any grade."""
    if item.get("type") != "trial-result":
        return None
    status = item.get("status")
    failed = status if status not in ("success", None) else None
    return {**item, "error": item.get("error") or (f"status {json_text(failed)}" if failed else None)}


def _harbor(item: FileResult) -> FileResult:
    """Tell trials whose reward says nothing from trials with a reward of 0."""
    steps = item.get("step_results")
    inner = (
        [each.get("exception_info") for each in steps if isinstance(each, Mapping)] if isinstance(steps, list) else []
    )
    exceptions = [each for each in (item.get("exception_info"), *inner) if each]
    if not exceptions or item.get("reward_valid") is True:
        return {**item, "error": None}
    first = exceptions[0]
    kind = first.get("exception_type") if isinstance(first, Mapping) else None
    return {**item, "error": f"{kind}: {reason_text(first)}" if kind else reason_text(first)}


def _junit(item: FileResult) -> FileResult:
    """Join class and name of a test. A run that was followed by a rerun, and shows no reason, is an error."""
    name = ".".join(each for each in (item.get("classname"), item.get("name")) if isinstance(each, str) and each)
    return {**item, "case": name}


def _columns(rows: Any, metrics: Callable[[str], str]) -> Any:
    """Gather the metrics of rows: columns that have numbers, or nothing at all where every score failed."""
    if not isinstance(rows, list) or not all(isinstance(each, Mapping) for each in rows):
        return rows
    names = [
        name for name in dict.fromkeys(key for row in rows for key in row) if isinstance(name, str) and metrics(name)
    ]
    cells = {name: [cell_number(row.get(name)) for row in rows] for name in names}
    numeric = [name for name in names if any(not isinstance(each, str) for each in cells[name])]
    return [
        {
            **row,
            "scores": {metrics(name): cells[name][number] for name in numeric},
            "inputs": row.get("inputs") or _inputs(row),
        }
        for number, row in enumerate(rows)
    ]


def _inputs(row: FileResult) -> FileResult:
    """Return the inputs of a row of LangSmith, which are columns of their own."""
    return {key: value for key, value in row.items() if key.startswith("inputs.")}


def cell_number(value: Any) -> Any:
    """Return the number, or the truth, that a cell of a table says; another value, and other text, unchanged."""
    if not isinstance(value, str):
        return value
    lowered = value.strip().lower()
    if lowered in ("", "none", "null", "true", "false"):
        return {"true": True, "false": False}.get(lowered)
    return float(lowered) if _NUMBER.fullmatch(lowered) else value


_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|nan|[+-]?inf(?:inity)?")


def _ragas_columns(data: Any) -> Any:
    return _columns(data, lambda name: "" if _RAGAS_DATA.fullmatch(name) else name)


def _langsmith_columns(data: Any) -> Any:
    if isinstance(data, list) and any(isinstance(each, Mapping) and "evaluation_results" in each for each in data):
        return data
    rows = _columns(data, lambda name: name.removeprefix("feedback.") if name.startswith("feedback.") else "")
    return [
        {**each, "execution_time": cell_number(each.get("execution_time"))} if isinstance(each, Mapping) else each
        for each in rows
    ]


def _ctrf(item: FileResult) -> FileResult:
    """Name a test by its suites; earlier attempts are repeats of the test, and come first."""
    test = item["test"] if isinstance(item.get("test"), Mapping) else item
    suite, name = test.get("suite"), test.get("name")
    parents = [each for each in suite if isinstance(each, str)] if isinstance(suite, list) else [suite] if suite else []
    named = {"case": " > ".join(map(str, (*parents, name)))} if isinstance(name, str) and name else {}
    return {**item, "labels": test.get("labels"), **named}


_STATUS: Final[Mapping[str, float | str]] = {
    "passed": 1.0,
    "failed": 0.0,
    "error": "error",
    "skipped": "abstained",
    "pending": "abstained",
    "other": "error",
}
_RAGAS_DATA: Final = re.compile(
    "id|user_input|question|response|answer|reference|ground_truth|rubrics|multi_responses|persona_name|query_style"
    "|query_length|synthesizer_name|reference_(tool_calls|topics)|((retrieved|reference)_)?contexts|[a-z]+_context_ids"
)
"""Columns of data sets, which are no metrics."""

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
        suite="$.config.description",
        system=("provider.label | provider.id | provider", "prompt.label | prompt.raw"),
        error="error",
        cost="cost",
        latency="latencyMs",
        unit=0.001,
        labels="testCase.metadata",
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
        error="error",
        cost="total_cost",
        latency="total_time",
        labels="metadata",
        codes=INSPECT_CODES,
        nan="abstained",
        adapt=_inspect,
    ),
    "openai-evals": ResultFormat(
        "OpenAI Evals: the output items of a run, as the API lists them (JSON), or one per line",
        "API reference of OpenAI, object eval.run.output_item, November 2026",
        {
            "data.*.object=eval.run.output_item": ("data.*",),
            "*.object=eval.run.output_item": ("*",),
        },
        (Scores("results.*", "name", "score", "either", error="sample.error"),),
        case="datasource_item.id | datasource_item.item.id",
        content="datasource_item.item | datasource_item | datasource_item_id",
        suite="eval_id",
        system=("sample.model",),
        error="sample.error",
        adapt=_openai,
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
        null="abstained",
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
        adapt=_langsmith,
        prepare=_langsmith_columns,
    ),
    "ragas": ResultFormat(
        "ragas: `EvaluationResult` of `evaluate`, and its `to_pandas()` as CSV, JSON, JSONL or Parquet",
        "ragas 0.4.3, files of November 2026",
        {"*.user_input": ("*",), "*.question *.contexts": ("*",)},
        (Scores("scores.*", "@", ""),),
        case="id",
        content="user_input | question",
        prepare=_ragas_columns,
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
        error="error",
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
        error="error",
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
        case="stimulus.name | stimulus",
        repeat="trialIndex",
        first=0,
        suite="evalName",
        system=("variant", "model | trajectory.metadata.model"),
        error="error",
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
        error="error",
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
        codes=_STATUS,
        adapt=_junit,
    ),
    "ctrf": ResultFormat(
        "CTRF: JSON of any test runner",
        "CTRF 1.0.0, its schema and examples",
        {"results.tool results.tests": ("results.tests.*.retryAttempts.*", "results.tests.*")},
        (Scores("", "=passed", "status", "verdict", reason="message"),),
        case="case",
        suite="$.results.tool.name",
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
        system=("model_id",),
        error="error",
        latency="performance.latency_ms",
        unit=0.001,
        refuses={
            "evaluation_results schema_version": "averages without cases: pass the instance-level JSONL beside it"
        },
    ),
}
