"""The JSON data of a page: suites with verdicts, gates and history, and cases in columns."""

__all__ = (
    "PageRun",
    "ViewTexts",
    "case_texts",
    "changes_json",
    "entry_of",
    "index_of",
    "number_line",
    "past_points",
    "run_of",
    "shown_texts",
    "verdict_of",
)

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import structs

from pytest_llmeval.core.results import PASS_RATE, CaseRecord
from pytest_llmeval.gates.limits import GateFormError, parse_gate
from pytest_llmeval.reports.form import Changes, gated_metrics
from pytest_llmeval.reports.timeline import Timeline
from pytest_llmeval.scoring.summary import summarize

if TYPE_CHECKING:
    from pytest_llmeval.gates.statistics.compare import Difference

_COPIED = (
    *("suite", "path", "metrics", "lower_is_better", "groups", "snapshot", "tables", "usage", "stability"),
    *("left_out", "sample", "stop", "shared_inputs", "clusters", "worst", "error_buckets", "changes", "history"),
)
_NOT_RUN = ("skipped", "not_run")

_RELATIVE = re.compile(r"(?P<kind>drop|drift|gain)\((?P<metric>.+?)\) (?P<operator><=|>=) ")
_BY = " by "
_CONFIDENT = ("value", "low", "high")

ViewTexts: TypeAlias = Mapping[str, Any]
"""What the view of a case shows besides its row in the table."""

_SLACK = 1e-9
_DIGITS = 6
_LONGEST_REASON = 160
_VIEWED = ("reason", "file", "lines", "input", "expected", "prediction", "answers", "details", "judgings")

_SHOWN = ("reason", "lines", "input", "expected", "prediction")
_DIFFERENCE = ("baseline", "value", "difference", "low", "high", "p_value", "cases")
_MOST_POINTS = 40


@dataclass(frozen=True)
class PageRun:
    """A run on a page.

    Attributes:
        label: Distinguishes it from the other runs of the page; may be empty if it is the only one.
        data: The JSON report.
        is_baseline: Whether it only serves as baseline.
        pairs: For each suite, the index of its counterpart among all suites of the page, or ``None``.
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
    """Return a run without its suites."""
    return {
        "label": run.label,
        "baseline": run.is_baseline,
        **run.data.get("run", {}),
        "faults": run.data.get("faults", {}),
        "systems": run.data.get("systems", []),
        "mutation": run.data.get("mutation", []),
        "verdict": verdict_of(run.data),
    }


def entry_of(suite: Mapping[str, Any], run: int) -> dict[str, Any]:
    """Return a suite without its cases.

    Args:
        suite: A suite of the JSON report.
        run: Number of its run on the page.
    """
    variant = suite.get("variant", "")
    metrics = {**suite.get("metrics", {}), PASS_RATE: _pass_rate(suite)}
    gates = [_with_look({**gate, "line": number_line(gate, metrics)}) for gate in suite.get("gates", ())]
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
    """Return the verdict on a suite: ``not_judged`` if a case did not run, unless something failed."""
    judged = {each.get("outcome") for each in (*suite.get("gates", ()), *suite.get("snapshot", ()))}
    counts = suite["counts"]
    if "failed" in judged or counts.get("failed") or counts.get("errored"):
        return "failed"
    return "not_judged" if judged & {"undecided", "not_judged"} or counts.get("not_run") else "passed"


def _pass_rate(suite: Mapping[str, Any]) -> dict[str, Any]:
    """Compute the pass rate, which is not in the JSON report, by the formula of a run."""
    clusters = suite.get("clusters") or {}
    label = clusters.get("label")
    records = [CaseRecord(case["id"], outcome=case["outcome"]) for case in suite["cases"]]
    records = [each if each.outcome in _NOT_RUN else structs.replace(each, errors={"": ""}) for each in records]
    if label:
        named = {case["id"]: {label: case["cluster"]} for case in suite["cases"] if "cluster" in case}
        records = [structs.replace(each, labels=named.get(each.id, {})) for each in records]
    rate = summarize({}, records, cluster_by=label).pass_rate
    return {name: getattr(rate, name) for name in ("value", "low", "high", "scored", "missing")}


def number_line(gate: Mapping[str, Any], metrics: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the operator of a gate's limit and the interval of its value, as far as known.

    Args:
        gate: A gate of the JSON report.
        metrics: Metrics of the suite and ``pass_rate``.

    Example:
        >>> number_line({"gate": "f1 >= 0.7"}, {"f1": {"low": 0.6, "high": 0.8}})
        {'operator': '>=', 'low': 0.6, 'high': 0.8}
    """
    text = str(gate.get("gate", ""))
    relative = _RELATIVE.match(text)
    if relative is not None:
        known = {name: gate[name] for name in ("low", "high") if gate.get(name) is not None}
        # Such a gate is judged by its interval, not by the side of the limit that its value is on.
        return {"operator": relative["operator"], "relative": True, **known}
    whole, _, label = text.rpartition(_BY)
    try:
        # Of two limits, a gate reports the one that its value was compared with.
        parsed = parse_gate(_nearest(whole or label, gate.get("limit")))
    except (GateFormError, ValueError):
        return {}
    line = {"operator": parsed.bounds[0].operator}
    found = metrics.get(parsed.metric)
    if whole or found is None or parsed.statistic not in _CONFIDENT:
        return line
    return line | {name: found[name] for name in ("low", "high") if found.get(name) is not None}


