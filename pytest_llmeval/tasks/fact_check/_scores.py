"""Counts of one claim, scores from summed counts, and the command ``llmeval fact-check``."""

import json
import math
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pytest_llmeval.cli import CommandResult
from pytest_llmeval.core import ConfusionMatrix, Fault, FloatArray, LabelKey, Observation, SuiteError, Sums, excerpt
from pytest_llmeval.data import OutputFile
from pytest_llmeval.evaluators import Defects, Margins, precision, ratio
from pytest_llmeval.reports import RunReport, published
from pytest_llmeval.tasks.fact_check._evidence import EvidenceMatch, MatchedPair
from pytest_llmeval.tasks.fact_check._target import Answer, Claim

if TYPE_CHECKING:
    from pytest_llmeval.judges import Verdict


OTHER: Final = "(other)"
"""The predicted label of an unknown verdict."""


def mean(sums: Sums, name: str) -> FloatArray:
    """The mean of a fact-check score over the cases that have it (counted as ``name.n``); NaN if none has."""
    return ratio(sums[name], sums[f"{name}.n"])


def verdict_scores(sums: Sums, verdicts: Sequence[str], *, every: bool = False) -> dict[str, FloatArray]:
    """Accuracy of fact-check verdicts, macro F1 over `verdicts`, accuracy by gold verdict, and confusion cells.

    A verdict that is neither gold nor predicted takes no part in the macro average, or counts as 0 with `every`.
    All cells of a gold verdict are
    there, those that are also 0, so that a gate can ask for 0; they are NaN where no claim has that verdict.
    """
    import numpy as np

    keys = [key for verdict in verdicts if (key := LabelKey.of_value(verdict)) is not None]
    cells = ConfusionMatrix.read_cells(sums)
    margins = Margins.from_cells(cells, sums.length)
    macro_f1 = margins.only(keys).average("macro")["f1"]
    if every:
        macro_f1 = _macro_f1(margins, keys, sums.length)
    scores = {
        "verdict_accuracy": ratio(margins.hits.sum(axis=0), margins.gold.sum(axis=0)),
        "verdict_macro_f1": macro_f1,
    }
    for row, key in enumerate(margins.labels):
        if key in keys:
            scores[f"verdict_accuracy[{LabelKey(key).name}]"] = ratio(margins.hits[row], margins.gold[row])
            for predicted in (*keys, LabelKey.of_value(OTHER) or LabelKey.NONE):
                column = cells.get((key, predicted), np.zeros(sums.length))
                name = f"confusion[{LabelKey(key).name}->{LabelKey(predicted).name}]"
                scores[name] = np.where(margins.gold[row] == 0, np.nan, column)
    return scores


def _macro_f1(margins: Margins, keys: Sequence[str], length: int) -> FloatArray:
    """The mean F1 over all verdict labels; NaN if no claim has any."""
    import numpy as np

    total: FloatArray = np.zeros(length)
    for row, key in enumerate(margins.labels):
        if key in keys:
            total += np.nan_to_num(ratio(2 * margins.hits[row], margins.gold[row] + margins.predicted[row]))
    return np.where(margins.gold.sum(axis=0) > 0, total / len(keys), np.nan)


def evidence_scores(sums: Sums, verdicts: Sequence[str]) -> dict[str, FloatArray]:
    """Precision, recall and F1 of cited evidence: means over claims, F1 by gold verdict, and pooled ones.

    The pooled scores (``evidence_micro_...``) come from all citations and all sources: precision is matched citations
    by citations, recall matched sources by sources, F1 their harmonic mean.
    """
    import numpy as np

    scores = {f"evidence_{part}": mean(sums, f"evidence_{part}") for part in ("precision", "recall", "f1")}
    by_verdict = {verdict: mean(sums, f"evidence_f1[{verdict}]") for verdict in verdicts}
    columns = np.array(list(by_verdict.values()))
    scores["evidence_macro_f1"] = ratio(np.nansum(columns, axis=0), np.isfinite(columns).sum(axis=0))
    scores |= {f"evidence_f1[{verdict}]": column for verdict, column in by_verdict.items()}
    cited, gold = sums["cited"], sums["gold"]
    pooled_precision = precision(sums["cited.matched"], cited, gold)
    pooled_recall = ratio(sums["gold.matched"], gold)
    scores["evidence_micro_precision"] = pooled_precision
    scores["evidence_micro_recall"] = pooled_recall
    scores["evidence_micro_f1"] = _harmonic(pooled_precision, np.nan_to_num(pooled_recall))
    return scores


def _harmonic(left: FloatArray, right: FloatArray) -> FloatArray:
    """The F1 of evidence, 2lr / (l + r); 0 where both are 0, NaN where one is."""
    import numpy as np

    both = left + right
    return np.where(both == 0, 0.0, ratio(2 * left * right, both))


