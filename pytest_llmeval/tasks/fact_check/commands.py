"""The command ``llmeval fact-check``: the result files of the original scripts, from a JSON report."""

__all__ = ("add_arguments", "analysis_of", "results_of")

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pytest_llmeval.cli.console import say, write_text
from pytest_llmeval.core.errors import Fault, SuiteError
from pytest_llmeval.judge.questions.replies import FLAGS
from pytest_llmeval.reports.json import to_json
from pytest_llmeval.reports.reading import read_report
from pytest_llmeval.tasks.fact_check.scores import EXPLANATION, HIGHEST_GRADE, OVERALL, defect

_RESULTS: Final = "enhanced_test_results.json"
_ANALYSIS: Final = "error_analysis.json"
_LISTS: Final = ("verdict_errors", "low_evidence_f1", "low_explanation_score")
_ACCURACY: Final = "verdict_accuracy"
_EVIDENCE: Final = ("evidence_precision", "evidence_recall", "evidence_f1")
_DETAILS: Final = (
    *("claim", "gold_verdict", "predicted_verdict", "justification", "confidence", "unparsed"),
    *("matched_evidence", "missed_evidence", "unmatched_citations", "explanation_defects", "explanation_reasoning"),
)
_DESCRIPTION: Final = (
    f"Write {_RESULTS}, with all metrics and the results of each claim, and {_ANALYSIS}, with the claims of its three "
    "lists. Explanation scores are in points there, 0 to 100."
)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the action."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    export = actions.add_parser("export", help="write the result files of the original", description=_DESCRIPTION)
    export.add_argument("report", type=Path, help="JSON report of a run")
    export.add_argument("-o", "--output", type=Path, default=Path(), metavar="FOLDER", help="default: this folder")
    export.add_argument("--suite", metavar="NAME", help="the suite, if the report has several: NAME or NAME[SYSTEM]")
    export.set_defaults(run=_export)


def _export(options: Namespace) -> int:
    data = to_json(read_report(options.report))
    suite = _chosen(data["suites"], options.suite, str(options.report))
    for name, content in ((_RESULTS, results_of(suite)), (_ANALYSIS, analysis_of(suite))):
        path = options.output / name
        write_text(path, [json.dumps(content, ensure_ascii=False, indent=2) + "\n"])
        say([f"wrote {path}"])
    return 0


def _chosen(suites: Sequence[Mapping[str, Any]], name: str | None, file: str) -> Mapping[str, Any]:
    """Return the suite of fact checks with a name, or the only one.

    Raises:
        SuiteError: There is none, or several.
    """
    checks = [each for each in suites if _ACCURACY in each["metrics"]]
    chosen = [each for each in checks if name in (None, each["suite"])]
    if len(chosen) == 1:
        return chosen[0]
    known = ", ".join(str(each["suite"]) for each in checks) or "none"
    wanted = "one suite with fact checks" if name is None else f"the suite {name!r}"
    raise SuiteError(
        [Fault(file, 0, 0, "", f"found the suites with fact checks: {known}; expected {wanted} (--suite)")]
    )


def results_of(suite: Mapping[str, Any]) -> dict[str, Any]:
    """Return metrics and results of a suite of a JSON report, in the manner of ``enhanced_test_results.json``.

    Explanation scores are in points; a score that does not exist is null.
    """
    metrics = {name: value["value"] for name, value in suite["metrics"].items() if name != EXPLANATION}
    explained = suite["metrics"].get(EXPLANATION, {}).get("value")
    counts = suite["counts"]
    return {
        "total_tests": counts["total"],
        "successful_tests": sum(_ACCURACY in case["metrics"] for case in suite["cases"]),
        "metrics": {**metrics, EXPLANATION: _points(explained)},
        "results": list(map(_result, suite["cases"])),
    }


def analysis_of(suite: Mapping[str, Any]) -> dict[str, Any]:
    """Return the claims of each list of ``error_analysis.json``."""
    listed = {each["bucket"]: each["cases"] for each in suite.get("error_buckets", ())}
    results = {case["id"]: _result(case) for case in suite["cases"]}
    return {name: [results[key] for key in listed.get(name, ())] for name in _LISTS}


def _result(case: Mapping[str, Any]) -> dict[str, Any]:
    metrics = case["metrics"]
    details: Mapping[str, Any] = next((each for each in case["details"].values() if "predicted_verdict" in each), {})
    shown = {name: details[name] for name in _DETAILS if name in details}
    right = metrics.get(_ACCURACY)
    errors = {flag: bool(found) for flag in FLAGS if (found := metrics.get(defect(flag))) is not None}
    return {
        "id": case["id"],
        **shown,
        "verdict_correct": None if right is None else right == 1,
        **{name: metrics.get(name) for name in _EVIDENCE},
        EXPLANATION: _points(metrics.get(EXPLANATION)),
        "explanation_errors": errors,
        OVERALL: metrics.get(OVERALL),
        **({"error": case["reason"]} if case.get("reason") else {}),
    }


def _points(share: float | None) -> float | None:
    return None if share is None else share * HIGHEST_GRADE