def _with_look(gate: dict[str, Any]) -> dict[str, Any]:
    """Add the metric of a gate and how it looks: its outcome, or ``within_chance`` if it passed beyond its limit."""
    line, value, limit = gate["line"], gate.get("value"), gate.get("limit")
    beyond = False
    if line.get("relative") and value is not None and limit is not None:
        beyond = value - limit > _SLACK if line["operator"] == "<=" else limit - value > _SLACK
    passed = gate.get("outcome") == "passed"
    look = "within_chance" if passed and beyond else gate.get("outcome")
    metric = next(iter(gated_metrics([str(gate.get("gate", ""))])), None)
    return {**gate, "look": look, "metric": metric}


def _nearest(text: str, limit: Any) -> str:
    parts = text.split(" and ")
    for part in parts:
        try:
            if parse_gate(part).bounds[0].limit == limit:
                return part
        except (GateFormError, ValueError):
            return text
    return parts[0]


def changes_json(changes: Changes) -> dict[str, Any]:
    """Return the changes as JSON data, without the cases."""
    metrics = [
        {"metric": name, "kind": _kind(found), **{field: getattr(found, field) for field in _DIFFERENCE}}
        for name, found in changes.metrics.items()
    ]
    return {"against": changes.against, "notes": list(changes.notes), "metrics": metrics}


def _kind(found: "Difference") -> str:
    """Return ``fell`` or ``rose`` if the interval of the change excludes zero."""
    if found.difference is None:
        return "vanished" if found.value is None else "new"
    if found.drop_interval is not None and found.drop_interval[0] > 0:
        return "fell"
    if found.drop_interval is not None and found.drop_interval[1] < 0:
        return "rose"
    return "same" if found.difference == 0 else "unclear"


def past_points(timeline: Timeline | None) -> list[dict[str, Any]]:
    """Return the last runs and approvals, latest last, each with changes of data, evaluator or judge before it."""
    if timeline is None:
        return []
    changes = timeline.changes()
    return [
        {
            "time": point.when,
            "approved": point.approved,
            "commit": point.commit[:12],
            "values": dict(point.values),
            "changed": list(changed),
        }
        for point, changed in list(zip(timeline.points, changes, strict=True))[-_MOST_POINTS:]
    ]


def index_of(cases: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the table of cases, column by column.

    Args:
        cases: Cases of the JSON report.

    Returns:
        ``ids``, ``reasons`` (their beginnings), ``lines`` (of the file), ``seconds``; ``outcomes``, ``statuses`` (of
        repeats) and each of the ``labels`` as a list of values and an index for each case, -1 for none; ``metrics``,
        name to scores.
    """
    names = dict.fromkeys(name for case in cases for name in case.get("metrics", ()))
    labels = dict.fromkeys(name for case in cases for name in case.get("labels", ()))
    return {
        "ids": [case["id"] for case in cases],
        "outcomes": _coded(case.get("outcome") for case in cases),
        "reasons": [_beginning(case.get("reason")) for case in cases],
        "lines": [case.get("line", 0) for case in cases],
        "seconds": [round(case.get("duration_s") or 0.0, 3) for case in cases],
        "statuses": _coded(_status(case) for case in cases),
        "labels": {name: _coded(case.get("labels", {}).get(name) for case in cases) for name in labels},
        "metrics": {name: [_rounded(case.get("metrics", {}).get(name)) for case in cases] for name in names},
    }


def shown_texts(case: Mapping[str, Any] | None) -> ViewTexts:
    """Return what the overview shows of a case."""
    return {name: case[name] for name in _SHOWN if case and case.get(name) not in (None, {}, [])}


def case_texts(case: Mapping[str, Any]) -> ViewTexts:
    """Return what the view of a case shows, leaving out what is empty."""
    return {name: case[name] for name in _VIEWED if case.get(name) not in (None, {}, [])}


def _status(case: Mapping[str, Any]) -> Any:
    repeats = case.get("details", {}).get("repeats")
    return repeats.get("status") if isinstance(repeats, Mapping) else None


def _coded(values: Iterable[Any]) -> dict[str, Any]:
    """Write a column of few distinct texts as the texts and an index for each case."""
    places: dict[str, int] = {}
    codes = [-1 if each is None else places.setdefault(str(each), len(places)) for each in values]
    return {"values": list(places), "codes": codes}


def _beginning(reason: Any) -> str:
    text = str(reason or "")
    return text if len(text) <= _LONGEST_REASON else text[:_LONGEST_REASON] + "\N{HORIZONTAL ELLIPSIS}"


def _rounded(score: Any) -> float | None:
    return None if score is None else round(float(score), _DIGITS) + 0.0