VERDICT_METRICS: Final = ("verdict_accuracy", "verdict_macro_f1")
_MICRO: Final = ("evidence_micro_precision", "evidence_micro_recall", "evidence_micro_f1")
EVIDENCE_METRICS: Final = ("evidence_precision", "evidence_recall", "evidence_f1", "evidence_macro_f1", *_MICRO)
EXPLANATION: Final = "explanation_score"
OVERALL: Final = "overall_score"
HIGHEST_GRADE: Final = 100.0


def defect(flag: str) -> str:
    """The name of the metric for a defect of explanations in fact checks."""
    return f"defect[{flag}]"


@dataclass
class Tally:
    """The observation of a fact-checked claim while its verdict, evidence and explanation are counted.

    Attributes:
        counts: As in an observation.
        undefined: The same.
        errored: The same.
        parts: The existing parts of the overall score.
    """

    counts: dict[str, float] = field(default_factory=dict)
    undefined: dict[str, str] = field(default_factory=dict)
    errored: dict[str, str] = field(default_factory=dict)
    parts: dict[str, float] = field(default_factory=dict)

    def verdict(self, gold: str | None, predicted: str | None) -> None:
        """Count a verdict; ``None`` means absent ground truth, or a prediction that is not a label."""
        if gold is None:
            self.undefined |= dict.fromkeys(VERDICT_METRICS, "no expected verdict")
            return
        self.counts[
            ConfusionMatrix.cell_name(
                *(LabelKey.of_value(label) or LabelKey.NONE for label in (gold, predicted or OTHER))
            )
        ] = 1
        self.parts["verdict"] = float(gold == predicted)

    def evidence(self, match: EvidenceMatch | None, verdict: str | None, why: str) -> None:
        """Count evidence of a claim with this gold verdict; a match of ``None`` is absent ground truth for a reason."""
        if match is None:
            self.undefined |= dict.fromkeys(EVIDENCE_METRICS, why)
            return
        f1 = match.f1
        scores = {"evidence_precision": match.precision, "evidence_recall": match.recall, "evidence_f1": f1}
        if verdict is None:
            self.undefined["evidence_macro_f1"] = "no expected verdict"
        else:
            scores[f"evidence_f1[{verdict}]"] = f1
        for name, value in scores.items():
            self.score(name, value)
        self.counts |= {
            "cited": len(match.cited),
            "gold": len(match.gold),
            "cited.matched": match.matched_cited,
            "gold.matched": match.matched_gold,
        }
        if not match.cited and not match.gold:
            self.undefined |= dict.fromkeys(_MICRO, "neither side has evidence")
        elif not match.gold:
            self.undefined["evidence_micro_recall"] = "no evidence is expected"
        self.parts["evidence"] = f1

    def explanation(self, verdict: "Verdict") -> None:
        """Count the judge's verdict on the explanation."""
        self.parts["explanation"] = verdict.score / HIGHEST_GRADE
        self.score(EXPLANATION, self.parts["explanation"])
        defects = Defects(verdict.details)
        self.counts |= defects.counts
        self.undefined |= defects.undefined

    def unexplained(self, why: str) -> None:
        """Count an explanation that a judge failed to grade: its defects are unknown as well."""
        self.errored |= {EXPLANATION: why} | dict.fromkeys(map(defect, Defects.FLAGS), f"no {EXPLANATION}")

    def overall(self, weights: Mapping[str, float], *, normalize: bool = True) -> None:
        """Count the weighted mean of the parts, or their weighted sum, if all that have a weight exist."""
        lacking = [name for name in weights if name not in self.parts]
        if "explanation" in lacking and EXPLANATION in self.errored:
            self.errored[OVERALL] = f"no {EXPLANATION}"
        elif lacking:
            self.undefined[OVERALL] = f"no score for the {' and the '.join(lacking)}"
        else:
            total = math.fsum(weight * self.parts[name] for name, weight in weights.items())
            self.score(OVERALL, total / math.fsum(weights.values()) if normalize else total)

    def score(self, name: str, value: float) -> None:
        """Count one score, to compute its mean."""
        self.counts |= {name: value, f"{name}.n": 1}

    def observation(self, details: Mapping[str, Any], malformed: str | None) -> Observation:
        """Return the observation."""
        return Observation(self.counts, details, self.undefined, malformed, self.errored)


_LISTED: Final = 20
_LONGEST: Final = 300
_LONGEST_JUSTIFICATION: Final = 2000


