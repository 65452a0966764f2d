"""The command ``llmeval compare``: comparison of two JSON reports."""

from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from msgspec import to_builtins

from pytest_llmeval.cli.console import CommandResult, amount, say, share
from pytest_llmeval.core.errors import Fault, LlmevalError, SuiteError
from pytest_llmeval.core.wording import counted, interval, number, printable, unknown_name
from pytest_llmeval.reports.json import published

if TYPE_CHECKING:
    from pytest_llmeval.cli.paired import PairedScores
    from pytest_llmeval.gates.change import GateEvidence
    from pytest_llmeval.gates.contract import GateResult, MetricChange
    from pytest_llmeval.reports.form import SuiteReport

_COMPARE = (
    "Compare two runs over the cases that ran in both, by the metrics that the suite gates or names. The exit code is "
    "1 if a drop larger than --max-drop is significant. It is 2 if a report cannot be used, a metric is unknown, or a "
    "suite has nothing to compare."
)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = _COMPARE
    which = "; FILE#NAME takes the system, or the variant of the target, of this name"
    parser.add_argument("report", metavar="NEW", help=f"JSON report of the run to compare{which}")
    parser.add_argument("second", metavar="OLD", nargs="?", help=SUPPRESS)  # the form before --baseline
    parser.add_argument("--baseline", metavar="OLD", help=f"JSON report of the run to compare with{which}")
    parser.add_argument(
        "--confidence",
        type=share,
        default=0.95,
        metavar="SHARE",
        help="confidence level of the intervals (default: 0.95)",
    )
    parser.add_argument(
        "--max-drop", type=amount, metavar="NUMBER", help="fail if a larger drop of a metric is significant"
    )
    parser.add_argument("--metric", action="append", metavar="NAME", help="compare only this metric; can be repeated")
    parser.add_argument("--by", metavar="LABEL", help="compare the groups of this label as well")
    parser.add_argument(
        "--show", type=int, default=0, metavar="N", help="list the N cases that changed most (default: none)"
    )
    parser.set_defaults(run=_compare, code_of_faults=2)


def _compare(options: Namespace) -> CommandResult:
    from pytest_llmeval.cli.paired import pair_suites
    from pytest_llmeval.core.results import PASS_RATE
    from pytest_llmeval.gates.rules import judge_together

    if (options.baseline is None) == (options.second is None):
        named = "one" if options.baseline is None else "three"
        raise LlmevalError(f"found {named} reports, expected two: llmeval compare --baseline OLD NEW")
    reports = (options.report, options.baseline or options.second)
    pairs, alone = pair_suites(*map(_chosen, reports), named=any("#" in each for each in reports))
    lines = [f"run {reports[0]} against baseline {reports[1]}"]
    for suites, report in zip(alone, reports, strict=True):
        lines += [f"{each.suite} ({each.path}): only in {report}" for each in suites]
    if not pairs:
        say(lines)
        raise LlmevalError("the reports have no suite in common")
    known = dict.fromkeys(name for pair in pairs for suite in pair for name in suite.metrics)
    unknown = [name for name in dict.fromkeys(options.metric or ()) if name not in (*known, PASS_RATE)]
    if unknown:
        raise LlmevalError("\n".join(unknown_name("metric", name, (*known, PASS_RATE)) for name in unknown))
    verdicts: list[GateResult] = []
    every: list[_ComparedSuite] = []
    labels = {label for here, _ in pairs for case in here.cases for label in case.labels}
    if options.by is not None and options.by not in labels:
        raise LlmevalError(unknown_name("label", options.by, labels) if labels else "no case has labels")
    for pair in pairs:
        compared = _suite(*pair, reports, options)
        lines += compared.lines
        verdicts += judge_together(compared.tests)
        every.append(compared)
    failed = [each for each in verdicts if each.outcome == "failed"] if options.max_drop is not None else []
    lines += [f"FAILED  {each.gate}  ({each.reason})" for each in failed]
    uncompared = [each.name for each in every if not each.tests and not each.vanished]
    gone = options.max_drop is not None and any(each.vanished for each in every)
    code = 1 if failed or gone else 2 if uncompared else 0
    if code != 1:
        say((f"{name}: nothing compared" for name in uncompared), error=True)
    rows = [{"suite": each.name, "metrics": published(each.changes), "vanished": each.vanished} for each in every]
    return CommandResult(code, {"reports": reports, "suites": rows, "failed": to_builtins(failed)}, lines)


def _chosen(report: str) -> "list[SuiteReport]":
    """Return the suites of a report; with ``FILE#NAME``, those of one system.

    Raises:
        SuiteError: The report cannot be read, or has no such system.
    """
    from pytest_llmeval.reports.reading import read_report

    file, separator, name = report.partition("#") if not Path(report).exists() else (report, "", "")
    suites = list(read_report(Path(file)).suites)
    chosen = [each for each in suites if _is_variant(each, name)] if separator else suites
    if not chosen:
        known = [each.variant or each.suite for each in suites]
        raise SuiteError([Fault(file, 0, 0, "", unknown_name("system", name, known))])
    return chosen


def _is_variant(suite: "SuiteReport", name: str) -> bool:
    """Return whether a suite is the system or variant of a name; earlier reports have it in the name of the suite."""
    return suite.variant == name if suite.variant else suite.suite == name or suite.suite.endswith(f"[{name}]")


