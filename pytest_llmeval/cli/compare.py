"""The command ``llmeval compare``: comparison of two JSON reports."""

__all__ = ("add_arguments",)

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_llmeval.cli.arguments import drop, share
from pytest_llmeval.cli.console import say
from pytest_llmeval.core.errors import SuiteError
from pytest_llmeval.core.wording import counted, interval, number, unknown_name

if TYPE_CHECKING:
    from pytest_llmeval.cli.report_file import RecordedSuite
    from pytest_llmeval.scoring.comparison.compare import Difference
    from pytest_llmeval.scoring.gates import GateResult
    from pytest_llmeval.scoring.regression_verdicts import Finding

_COMPARE = (
    "Compare the mean case scores of two runs over the cases that ran in both. The exit code is 1 if a drop larger "
    "than --max-drop is established, and 2 if a report cannot be used, a metric is unknown, or a suite has nothing to "
    "compare."
)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = _COMPARE
    parser.add_argument("report", type=Path, help="JSON report of the run to compare")
    parser.add_argument("baseline", type=Path, help="JSON report of the baseline run")
    parser.add_argument(
        "--confidence",
        type=share,
        default=0.95,
        metavar="SHARE",
        help="confidence level of the intervals (default: 0.95)",
    )
    parser.add_argument(
        "--max-drop", type=drop, metavar="NUMBER", help="fail if a larger drop of a metric is established"
    )
    parser.add_argument("--metric", action="append", metavar="NAME", help="compare only this metric; can be repeated")
    parser.set_defaults(run=_compare)


def _compare(options: Namespace) -> int:
    from pytest_llmeval.cli.report_file import read_report
    from pytest_llmeval.core.results import PASS_RATE
    from pytest_llmeval.scoring.regression_verdicts import judge_regressions

    try:
        here, there = ({(each.path, each.suite): each for each in read_report(path)} for path in _paths(options))
    except SuiteError as error:
        say(error.faults, error=True)
        return 2
    common = [key for key in here if key in there]
    say(f"{suite} ({path}): only in {options.report}" for path, suite in here if (path, suite) not in there)
    say(f"{suite} ({path}): only in {options.baseline}" for path, suite in there if (path, suite) not in here)
    if not common:
        say(["the reports have no suite in common"], error=True)
        return 2
    known = dict.fromkeys(name for key in common for suite in (here[key], there[key]) for name in suite.metrics)
    unknown = [name for name in dict.fromkeys(options.metric or ()) if name not in (*known, PASS_RATE)]
    if unknown:
        say((unknown_name("metric", name, (*known, PASS_RATE)) for name in unknown), error=True)
        return 2
    verdicts: list[GateResult] = []
    gone = False
    uncompared: list[str] = []
    for key in common:
        found = _suite(here[key], there[key], options)
        say(found.lines)
        verdicts += judge_regressions(found.tests)
        gone = gone or found.vanished
        if not found.tests and not found.vanished:
            uncompared.append(found.name)
    if options.max_drop is not None:
        failed = [each for each in verdicts if each.outcome == "failed"]
        say(f"FAILED  {each.gate}  ({each.reason})" for each in failed)
        if failed or gone:
            return 1
    say((f"{name}: nothing compared" for name in uncompared), error=True)
    return 2 if uncompared else 0


def _paths(options: Namespace) -> tuple[Path, Path]:
    return options.report, options.baseline


class _Compared(NamedTuple):
    """What came of a suite.

    Attributes:
        name: Of the suite, with its file.
        lines: To be printed.
        tests: Of the metrics that were compared.
        vanished: Whether a metric of the baseline is gone.
    """

    name: str
    lines: "Sequence[str]"
    tests: "Sequence[Finding]" = ()
    vanished: bool = False


def _suite(here: "RecordedSuite", there: "RecordedSuite", options: Namespace) -> _Compared:
    """Compare the cases of a suite that ran in both reports."""
    from pytest_llmeval.cli.report_file import RecordedScores, score_records
    from pytest_llmeval.core.results import PASS_RATE
    from pytest_llmeval.scoring.comparison.case_statistics import CaseStatistics
    from pytest_llmeval.scoring.comparison.compare import differences
    from pytest_llmeval.scoring.comparison.pairing import Pairing
    from pytest_llmeval.scoring.regression import RegressionGate
    from pytest_llmeval.scoring.regression_verdicts import examine

    title = f"{here.suite} ({here.path})"
    ran = [{case.id for case in suite.cases if case.ran} for suite in (here, there)]
    here, there = here.only(ran[0] & ran[1]), there.only(ran[0] & ran[1])
    counts = [counted(len(here.cases), "case") + " in both reports"]
    alone = zip((options.report, options.baseline), (ran[0] - ran[1], ran[1] - ran[0]), strict=True)
    counts += [f"{len(ids)} only in {report}" for report, ids in alone if ids]
    heading = f"{title}: {', '.join(counts)}; means of case scores"
    if not here.cases:
        return _Compared(title, [heading])
    every = dict.fromkeys([*here.metrics, *there.metrics])
    wanted = tuple(name for name in every if options.metric is None or name in options.metric)
    evaluator = RecordedScores(wanted, frozenset({*here.lower_is_better, *there.lower_is_better}))
    run, baseline = (CaseStatistics.exact(score_records(suite, evaluator)) for suite in (here, there))
    label = here.clusters.label if here.clusters else None
    pairing = Pairing(run, baseline, {evaluator.name: evaluator})
    names = [*evaluator.metrics, *([PASS_RATE] if options.metric is None or PASS_RATE in options.metric else [])]
    found = differences(pairing, pairing.everything(), names, confidence=options.confidence, cluster_by=label)
    vanished = [name for name in evaluator.metrics if _scored(there, name) and not _scored(here, name)]
    lines = [heading, *_table(found, options), *(f"{name}: no longer has a value" for name in vanished)]
    judged = [name for name, each in found.items() if each.difference is not None]
    limit, errors = options.max_drop or 0.0, len(here.cases)
    gates = [RegressionGate(name, limit, options.confidence, cluster_by=label, max_errors=errors) for name in judged]
    return _Compared(title, lines, [examine(gate, pairing) for gate in gates], bool(vanished))


def _scored(suite: "RecordedSuite", metric: str) -> bool:
    return any(case.metrics.get(metric) is not None for case in suite.cases)


def _table(found: "dict[str, Difference]", options: Namespace) -> Iterator[str]:
    from tabulate import tabulate

    rows = [
        (
            name,
            number(each.baseline),
            number(each.value),
            number(each.difference),
            interval(each.low, each.high),
            number(each.p_value),
            each.cases,
            number(each.detectable),
        )
        for name, each in found.items()
    ]
    between = f"{options.confidence * 100:g}% interval"
    headers = ("metric", "baseline", "value", "change", between, "p", "cases", "detectable")
    align = ("left", *["right"] * (len(headers) - 1))
    yield from tabulate([headers, *rows], tablefmt="plain", disable_numparse=True, colalign=align).splitlines()
    notes: dict[str, list[str]] = {}
    for name, each in found.items():
        for note in each.notes:
            notes.setdefault(note, []).append(name)
    yield from (f"{note}: {_listed(names, found)}" for note, names in notes.items())


def _listed(names: Sequence[str], found: "dict[str, Difference]") -> str:
    return "all metrics" if len(names) == len(found) else ", ".join(names)