def answer_details(claim: Claim, answer: Answer) -> dict[str, Any]:
    """The claim, verdicts and justification of a fact check for the details of its case."""
    return {
        **({"claim": _short(claim.text)} if claim.text else {}),
        "gold_verdict": claim.verdict,
        "predicted_verdict": _short(answer.verdict) if isinstance(answer.verdict, str) else None,
        "justification": _short(answer.justification, _LONGEST_JUSTIFICATION),
        "unparsed": answer.unparsed,
        "confidence": _short(answer.confidence),
        **(_listed("evidence_sources", list(map(_source, answer.sources))) if answer.sources else {}),
        **({"note": answer.note} if answer.note else {}),
    }


def evidence_details(match: EvidenceMatch) -> dict[str, Any]:
    """The matched and missed sources and unmatched citations of a fact check, for its case's details.

    At most 20 of each are listed; ``..._count`` has the total of longer lists.
    """
    return {
        **_listed("matched_evidence", list(map(_pair, match.pairs))),
        **_listed("missed_evidence", list(map(_short, match.missed))),
        **_listed("unmatched_citations", list(map(_short, match.unmatched))),
    }


def explanation_details(verdict: "Verdict", flags: Iterable[str]) -> dict[str, Any]:
    """The judge's reasoning on a fact check's explanation, and the defects that it found."""
    defects = [flag for flag in flags if verdict.details.get(flag)]
    return {"explanation_defects": defects, "explanation_reasoning": verdict.reasoning}


def _source(source: Any) -> Any:
    """A listed source of a claim for the report: its text, or an object with the compared values."""
    if not isinstance(source, Mapping):
        return _short(str(source))
    return {key: _short(str(source[key])) for key in ("content", "url") if source.get(key)}


def _listed(name: str, items: Sequence[Any]) -> dict[str, Any]:
    """A fact-check case's sources for the report, cut to the first few, with the full number if some are cut."""
    more = {f"{name}_count": len(items)} if len(items) > _LISTED else {}
    return {name: list(items[:_LISTED])} | more


def _pair(pair: MatchedPair) -> dict[str, Any]:
    """A matched pair of cited and listed source for the details of a fact-check case."""
    detail: dict[str, Any] = {"cited": _short(pair.cited), "gold": _short(pair.gold), "why": pair.why}
    return detail if pair.overlap is None else {**detail, "overlap": pair.overlap}


def _short(text: str, longest: int = _LONGEST) -> str:
    """A source's text, cut for the details of a fact-check case."""
    return excerpt(text, longest, lines=True, count=True)


_FILES: Final = {
    "original": ("enhanced_test_results.json", "error_analysis.json"),
    "ours": ("fact_check_results.json", "fact_check_errors.json"),
}
"""Whose keys to the files with them: a file of one name has one form."""
_LISTS: Final = ("verdict_errors", "low_evidence_f1", "low_explanation_score")
_ACCURACY: Final = "verdict_accuracy"
_EVIDENCE: Final = ("evidence_precision", "evidence_recall", "evidence_f1")
_DETAILS: Final = (
    *("claim", "gold_verdict", "predicted_verdict", "justification", "confidence", "evidence_sources", "unparsed"),
    *("matched_evidence", "missed_evidence", "unmatched_citations", "explanation_defects", "explanation_reasoning"),
)
_ORIGINAL_KEYS: Final = {
    "predicted_verdict": "llm_verdict",
    "justification": "llm_reasoning",
    "confidence": "llm_confidence",
    "evidence_sources": "llm_evidence_sources",
    "verdict_correct": "verdict_match",
}
_DESCRIPTION: Final = (
    f"Write {' and '.join(_FILES['original'])} as the original script does: all metrics and the results of each claim, "
    f"and the claims of its three lists. With --keys ours, write {' and '.join(_FILES['ours'])}, with the names of "
    "metrics here, and explanation scores in points, 0 to 100."
)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the action of ``llmeval fact-check``."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    export = actions.add_parser("export", help="write the result files of the original", description=_DESCRIPTION)
    export.add_argument("report", type=Path, help="JSON report of a run")
    export.add_argument("-o", "--output", type=Path, default=Path(), metavar="FOLDER", help="default: this folder")
    export.add_argument("--suite", metavar="NAME", help="the suite, if the report has several: NAME or NAME[SYSTEM]")
    export.add_argument(
        "--keys", choices=tuple(_FILES), default="original", help="of metrics and results; default: original"
    )
    export.set_defaults(run=_export)


def _export(options: Namespace) -> CommandResult:
    """Run ``llmeval fact-check export``: write a suite's results and error analysis as JSON files."""
    data = published(RunReport.read(options.report))
    suite = _chosen(data["suites"], options.suite, str(options.report))
    options.output.mkdir(parents=True, exist_ok=True)
    results, analysis = results_of(suite), analysis_of(suite)
    if options.keys == "original":
        results = {"metrics": original_metrics(suite), "results": list(map(_renamed, results["results"]))}
        analysis = {name: list(map(_renamed, claims)) for name, claims in analysis.items()}
    paths = [options.output / name for name in _FILES[options.keys]]
    for path, content in zip(paths, (results, analysis), strict=True):
        OutputFile(path).save_text([json.dumps(content, ensure_ascii=False, indent=2) + "\n"])
    return CommandResult(0, {"written": [*map(str, paths)]}, [f"wrote {path}" for path in paths])


