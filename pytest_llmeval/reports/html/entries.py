"""The suites of a page: numbers, verdicts and gates, as the page's head has them."""

__all__ = ("PageRun", "entry_of", "run_of", "verdict_of")

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import structs

from pytest_llmeval.core.results import PASS_RATE, CaseRecord
from pytest_llmeval.reports.html.number_lines import number_line
from pytest_llmeval.scoring.summary import summarize

_COPIED = (
    *("suite", "path", "metrics", "lower_is_better", "groups", "snapshot", "tables", "usage", "stability"),
    *("left_out", "shared_inputs", "clusters", "worst", "error_buckets", "changes", "history"),
)
_NOT_RUN = ("skipped", "not_run")


@dataclass(frozen=True)
class PageRun:
    """A run that a page shows.

    Attributes:
        label: What tells it from the other runs of the page; may be empty if it is the only one.
        data: As the JSON report has it.
        is_baseline: Whether it is only there to be compared with.
        pairs: For each suite, the place of its counterpart among all suites of the page; ``None`` where it has none.
    """

    label: str
    data: Mapping[str, Any]
    is_baseline: bool = False
    pairs: Sequence[int | None] = ()

    @property
    def suites(self) -> Sequence[Mapping[str, Any]]:
        """The suites of the report."""
        suites: Sequence[Mapping[str, Any]] = self.data["suites"]
        return suites


def run_of(run: PageRun) -> dict[str, Any]:
    """Return what the page says of a run as a whole."""
    return {
        "label": run.label,
        "baseline": run.is_baseline,
        **run.data.get("run", {}),
        "faults": run.data.get("faults", {}),
        "systems": run.data.get("systems", []),
        "verdict": verdict_of(run.data),
    }


def entry_of(suite: Mapping[str, Any], run: int) -> dict[str, Any]:
    """Return what the page says of a suite, without its cases.

    Args:
        suite: As the JSON report has it.
        run: Number of its run on the page.
    """
    variant = suite.get("variant", "")
    metrics = {**suite.get("metrics", {}), PASS_RATE: _pass_rate(suite)}
    gates = [{**gate, "line": number_line(gate, metrics)} for gate in suite.get("gates", ())]
    return {
        "run": run,
        "variant": variant,
        "name": suite["suite"].removesuffix(f"[{variant}]") if variant else suite["suite"],
        **{name: suite[name] for name in _COPIED if suite.get(name) not in (None, {}, [], 0)},
        "counts": {
            "total": len(suite["cases"]),
            **Counter(case["outcome"] for case in suite["cases"]),
            **suite["counts"],
        },
        "pass_rate": metrics[PASS_RATE],
        "gates": gates,
        "verdict": _suite_verdict(suite),
        "cases": len(suite["cases"]),
    }


def verdict_of(data: Mapping[str, Any]) -> str:
    """Return ``failed``, ``not_judged`` or ``passed``: the worst of a run's suites, and failed if a file has faults."""
    verdicts = {_suite_verdict(suite) for suite in data["suites"]}
    if data.get("faults"):
        return "failed"
    return next((each for each in ("failed", "not_judged") if each in verdicts), "passed" if verdicts else "not_judged")


def _suite_verdict(suite: Mapping[str, Any]) -> str:
    """Return the verdict on a suite; one of which some case did not run has none, unless something failed."""
    judged = {each.get("outcome") for each in (*suite.get("gates", ()), *suite.get("snapshot", ()))}
    counts = suite["counts"]
    if "failed" in judged or counts.get("failed") or counts.get("errored"):
        return "failed"
    return "not_judged" if "not_judged" in judged or counts.get("not_run") else "passed"


def _pass_rate(suite: Mapping[str, Any]) -> dict[str, Any]:
    """Return the pass rate, which the JSON report leaves to its readers, by the formula of the run."""
    clusters = suite.get("clusters") or {}
    label = clusters.get("label")
    records = [CaseRecord(case["id"], outcome=case["outcome"]) for case in suite["cases"]]
    records = [each if each.outcome in _NOT_RUN else structs.replace(each, errors={"": ""}) for each in records]
    if label:
        named = {case["id"]: {label: case["cluster"]} for case in suite["cases"] if "cluster" in case}
        records = [structs.replace(each, labels=named.get(each.id, {})) for each in records]
    rate = summarize({}, records, cluster_by=label).pass_rate
    return {name: getattr(rate, name) for name in ("value", "low", "high", "scored", "missing")}