class _ComparedSuite(NamedTuple):
    """The comparison of a suite.

    Attributes:
        name: Suite and file.
        lines: Text to print.
        changes: Of each compared metric.
        tests: Evidence on each of them.
        vanished: Metrics of the baseline that are gone.
    """

    name: str
    lines: "Sequence[str]"
    changes: "Mapping[str, MetricChange]" = MappingProxyType({})
    tests: "Sequence[GateEvidence]" = ()
    vanished: Sequence[str] = ()


def _suite(here: "SuiteReport", there: "SuiteReport", reports: tuple[str, str], options: Namespace) -> _ComparedSuite:
    """Compare the cases of a suite that ran in both reports."""
    from pytest_llmeval.cli.paired import paired_scores, report_changes
    from pytest_llmeval.gates.drop import DropGate

    title = f"{here.suite} ({here.path})"
    if (here.path, here.suite) != (there.path, there.suite):
        title += f" against {there.suite} ({there.path})"
    paired = paired_scores(here, there, options.metric)
    here, there, ran_alone, evaluator, pairing, label, by_content = paired
    counts = [counted(len(here.cases), "case") + " in both reports"]
    alone = zip(reports, ran_alone, strict=True)
    counts += [f"{len(ids)} only in {report}" for report, ids in alone if ids]
    counts += [f"{counted(by_content, 'case')} matched by content"] if by_content else []
    heading = f"{title}: {', '.join(counts)}"
    if not here.cases:
        return _ComparedSuite(title, [heading])
    by_metric = report_changes(paired, reports[1], options.confidence, options.metric).metrics
    if here.changes is None or by_metric is not here.changes.metrics:
        heading += "; means of case scores"
    groups = _groups(paired, list(by_metric), options) if options.by is not None else ()
    changed = _most_changed(here, there, evaluator.metrics, options.show)
    vanished = paired.vanished
    lines = [
        heading,
        *_table(by_metric, options),
        *(
            [f"{counted(more, 'more metric')}: --metric NAME"]
            if (more := len(set(evaluator.metrics) - by_metric.keys())) > 0 and options.metric is None
            else []
        ),
        *(f"{name}: no longer has a value" for name in vanished),
        *groups,
        *changed,
    ]
    judged = [name for name, each in by_metric.items() if each.difference is not None]
    limit, errors = options.max_drop or 0.0, len(here.cases)
    gates = [
        DropGate(name, limit, confidence=options.confidence, cluster_by=label, max_errors=errors) for name in judged
    ]
    return _ComparedSuite(title, lines, by_metric, [gate.examine(pairing) for gate in gates], vanished)


def _groups(pair: "PairedScores", names: Sequence[str], options: Namespace) -> Iterator[str]:
    """Yield the tables of the groups of a label."""
    from pytest_llmeval.gates.statistics.compare import metric_changes

    means, clusters = pair.means(names), pair.cluster_by
    for name, rows in pair.pairing.groups(options.by).items():
        by_metric = metric_changes(
            pair.pairing, rows, names, confidence=options.confidence, statistics=means, cluster_by=clusters
        )
        yield f"{options.by}: {name}"
        yield from _table(by_metric, options)


def _most_changed(here: "SuiteReport", there: "SuiteReport", metrics: Sequence[str], count: int) -> Iterator[str]:
    """Yield the cases whose scores changed most, each with the metric that changed most."""
    before = {case.id: case.metrics for case in there.cases}
    changes = []
    for case in here.cases:
        values = [(case.metrics.get(name), before[case.id].get(name), name) for name in metrics]
        ranked = [
            (abs(now - then), name, then, now) for now, then, name in values if now is not None and then is not None
        ]
        if ranked and (most := max(ranked, key=lambda each: each[0]))[0] > 0:
            changes.append((case.id, *most))
    for name, _, metric, then, now in sorted(changes, key=lambda each: -each[1])[:count]:
        yield printable(f"{name}: {metric} {number(then)} -> {number(now)}")


def _table(by_metric: "Mapping[str, MetricChange]", options: Namespace) -> Iterator[str]:
    from tabulate import tabulate

    rows = [
        (
            each.name_of(name),
            number(each.baseline),
            number(each.value),
            number(each.difference),
            interval(each.low, each.high),
            number(each.p_value),
            each.cases,
            number(each.detectable),
            each.verdict.replace("_", " "),
        )
        for name, each in by_metric.items()
    ]
    between = f"{options.confidence * 100:g}% interval"
    headers = ("metric", "baseline", "value", "change", between, "p", "cases", "MDE", "verdict")
    align = ("left", *["right"] * (len(headers) - 2), "left")
    yield from tabulate([headers, *rows], tablefmt="plain", disable_numparse=True, colalign=align).splitlines()
    notes: dict[str, list[str]] = {}
    for name, each in by_metric.items():
        for note in each.notes:
            notes.setdefault(note, []).append(name)
    yield from (f"{note}: {_listed(names, by_metric)}" for note, names in notes.items())


def _listed(names: Sequence[str], by_metric: "Mapping[str, MetricChange]") -> str:
    return "all metrics" if len(names) == len(by_metric) else ", ".join(names)
