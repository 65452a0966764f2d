"""Suites of reports, alone and in pairs, and commands on reports: ``llmeval approve``, ``llmeval html``."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from msgspec import structs

from pytest_llmeval.baselines.runs import failures_file, read_failures, write_failures
from pytest_llmeval.cli.console import CommandResult, write_text
from pytest_llmeval.cli.options import OPTIONS, add_options
from pytest_llmeval.core.errors import LlmevalError
from pytest_llmeval.core.observation import Observation
from pytest_llmeval.core.results import PASS_RATE, CaseRecord
from pytest_llmeval.core.verdicts import Statistic
from pytest_llmeval.core.wording import counted, suggest
from pytest_llmeval.data.files.places import display_path
from pytest_llmeval.evaluators.functions import RecordedScores
from pytest_llmeval.numbers.case_statistics import CaseStatistics
from pytest_llmeval.numbers.compare import metric_changes
from pytest_llmeval.numbers.pairing import RunPairing, matched_by_content
from pytest_llmeval.reports.form import CaseReport, Changes, RunReport, SuiteReport
from pytest_llmeval.reports.html.data import PageRun
from pytest_llmeval.reports.html.page import to_page
from pytest_llmeval.reports.json import read_report
from pytest_llmeval.run.finishing import with_past
from pytest_llmeval.suites.suite import SuiteKey

SuitePairs: TypeAlias = Sequence[tuple[SuiteReport, SuiteReport]]
Alone: TypeAlias = tuple[Sequence[SuiteReport], Sequence[SuiteReport]]


def results_of(suites: Sequence[SuiteReport], path: Path) -> list[SuiteReport]:
    """Return the results of a suite file: a report names it from the folder in which pytest ran."""
    whole = path.resolve().parts
    named = [suite for suite in suites if whole[-len(Path(suite.path).parts) :] == Path(suite.path).parts]
    longest = max((len(Path(suite.path).parts) for suite in named), default=0)
    return [suite for suite in named if len(Path(suite.path).parts) == longest]


class PairedScores(NamedTuple):
    """Two suites over the cases that ran in both.

    Attributes:
        here: The run.
        there: The baseline.
        alone: Ids of the cases that ran in one of them only.
        evaluator: Their metrics, as an evaluator.
        pairing: Their scores, paired.
        cluster_by: The label of clusters; ``None`` if there is none.
        by_content: How many cases have another id in the baseline, and are matched by their content.
    """

    here: SuiteReport
    there: SuiteReport
    alone: tuple[set[str], set[str]]
    evaluator: RecordedScores
    pairing: RunPairing
    cluster_by: str | None
    by_content: int = 0

    @property
    def vanished(self) -> list[str]:
        """Metrics that have a value in the baseline and none in the run."""
        return [name for name in self.evaluator.metrics if _scored(self.there, name) and not _scored(self.here, name)]

    def compared(self, metrics: Sequence[str] | None = None) -> list[str]:
        """Return the metrics to compare: by default those that comparisons of the suite are about."""
        every = (*self.evaluator.metrics, PASS_RATE)
        family = (self.here.compared or every) if metrics is None else metrics
        return [name for name in every if name in family]

    def means(self, names: Iterable[str]) -> dict[str, Statistic]:
        """Return the metrics whose value over the cases is not the mean of their scores, which is compared here."""
        return {name: "mean" for name in names if _pooled(self.here, name) or _pooled(self.there, name)}


def _scored(suite: SuiteReport, metric: str) -> bool:
    return any(case.metrics.get(metric) is not None for case in suite.cases)


_BALANCED = "balanced_accuracy"


def with_balanced_parts(suite: SuiteReport) -> SuiteReport:
    """Return a suite whose cases have parts of balanced accuracies, whose means over the cases are those.

    The part of a labelled answer is its hit, weighted so that positive and negative ones count the same in sum. Where
    people differ about an answer, there are none.
    """
    cases = list(suite.cases)
    values = dict(suite.metrics)
    for name in suite.metrics:
        prefix, _, end = name.rpartition(_BALANCED)
        sides = [[case.metrics.get(f"{prefix}{each}") for case in cases] for each in ("tpr", "tnr")]
        counts = [sum(hit is not None for hit in side) for side in sides]
        is_split = all(None in pair for pair in zip(*sides, strict=True))
        if end or _BALANCED not in name or not is_split or not all(counts):
            continue
        weights = [sum(counts) / (2 * count) for count in counts]
        for place, hits in enumerate(zip(*sides, strict=True)):
            for weight, hit in zip(weights, hits, strict=True):
                if hit is not None:
                    cases[place] = structs.replace(cases[place], metrics={**cases[place].metrics, name: weight * hit})
        values[name] = structs.replace(values[name], mean=values[name].value)
    ranges = {name: each for name, each in suite.ranges.items() if _BALANCED not in name}
    return structs.replace(suite, cases=cases, metrics=values, ranges=ranges)


def paired_scores(
    here: SuiteReport, there: SuiteReport, metrics: Sequence[str] | None = None, *, balanced: bool = False
) -> PairedScores:
    """Return the scores of two suites over the cases that ran in both, which may be none.

    Args:
        here: The run.
        there: The baseline.
        metrics: Names of metrics; default: all.
        balanced: Whether to include balanced accuracies.
    """
    there, by_content = with_ids_of(here, there)
    left, right = ({case.id for case in suite.cases if case.ran} for suite in (here, there))
    here, there = _only(here, left & right), _only(there, left & right)
    if balanced:
        here, there = with_balanced_parts(here), with_balanced_parts(there)
    every = dict.fromkeys([*here.metrics, *there.metrics])
    chosen = tuple(name for name in every if metrics is None or name in metrics)
    lower = frozenset({*here.lower_is_better, *there.lower_is_better})
    evaluator = RecordedScores(chosen, lower, {**there.ranges, **here.ranges})
    run, baseline = (CaseStatistics.exact(_records(suite, evaluator)) for suite in (here, there))
    pairing = RunPairing(run, baseline, {evaluator.name: evaluator}, abstained=here.abstained)
    cluster_by = here.clusters.label if here.clusters else None
    return PairedScores(here, there, (left - right, right - left), evaluator, pairing, cluster_by, by_content)


def report_changes(
    pair: PairedScores, label: str, confidence: float | None = None, metrics: Sequence[str] | None = None
) -> Changes:
    """Return the changes between two suites over the cases that ran in both.

    They are those that the run itself reports, if the baseline is the run that it was compared with.

    Args:
        pair: The suites.
        label: Name of the baseline.
        confidence: Of intervals and verdicts; default: that of the run's own comparison, or 0.95.
        metrics: Names of metrics; default: those that comparisons are about.
    """
    here, there = pair.here, pair.there
    alone = zip(pair.alone, ("this run", label), strict=True)
    notes = [f"{counted(len(ids), 'case')} only in {which}" for ids, which in alone if ids]
    if confidence is None:
        confidence = here.changes.confidence if here.changes is not None else 0.95
    own = here.changes if metrics is None else None
    if own is not None and own.confidence == confidence and own.is_against(there):
        return structs.replace(own, against=label, notes=notes)
    if not here.cases:
        return Changes(label, {}, confidence, notes)
    names = pair.compared(metrics)
    rows, clusters = pair.pairing.everything(), pair.cluster_by
    changes = metric_changes(
        pair.pairing, rows, names, confidence=confidence, statistics=pair.means(names), cluster_by=clusters
    )
    return Changes(label, changes, confidence, notes)


def _pooled(suite: SuiteReport, name: str) -> bool:
    """Return whether the value of a metric differs from the mean of the scores of its cases."""
    metric = suite.find(name)
    return metric is not None and None not in (metric.value, metric.mean) and metric.value != metric.mean


def with_ids_of(here: SuiteReport, there: SuiteReport) -> tuple[SuiteReport, int]:
    """Return a suite of a baseline with the ids that its cases have in the run, by their content.

    Args:
        here: The run.
        there: The baseline. Other cases of it whose ids the run gives to different cases get a mark.

    Returns:
        The suite, and how many of its cases have another id now.
    """
    moved = matched_by_content(_contents(here), _contents(there))
    names = {before: now for now, before in moved.items()}
    names |= {case.id: f"{case.id} (before)" for case in there.cases if case.id in moved and case.id not in names}
    cases = [structs.replace(case, id=names.get(case.id, case.id)) for case in there.cases]
    return (structs.replace(there, cases=cases), len(moved)) if moved else (there, 0)


def _contents(suite: SuiteReport) -> dict[str, str]:
    """Return the content of the cases that ran; nothing if a report of an earlier version does not have it."""
    return {case.id: case.content for case in suite.cases if case.ran and case.content}


def _only(suite: SuiteReport, ids: AbstractSet[str]) -> SuiteReport:
    """Return a suite with some of its cases."""
    return structs.replace(suite, cases=[case for case in suite.cases if case.id in ids])


def _records(suite: SuiteReport, evaluator: RecordedScores) -> list[CaseRecord]:
    """Return the cases of a report as records whose only counts are the scores."""
    return [_record(case, evaluator) for case in suite.cases]


def _record(case: CaseReport, evaluator: RecordedScores) -> CaseRecord:
    counts: dict[str, Any] = {}
    for name in evaluator.metrics:
        score = case.metrics.get(name)
        if score is not None:
            counts |= {f"sum {name}": score, f"cases {name}": 1}
    absent = {name: "" for name in evaluator.metrics if case.metrics.get(name) is None}
    if case.outcome == "errored":
        seen = Observation(counts, errored=absent)
    else:
        abstained = tuple(name for name in case.details.get("abstained", ()) if name in absent)
        seen = Observation(counts, undefined=absent, abstained=abstained)
    return CaseRecord(case.id, case.labels, case.outcome, {evaluator.name: seen}, reason=case.reason)


def pair_suites(here: Sequence[SuiteReport], there: Sequence[SuiteReport], *, named: bool) -> tuple[SuitePairs, Alone]:
    """Return the suites to compare, and those that are in one report only.

    Suites with the same name and file form a pair, and so do systems of the same suite that were chosen by name. If
    each report has one suite, these form a pair under any names.
    """
    left, right = list(here), list(there)
    pairs: list[tuple[SuiteReport, SuiteReport]] = []
    for bare in (False, True) if named else (False,):
        by_name = {_name(each, bare=bare): each for each in right}
        for each in list(left):
            if other := by_name.pop(_name(each, bare=bare), None):
                pairs.append((each, other))
                left.remove(each)
                right.remove(other)
    if len(left) == len(right) == 1 and not pairs:
        return [(left[0], right[0])], ([], [])
    return pairs, (left, right)


def _name(suite: SuiteReport, *, bare: bool) -> tuple[str, str]:
    return suite.path, suite.base_name if bare else suite.suite


def add_approve(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = (
        "Approve the failures of single cases in a JSON report. An approved case fails the run only if it misses "
        "another limit or check, or cannot be scored. Its scores count as before. The suite's file "
        "__llmeval__/NAME.failures.json stores what is approved: commit it."
    )
    parser.add_argument("report", type=Path, metavar="REPORT", help="a JSON report of the run")
    parser.add_argument("--case", action="append", required=True, metavar="ID", help="a failed case; repeatable")
    parser.add_argument("--suite", help="the suite, where cases of several suites share the id")
    rootdir = OPTIONS["rootdir"]
    add_options(parser, rootdir._replace(default=Path(), help="pytest's rootdir; default: the current folder"))
    parser.set_defaults(run=_approve)


def _approve(options: Namespace) -> CommandResult:

    suites = [each for each in read_report(options.report).suites if options.suite in (None, each.suite, each.path)]
    if not suites:
        raise LlmevalError(f"{options.report}: found no suite {options.suite!r}, expected one of the report")
    failures: dict[SuiteKey, dict[str, Sequence[str]]] = {}
    contents: dict[SuiteKey, dict[str, str]] = {}
    for name in options.case:
        suite, case = _failed(name, suites, options.report)
        path = (options.rootdir / suite.path).resolve()
        if not path.is_file():
            raise LlmevalError(f"found no file {path}, expected the suite of the report: name pytest's --rootdir")
        key = SuiteKey(str(path), suite.path, variant=suite.variant)
        contents[key] = {each.id: each.content for each in suite.cases if each.content}
        known = failures.setdefault(key, dict(read_failures(key, partial(contents.__getitem__, key))))
        known[name] = sorted(set(case.unmet))
    approved = []
    for key, known in failures.items():
        write_failures(key, known, contents[key])
        written = display_path(failures_file(key), options.rootdir.resolve())
        named = [name for name in options.case if name in known]
        approved += [{"file": written, "case": name, "unmet": known[name]} for name in named]
    lines = [f"{each['file']}: {each['case']}: {', '.join(each['unmet'])}" for each in approved]
    return CommandResult(0, {"approved": approved}, lines)


def _failed(name: str, suites: Sequence[SuiteReport], report: Path) -> tuple[SuiteReport, CaseReport]:
    """Return the failed case of an id.

    Raises:
        LlmevalError: There is none, several suites have one, or it did not fail by limits and checks alone.
    """
    named = list(_named(name, suites))
    if not named:
        known = [case.id for suite in suites for case in suite.cases]
        raise LlmevalError(f"{report}: found no case {name!r}{suggest(name, known)}")
    failed = [each for each in named if each[1].unmet]
    if not failed:
        outcome = named[0][1].outcome.replace("_", " ")
        raise LlmevalError(
            f"{report}: case {name!r}: found the outcome {outcome!r}, expected a case that misses limits or checks"
        )
    if len(failed) > 1:
        names = ", ".join(suite.suite for suite, _ in failed)
        raise LlmevalError(f"{report}: case {name!r} failed in {names}: name one of them by --suite")
    return failed[0]


def _named(name: str, suites: Sequence[SuiteReport]) -> Iterator[tuple[SuiteReport, CaseReport]]:
    for suite in suites:
        yield from ((suite, case) for case in suite.cases if case.id == name)


_HTML = (
    "Write JSON reports as one HTML page, which opens from disk without network. The first report is the run that the "
    "page is about; it is compared with the baseline, or else with the second report. The exit code is 0 if the page "
    "is written, and 2 if a file cannot be used."
)


def add_html(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = _HTML
    parser.add_argument("reports", nargs="+", type=Path, metavar="RUN.json", help="JSON report of a run")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="page to write (default: RUN.html)")
    parser.add_argument("--baseline", type=Path, metavar="BASE.json", help="JSON report to compare with")
    parser.set_defaults(run=_html, code_of_faults=2)


def _html(options: Namespace) -> CommandResult:

    output = options.output or options.reports[0].with_suffix(".html")
    page = to_page(page_runs(options.reports, options.baseline))
    write_text(output, [page.html])
    lines = [f"wrote {output}", *([f"{output}: {page.note}"] if page.note else [])]
    return CommandResult(0, {"written": [str(output)], "note": page.note}, lines)


def page_runs(reports: Sequence[Path], baseline: Path | None) -> list[PageRun]:
    """Read reports as the runs of a page, the first one with its changes and history.

    Raises:
        SuiteError: One cannot be used.
    """
    paths = [*reports, *([] if baseline is None else [baseline])]
    read = [read_report(path) for path in paths]
    labels = _labels(paths) if len(paths) > 1 else [""]
    first = with_past(read[0], Path.cwd())  # reports name suites from the folder that has their history
    pairs: Sequence[int | None] = ()
    against = len(paths) - 1 if baseline is not None else 1
    if against < len(paths):
        start = sum(len(each.suites) for each in read[:against])
        first, pairs = _compared(first, read[against], labels[against], start)
    others = [
        PageRun(label, report, is_baseline=baseline is not None and place == len(reports))
        for place, (report, label) in enumerate(zip(read, labels, strict=True))
        if place
    ]
    return [PageRun(labels[0], first, pairs=pairs), *others]


def _labels(paths: Sequence[Path]) -> list[str]:
    """Return labels of runs: file names, or whole paths if names collide."""
    names = [path.name for path in paths]
    return [path.name if names.count(path.name) == 1 else str(path) for path in paths]


def _compared(here: RunReport, there: RunReport, label: str, start: int) -> tuple[RunReport, Sequence[int | None]]:
    """Return a run with the changes of its suites, and for each the index of its counterpart.

    Args:
        here: The run.
        there: The run to compare with.
        label: Its label.
        start: Index of its first suite among all suites of the page.
    """
    counterparts = {
        id(here_suite): other for here_suite, other in pair_suites(here.suites, there.suites, named=False)[0]
    }
    places = {id(each): start + place for place, each in enumerate(there.suites)}
    pairs = [counterparts.get(id(each)) for each in here.suites]
    suites = [
        each if other is None else structs.replace(each, changes=_changes(each, other, label))
        for each, other in zip(here.suites, pairs, strict=True)
    ]
    return structs.replace(here, suites=suites), [None if other is None else places[id(other)] for other in pairs]


def _changes(here: SuiteReport, there: SuiteReport, label: str) -> Changes:
    """Return what changed between two suites, over the cases that ran in both."""
    changes = report_changes(paired_scores(here, there), label)
    return structs.replace(changes, notes=[*changes.notes, *_measured_otherwise(here, there)])


def _measured_otherwise(here: SuiteReport, there: SuiteReport) -> list[str]:
    """Return notes on metrics that the two runs compute in different ways."""
    now, then = here.metrics, there.metrics
    return [
        f"{name}: measured in different ways: {now[name].signature!r}, baseline {then[name].signature!r}"
        for name in now
        if name in then and now[name].signature != then[name].signature
    ]