def _chosen(suites: Sequence[Mapping[str, Any]], name: str | None, file: str) -> Mapping[str, Any]:
    """The fact-check suite of a JSON report that a command names, or the only one.

    Raises:
        SuiteError: There is none, or several.
    """
    checks = [suite for suite in suites if _ACCURACY in suite["metrics"]]
    chosen = [check for check in checks if name in (None, check["suite"])]
    if len(chosen) == 1:
        return chosen[0]
    known = ", ".join(str(check["suite"]) for check in checks) or "none"
    expected = "one suite with fact checks" if name is None else f"the suite {name!r}"
    raise SuiteError(
        [Fault(file, 0, 0, "", f"found the suites with fact checks: {known}; expected {expected} (--suite)")]
    )


def results_of(suite: Mapping[str, Any]) -> dict[str, Any]:
    """The metrics and results of a fact-check suite in a JSON report, under the names of metrics here.

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


def original_metrics(suite: Mapping[str, Any]) -> dict[str, Any]:
    """The metrics of a fact-check suite in a JSON report under the original script's keys, from 0 to 1."""
    values = {name: value["value"] for name, value in suite["metrics"].items()}
    results = [_result(case) for case in suite["cases"]]
    scored = [result for result in results if result["verdict_correct"] is not None]
    matrix: dict[str, dict[str, int]] = {}
    for result in scored:
        row = matrix.setdefault(str(result.get("gold_verdict")), {})
        predicted = str(result.get("predicted_verdict"))
        row[predicted] = row.get(predicted, 0) + 1
    return {
        "total_tests": len(results),
        "successful_tests": len(scored),
        "failed_tests": len(results) - len(scored),
        _ACCURACY: values.get(_ACCURACY),
        "evidence_macro_f1": values.get("evidence_macro_f1"),
        "evidence_micro_f1": values.get("evidence_f1"),
        "explanation_correctness": values.get(EXPLANATION),
        OVERALL: values.get(OVERALL),
        "verdict_accuracy_by_class": _by_label(values, _ACCURACY),
        "evidence_macro_f1_by_verdict": _by_label(values, "evidence_f1"),
        "explanation_error_types": {
            flag: sum(result["explanation_errors"].get(flag, False) for result in scored) for flag in Defects.FLAGS
        },
        "confusion_matrix": matrix,
    }


def _renamed(result: Mapping[str, Any]) -> dict[str, Any]:
    """A claim's result under the keys of the original script, with its explanation score from 0 to 1."""
    named = {_ORIGINAL_KEYS.get(name, name): value for name, value in result.items()}
    points = result[EXPLANATION]
    return {**named, EXPLANATION: None if points is None else points / HIGHEST_GRADE}


def _by_label(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The values of a fact-check metric by its label, such as the verdict."""
    return {
        key.removeprefix(f"{name}[").removesuffix("]"): value
        for key, value in values.items()
        if key.startswith(f"{name}[")
    }


def analysis_of(suite: Mapping[str, Any]) -> dict[str, Any]:
    """The fact-checked claims in each list of the report's error analysis."""
    listed = {bucket["bucket"]: bucket["cases"] for bucket in suite.get("error_buckets", ())}
    results = {case["id"]: _result(case) for case in suite["cases"]}
    return {name: [results[key] for key in listed.get(name, ())] for name in _LISTS}


def _result(case: Mapping[str, Any]) -> dict[str, Any]:
    """One claim's result, from a case of a JSON report, for the exported files."""
    metrics = case["metrics"]
    details: Mapping[str, Any] = next(
        (detail for detail in case["details"].values() if "predicted_verdict" in detail), {}
    )
    known = {name: details[name] for name in _DETAILS if name in details}
    right = metrics.get(_ACCURACY)
    errors = {flag: bool(share) for flag in Defects.FLAGS if (share := metrics.get(defect(flag))) is not None}
    return {
        "id": case["id"],
        **known,
        "verdict_correct": None if right is None else right == 1,
        **{name: metrics.get(name) for name in _EVIDENCE},
        EXPLANATION: _points(metrics.get(EXPLANATION)),
        "explanation_errors": errors,
        OVERALL: metrics.get(OVERALL),
        **({"error": case["reason"]} if case.get("reason") else {}),
    }


def _points(share: float | None) -> float | None:
    """An explanation's score in points of the original scale instead of a share."""
    return None if share is None else share * HIGHEST_GRADE
