"""The verdict on the results of any runner."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from msgspec import Struct, structs, to_builtins

from pytest_llmeval.baselines import SnapshotMode
from pytest_llmeval.core import (
    CaseRecord,
    GateResult,
    LlmevalError,
    Metric,
    SnapshotVerdict,
    counted,
    limit,
    unknown_name,
)
from pytest_llmeval.data import Document
from pytest_llmeval.exchange._arms import UNLIMITED, reference_among, shown_alone, shown_by_arms
from pytest_llmeval.exchange._assumptions import Assumptions, assumptions
from pytest_llmeval.exchange._causes import Situation, step_of
from pytest_llmeval.exchange._identities import Positions, named_by_content
from pytest_llmeval.exchange._readers import REPORT, read_results, results_of
from pytest_llmeval.exchange._result_suites import (
    approved_rows,
    baseline_records,
    by_metric,
    key_of,
    metrics_of,
    missing_of,
    names_of,
    records_of,
    suite_of_results,
    with_missing_metrics,
    with_own_names,
    with_texts,
)
from pytest_llmeval.exchange.results import ResultRow, ResultRows
from pytest_llmeval.gates import ChangeGate, Gate
from pytest_llmeval.reports import SuiteReport
from pytest_llmeval.run import Checkout, Reported, RunRecord, RunTerms, finish_run
from pytest_llmeval.suites import LoadedSuite, Registry, SuiteKey

GateDecision: TypeAlias = Literal["passed", "failed", "undecided"]
"""What the gates decide about results, by which the exit code goes."""

Word: TypeAlias = Literal["worse", "better", "no drop", "cannot tell", "passed", "failed"]
"""What is known about results; ``passed`` and ``failed`` are about limits."""

SystemRecords: TypeAlias = Mapping[str, Sequence[CaseRecord]]
"""System to the records of a suite."""

REFERENCE: Final = "without"
"""The arm that others are compared with, unless the settings name another as ``reference``."""

CODES: Final[Mapping[GateDecision, int]] = {"passed": 0, "failed": 1, "undecided": 2}
"""GateDecision to exit code; results that cannot be read are undecided as well."""

_FIRST: Final = "nothing to compare with yet"
_LISTED: Final = 3
_OUTCOME: Final = "passed"
"""The metric of runners of tests, which says of each test whether it passed."""
_ALIKE: Final = re.compile(r"cases with the same (?:(?!cases with)[^;])+? change alike, [^;]+")
_PASS_RATE: Final = re.compile(rf"\b{Metric.PASS_RATE}\b")
_NUMBERS: Final = re.compile(r"; [^;]* -> ")


class GateMode(SnapshotMode, frozen=True):
    """The snapshot mode of ``llmeval gate``."""

    def command(self, argument: str, *, suites: bool = True) -> str:
        """Return the command that approves results."""
        del argument, suites
        return "llmeval gate NEW --snapshot-update"


class GateOptions(Struct, frozen=True):
    """The gates and settings that decide the verdict on a runner's results.

    Attributes:
        settings: Keys of a suite file, among them gates.
        lower_is_better: Metrics of which less is better.
        higher_is_better: Metrics of which more is, against what their name says.
        approve: Whether the results are approved.
        anchor: Whether the approved results become the anchor, from which drift is measured.
        min_cases: How many cases must be able to tell two arms apart.
        power: A difference of which is said how many cases would find it.
        ranges: Metric to its smallest and largest value; those whose scores all lie in 0 to 1 need none.
        tolerance: The size of a drop that matters, where a gate has no `max_drop`; default: a share of the range.
        approving: What approves the results.
        facts: What is known of files and options.
    """

    settings: Document
    lower_is_better: Sequence[str] = ()
    higher_is_better: Sequence[str] = ()
    approve: bool = False
    anchor: bool = False
    min_cases: int = 1
    power: float | None = None
    ranges: Mapping[str, tuple[float, float]] = {}
    tolerance: float | None = None
    approving: str = "llmeval gate NEW --snapshot-update"
    facts: Situation = Situation()

    @property
    def reference(self) -> str:
        """The arm that others are compared with."""
        return str(self.settings.data.get("reference", REFERENCE))

    @property
    def has_gates(self) -> bool:
        """Whether gates are asked for."""
        return "gates" in self.settings.data


class GateVerdict(Struct, frozen=True):
    """The verdict on a runner's results.

    Attributes:
        word: What is known.
        decision: What the gates decide.
        why: What decides it, a sentence each.
        next_step: What to do.
        missing: What is missing, counted and named.
        errored: How many cases errored.
        notes: What cases show about arms, and what would be found.
        assumed: What is taken for granted about metrics and ids.
        proofs: Arm and metric to what its cases show.
        is_measured: Whether all is there that the verdict needs, so that only chance can keep it undecided.
        finished: The finished run, with its report.
    """

    word: Word
    decision: GateDecision
    why: Sequence[str]
    next_step: str
    missing: Sequence[str]
    errored: int
    finished: Reported
    notes: Sequence[str] = ()
    assumed: Sequence[str] = ()
    proofs: Mapping[str, Mapping[str, Sequence[str]]] = {}
    is_measured: bool = True

    def code(self, undecided: Literal["pass", "fail"] | None = None) -> int:
        """Return the exit code.

        Args:
            undecided: What an undecided verdict does; what was not measured never passes. Default: a code of its own.
        """
        if self.decision != "undecided" or undecided is None:
            return CODES[self.decision]
        if undecided == "fail":
            return CODES["failed"]
        return CODES["passed" if self.is_measured else "undecided"]

    def lines(self) -> Iterator[str]:
        """Yield the verdict for people, at the end, as a terminal shows it."""
        yield from self._context()
        yield from self._decision()

    def failure(self) -> str:
        """Return the verdict for a test that fails, at the beginning, which pytest's summary shows."""
        return "\n".join([*self._decision(), *self._context()])

    def _context(self) -> Iterator[str]:
        yield from (f"missing: {gap}" for gap in self.missing)
        yield from self.assumed
        yield from self.notes

    def _decision(self) -> Iterator[str]:
        head, *others = self.why
        yield f"{self.word}: {head}"
        yield from (f"  {other}" for other in others[:_LISTED])
        if len(others) > _LISTED:
            yield f"  ... and {len(others) - _LISTED} more"
        yield f"next: {self.next_step}"

    def data(self, code: int) -> dict[str, Any]:
        """Return the verdict as JSON data."""
        head = {"verdict": self.word, "exit_code": code, "why": list(self.why), "next": self.next_step}
        counts = {
            "errored": self.errored,
            "missing": list(self.missing),
            "assumed": list(self.assumed),
            "notes": list(self.notes),
        }
        return {**head, **counts, "cases": to_builtins(self.proofs), "suites": self.finished.report.verdict_data()}


def judge_results(
    rows: Sequence[ResultRow],
    baseline: Sequence[ResultRow],
    expected: Sequence[ResultRow],
    options: GateOptions,
    root: Path,
) -> GateVerdict:
    """Judge a runner's results by gates, a baseline or approved scores.

    Args:
        rows: The results.
        baseline: To compare with; empty: the approved ones.
        expected: Rows whose cases, systems, metrics and repeats must be there.
        options: Gates and settings.
        root: The folder of approved scores and history.

    Raises:
        LlmevalError: There is nothing to judge by, or settings do not fit the results.
    """
    if baseline and options.approve:
        raise LlmevalError("found --snapshot-update with --baseline, expected one of them: approved results replace it")
    notes = [note for side in (rows, baseline) if isinstance(side, ResultRows) for note in side.notes]
    rows, baseline, expected = named_by_content(*map(with_own_names, (rows, baseline, expected)))
    names = names_of(rows, "suite")
    gone = [suite for suite in names_of([*baseline, *expected], "suite") if suite not in names]
    missing = [f"no result of the suite {suite!r}" for suite in gone]
    strangers = (names[0], gone[0]) if baseline and not set(names) & set(names_of(baseline, "suite")) else None
    suites: dict[Path, LoadedSuite] = {}
    compared: dict[SuiteKey, Sequence[CaseRecord]] = {}
    record = RunRecord()
    parts = []
    for name in names:
        news, olds, musts = ([row for row in side if row.suite == name] for side in (rows, baseline, expected))
        part = _part_of(news, olds, musts, options, root)
        parts.append(part)
        systems, arms = names_of(news, "system"), names_of([*olds, *musts], "system")
        absent = [arm for arm in arms if arm and len(arms) > 1 and arm not in systems]
        missing += [*(f"no result of {arm}, which {name!r} had" for arm in absent), *part.missing]
        suites[part.suite.path] = part.suite
        record.selected.add(str(part.suite.path))
        for system, of_system in part.records.items():
            key = key_of(name, system, root)
            record.add_records(key, part.suite.total, of_system)
            if part.baseline is not None:
                compared[key] = part.baseline.get(system or systems[0], part.baseline.get(system, ()))
    errored = [name for part in parts for name in _errored_in(part)]
    tolerated = min((_max_errors(gate) for gate in options.settings.data.get("gates") or ()), default=0)
    facts = structs.replace(
        options.facts,
        suites=strangers,
        cases=next((part.strangers for part in parts if part.strangers), None),
        gone=_all_of(part.gone for part in parts),
        new=_all_of(part.new for part in parts),
        rescaled=_all_of(part.assumptions.rescaled.values() for part in parts),
        moved=next((part.moved for part in parts if part.moved), ""),
        skipped=_all_of(part.skipped for part in parts),
        errored=errored if len(errored) > tolerated else (),
        missing=missing,
        again=_again([row for row in rows if row.error]),
        approving=options.approving if not baseline else "",
        approves=options.approve,
    )
    mode = GateMode(update=options.approve, anchor=options.anchor)
    finished = finish_run(
        record, RunTerms(compares=True, family="project"), Checkout(root, {}, loaded=suites), mode, baselines=compared
    )
    notes += _all_of(part.notes for part in parts)
    verdict = _verdict(_with_texts_of(finished, parts, options), facts, notes, options, len(errored))
    return structs.replace(verdict, assumed=_all_of(part.assumed for part in parts))


def _max_errors(gate: Any) -> int:
    """The number of errored cases that a gate on results tolerates."""
    return int(gate.get("max_errors", 0)) if isinstance(gate, Mapping) else 0


class _ResultsPart(NamedTuple):
    """The results of one suite, before ``llmeval gate`` judges them.

    Attributes:
        suite: Made of them.
        records: System to records.
        baseline: The records of the baseline; ``None`` if the approved scores are the baseline.
        rows: The results.
        olds: The rows of the baseline, or of the approved scores.
        missing: Sentences about what is missing.
        skipped: Cases that were skipped, and have a score in the baseline.
        gone: Metrics that only the baseline has.
        new: Metrics that only the results have.
        strangers: The first case of each side, if none is in common.
        moved: The sentence about ids that are positions.
        assumptions: About the metrics.
        assumed: Lines about these, and about ids.
        notes: Lines about cases that were skipped.
    """

    suite: LoadedSuite
    records: SystemRecords
    baseline: SystemRecords | None
    rows: Sequence[ResultRow]
    olds: Sequence[ResultRow]
    missing: Sequence[str]
    skipped: Sequence[str]
    gone: Sequence[str]
    new: Sequence[str]
    strangers: tuple[str, str] | None
    moved: str
    assumptions: Assumptions
    assumed: Sequence[str]
    notes: Sequence[str]


def _part_of(
    rows: Sequence[ResultRow],
    baseline: Sequence[ResultRow],
    expected: Sequence[ResultRow],
    options: GateOptions,
    root: Path,
) -> _ResultsPart:
    """The results of one suite next to its baseline, which may be the approved scores."""
    name, systems = rows[0].suite, names_of(rows, "system")
    _check_signatures(rows, baseline)
    is_file = bool(baseline)
    if not is_file and not options.approve:
        baseline = approved_rows(name, systems, root)
    ids = [dict.fromkeys(row.case for row in side if not row.content) for side in (rows, baseline)]
    positions = Positions(*ids)
    left_out = {(row.system, row.case) for row in rows if row.skipped}
    rows = [row for row in rows if not row.skipped]
    if left_out:
        left_out -= {(row.system, row.case) for row in rows}
    baseline, expected = ([row for row in _named_as(side, systems) if not row.skipped] for side in (baseline, expected))
    if not rows:
        raise LlmevalError(f"nothing is measured: {counted(len(left_out), 'case')} skipped")
    here, there = metrics_of(rows), metrics_of([row for row in baseline if row.score is not None])
    gone, new = ([metric for metric in own if metric not in other] for own, other in ((there, here), (here, there)))
    if not baseline or not here:  # errors of all metrics hide which there are
        gone, new = [], []
    ignored = () if options.has_gates else gone  # one sentence says so, in place of an error of each case
    planned = [*expected, *(row for row in baseline if row.metric not in ignored)]
    metrics = metrics_of([*rows, *planned])
    if not metrics:
        raise LlmevalError(f"nothing is measured: there are errors only, such as {rows[0].error!r}")
    declared = [*options.lower_is_better, *options.higher_is_better]
    if unknown := [metric for metric in [*declared, *options.ranges] if metric not in metrics]:
        raise LlmevalError("\n".join(unknown_name("metric", metric, metrics) for metric in unknown))
    known = [*declared, *(row.metric for row in [*rows, *baseline] if row.lower_is_better or row.tool == REPORT)]
    assumed = assumptions(rows, baseline, known, options.ranges)
    cases, others = names_of(rows, "case"), names_of(baseline, "case")
    rows, baseline = with_missing_metrics(by_metric(rows, metrics), planned), by_metric(baseline, metrics)
    suite_of = partial(
        suite_of_results,
        root=root,
        ranges=_ranges([*rows, *baseline], options.ranges),
        lower_is_better=[*options.lower_is_better, *assumed.falling],
        higher_is_better=options.higher_is_better,
    )
    judged = [metric for metric in metrics if metric not in (*new, *gone, *assumed.ungated, *assumed.rescaled)]
    if positions.moved:  # which case is which is not known
        judged = []
    settings = _completed(options, rows, judged, has_baseline=is_file, is_approved=bool(baseline) and not is_file)
    suite = suite_of(rows, settings=settings, expected=[row.case for row in planned])
    if options.has_gates:
        read, changes = set(suite.judged_metrics), {gate.metric for gate in suite.regressions}
        gone, new = [metric for metric in gone if metric in read], [metric for metric in new if metric in changes]
        compared = changes | {gate.metric for gate in suite.gates if isinstance(gate, ChangeGate)}
        assumed = assumed.about(compared)
    # An error is no failure of a gate: it keeps the verdict open.
    suite = structs.replace(suite, gates=tuple(_open_to_errors(gate, options) for gate in suite.gates))
    if suite.snapshot and suite.snapshot.metrics is None:  # whether cases passed is nothing that results say
        suite = structs.replace(suite, snapshot=replace(suite.snapshot, metrics=tuple(metrics)))
    planned_cases = {(row.system if suite.systems else "", row.case) for row in planned}
    skips = {(system if suite.systems else "", case) for system, case in left_out}
    records = records_of(rows, suite, root, planned, skips)
    skipped = [case for system, case in skips if (system, case) in planned_cases]
    silent = len(skips) - len(skipped)
    return _ResultsPart(
        suite=suite,
        records=records,
        baseline=baseline_records(baseline, suite, partial(suite_of, settings=Document(settings.file, {})), root)
        if is_file
        else None,
        rows=rows,
        olds=baseline,
        missing=list(missing_of(records)),
        skipped=sorted(skipped),
        gone=gone,
        new=new,
        strangers=(cases[0], others[0]) if others and not set(cases) & set(others) else None,
        moved=positions.moved,
        assumptions=assumed,
        assumed=[*assumed.lines(), *(positions.notes() if baseline else ())],
        notes=[
            *([f"{counted(silent, 'case')} skipped, here and in the baseline"] if silent and baseline else []),
            *([f"{counted(silent, 'case')} skipped"] if silent and not baseline else []),
        ],
    )


def _all_of(lists: Iterable[Iterable[str]]) -> list[str]:
    """The texts that the suites of a verdict on results list, each once."""
    return list(dict.fromkeys(text for texts in lists for text in texts))


def _again(rows: Sequence[ResultRow]) -> str:
    """The command by which the tool that wrote errored results repeats them; empty if it has none."""
    tools = {row.tool for row in rows}
    table = Registry.installed().results_formats.get(tools.pop()) if len(tools) == 1 else None
    return "" if table is None else table.again


def _errored_in(part: _ResultsPart) -> Iterator[str]:
    """Yield the cases of results that errored in what the suite's gates read; in any metric, if it has none."""
    read = set(part.suite.judged_metrics)
    for system, records in part.records.items():
        for record in records:
            failed = {name for own in record.observations.values() for name in own.errored}
            if record.errors or (failed & read if read else failed):
                yield f"{record.id}[{system}]" if system else record.id


def _open_to_errors(gate: Gate, options: GateOptions) -> Gate:
    """A gate on results that tolerates errors, with the size of the drop that matters."""
    if isinstance(gate, ChangeGate):
        return replace(gate, max_errors=UNLIMITED, matters=options.tolerance)
    return replace(gate, max_errors=UNLIMITED)


def _named_as(rows: Sequence[ResultRow], systems: Sequence[str]) -> Sequence[ResultRow]:
    """Baseline or expected rows; those of a single system, where the results have one system too, get its name.

    A model or a version that is compared with another one has another name.
    """
    names = names_of(rows, "system")
    if len(systems) == len(names) == 1 and names != [*systems]:
        return [structs.replace(row, system=systems[0]) for row in rows]
    return rows


def _check_signatures(rows: Sequence[ResultRow], baseline: Sequence[ResultRow]) -> None:
    """Refuse to compare results with a baseline whose metrics were computed in another way."""
    before = {row.metric: row.signature for row in baseline if row.score is not None}
    faults = [
        f"{row.metric}: computed as {row.signature!r}, in the baseline as {before[row.metric]!r}: not comparable, run "
        "the baseline anew"
        for row in rows
        if row.score is not None and before.get(row.metric, row.signature) != row.signature
    ]
    if faults:
        raise LlmevalError("\n".join(dict.fromkeys(faults)))


def _ranges(rows: Iterable[ResultRow], declared: Mapping[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """The ranges of metrics in results: those declared, and 0 to 1 where all scores lie between them.

    Raises:
        LlmevalError: A score lies outside of a range that is declared.
    """
    scores = [(row.metric, row.score, row.case) for row in rows if row.score is not None]
    for name, score, case in scores if declared else ():
        low, high = declared.get(name, (-math.inf, math.inf))
        if not low <= score <= high:
            raise LlmevalError(f"found {name} {limit(score)} in case {case!r}, expected {limit(low)} to {limit(high)}")
    outside = {name for name, score, _ in scores if not 0 <= score <= 1}
    return {name: (0.0, 1.0) for name, *_ in scores if name not in outside} | dict(declared)


def _completed(
    options: GateOptions, rows: Sequence[ResultRow], judged: Sequence[str], *, has_baseline: bool, is_approved: bool
) -> Document:
    """Settings of a suite of results with the default gates, if it has none, and approved scores, if any.

    Without anything to compare with there is no question. Without arms, systems are compared with none of them.

    Args:
        options: Gates and settings.
        rows: The results.
        judged: The metrics that have a gate by default.
        has_baseline: Whether rows are the baseline.
        is_approved: Whether the approved scores are.
    """
    systems = names_of(rows, "system")
    data = dict(options.settings.data)
    approved = options.approve or is_approved
    drops = any(map(_is_change, data.get("gates") or ()))
    data.setdefault("snapshot", (approved or drops) and not has_baseline)
    base = reference_among(systems, options.reference)
    if base is not None:
        data["reference"] = base
    if "gates" in data and "thresholds" not in data:
        data["gates"] = [_on_outcomes(gate, metrics_of(rows)) for gate in data["gates"] or ()]
    if "gates" not in data:
        questions: list[dict[str, Any]]
        if approved or has_baseline:
            questions = [{"max_drop": 0}]
        else:
            questions = [{"min_gain": 0, "rule": "decided", "against": base}] if base is not None else []
        data["gates"] = [{"metric": name, **question} for question in questions for name in judged]
    return replace(options.settings, data=data)


def _on_outcomes(gate: Any, metrics: Sequence[str]) -> Any:
    """A gate on the pass rate as one on the outcomes that the tool wrote: nothing else says what passed.

    Raises:
        LlmevalError: The tool wrote none.
    """
    text = gate if isinstance(gate, str) else str(gate.get("metric", "")) if isinstance(gate, Mapping) else ""
    if not _PASS_RATE.search(text):
        return gate
    if _OUTCOME not in metrics:
        known = f"expected a gate on a metric such as {metrics[0]}, or thresholds" if metrics else "expected a metric"
        raise LlmevalError(
            f"found a gate on {Metric.PASS_RATE}, and the results do not say which cases passed: {known}"
        )
    named = _PASS_RATE.sub(_OUTCOME, text)
    return named if isinstance(gate, str) else {**gate, "metric": named}


def _is_change(gate: Any) -> bool:
    """Whether a gate on results is one on a change against a baseline, as a text or as a mapping."""
    if isinstance(gate, str):
        return gate.lstrip().startswith(("drop(", "gain("))
    return isinstance(gate, Mapping) and bool({"max_drop", "min_gain"} & gate.keys()) and not gate.get("against")


def _with_texts_of(finished: Reported, parts: Sequence[_ResultsPart], options: GateOptions) -> Reported:
    """A finished run of results with case texts in its report, without snapshot verdicts that nobody asked for.

    An approved baseline and a file are one path: gates decide in both.
    """
    names = {part.suite.name: part for part in parts}
    limited = "thresholds" in options.settings.data
    suites = []
    for suite in finished.report.suites:
        part = names[suite.base_name]
        judged = "snapshot" in options.settings.data
        verdicts = [verdict for verdict in suite.snapshot if judged or verdict.kind in _UNUSABLE]
        judged_suite = structs.replace(suite, snapshot=verdicts)
        suites.append(with_texts(judged_suite if limited else judged_suite.as_scored(), part.rows, part.olds))
    systems = [system if limited else system.without(Metric.PASS_RATE) for system in finished.report.systems]
    report = structs.replace(finished.report, suites=suites, systems=systems)
    unlimited = {judged.suite.cannot_fail for judged in finished.judged.suites}  # which nobody expects of results
    notes = [note for note in finished.notes if not any(line in note for line in unlimited)]
    return structs.replace(finished, report=report, notes=notes)


_UNUSABLE: Final = ("unreadable", "not_written", "missing")
"""Verdicts on approved scores that cannot be compared, or could not be written."""


def _verdict(
    finished: Reported, facts: Situation, notes: Sequence[str], options: GateOptions, errored: int
) -> GateVerdict:
    """The verdict on a finished run of results: its word and decision, the reasons and the next step."""
    report = finished.report
    verdicts: list[tuple[SuiteReport, GateResult | SnapshotVerdict]] = []
    for suite in report.suites:
        verdicts += [*((suite, result) for result in suite.gates), *((suite, verdict) for verdict in suite.snapshot)]
    several = len({suite.base_name for suite in report.suites}) > 1
    whose = {
        id(verdict): (suite.suite if several else suite.variant) + ": " if several or suite.variant else ""
        for suite, verdict in verdicts
    }
    sentences = {id(verdict): _sentence(verdict, whose[id(verdict)]) for _, verdict in verdicts}
    known = [verdict for _, verdict in verdicts]
    unwritten = [
        verdict
        for _, verdict in finished.verdicts
        if isinstance(verdict, SnapshotVerdict) and verdict.kind == "not_written" and verdict not in known
    ]
    failing = sum(case.outcome == "failed" for suite in report.suites for case in suite.cases)
    refused = [verdict for verdict in known if verdict.outcome == "failed"]
    # A run with other cases than the approved one is no worse.
    unmeasured = [
        verdict
        for verdict in refused
        if (verdict.value is None if isinstance(verdict, GateResult) else verdict.metric == SnapshotVerdict.EVERYTHING)
    ]
    failed = [sentences[id(verdict)] for verdict in refused if verdict not in unmeasured]
    accepting = f"; {options.approving} --snapshot-anchor accepts it"
    failed = [reason.removesuffix(".") + accepting if "drift(" in reason else reason for reason in failed]
    failed += [f"{counted(failing, 'case')} below its thresholds"] if failing else []
    waiting = [verdict for verdict in known if verdict.outcome in ("undecided", "not_judged") or verdict in unmeasured]
    open_ = [
        *facts.opens,
        *(sentences[id(verdict)] for verdict in waiting),
        *(_sentence(verdict, "") for verdict in unwritten),
    ]
    by_proof, of_arms, few = shown_by_arms(finished.judged.suites, options.reference, options.min_cases, options.power)
    judged = [verdict for verdict in known if isinstance(verdict, GateResult)]
    notes = [*notes, *of_arms]
    if sum(bool(result.word) for result in judged) > 1:
        notes.append(
            f"{sum(bool(result.word) for result in judged)} gates on changes are one family, with the level of one"
        )
    alike = dict.fromkeys(match for verdict in judged for match in _ALIKE.findall(verdict.reason))
    notes += alike
    facts = structs.replace(
        facts,
        reasons=[verdict.reason for verdict in judged if verdict.outcome == "undecided"],
        alike=[text.rpartition("cluster_by: ")[2] for text in alike],
    )
    notes += [f"no score, and no gate reads it: {error}" for error in _ungated_errors(finished)]
    if not known and not facts.new:
        notes += shown_alone(finished.judged.suites)
    open_ += [*facts.missing, *few, *finished.shortfalls]
    unjudged = unmeasured or not known or any(result.outcome == "not_judged" for result in judged)
    measured = facts.is_measured and not (finished.shortfalls or unjudged)
    decision: GateDecision = "passed"
    word: Word
    if failed:
        fell = any(isinstance(verdict, GateResult) and verdict.word == "worse" for verdict in refused)
        decision, word, why, outcome = "failed", "worse" if fell else "failed", failed, "failed"
    elif options.approve and not open_:
        word, why, outcome = "passed", ["the results are approved"], "approved"
    elif not known and not open_:
        decision, word, why, outcome = "undecided", "cannot tell", [_FIRST], "first"
    elif open_:
        decision, word, why, outcome = "undecided", "cannot tell", open_, "open"
    else:
        word, why = _known(
            [(whose[id(verdict)], verdict) for verdict in judged], sum(len(suite.cases) for suite in report.suites)
        )
        outcome = "few" if word == "cannot tell" else "passed"
    next_step = step_of(facts, outcome)
    why = list(dict.fromkeys(why))
    concluded = report.with_conclusion("undecided" if word == "cannot tell" else decision, why, next_step)
    run = structs.replace(finished, report=concluded)
    return GateVerdict(word, decision, why, next_step, facts.missing, errored, run, notes, (), by_proof, measured)


def _ungated_errors(finished: Reported) -> list[str]:
    """The metrics of results that no gate reads, with the number of cases that errored in nothing else."""
    ungated = Counter[str]()
    for suite in finished.judged.suites:
        read = set(suite.suite.judged_metrics)
        for record in suite.records if read else ():
            failed = {name for own in record.observations.values() for name in own.errored}
            if not record.errors and not failed & read:
                ungated.update(failed)
    return [f"{name} in {counted(count, 'case')}" for name, count in ungated.items()]


def _known(judged: Sequence[tuple[str, GateResult]], cases: int) -> tuple[Word, list[str]]:
    """The verdict on results that no gate stops, as a word and as sentences.

    A fall beyond its limit that is not significant comes before a rise of another metric.

    Args:
        judged: Each gate behind the words that name its system; empty words if there is one.
        cases: Their number.
    """
    changes = [(whose, result) for whose, result in judged if result.word]
    passed = [f"{counted(len(judged), 'gate')} passed in {counted(cases, 'case')}"]
    if not changes:
        return "passed", [*passed, *(_sentence(result, whose) for whose, result in judged)]
    open_ = [(whose, change) for whose, change in changes if change.word == "cannot tell"]
    fell = [
        (whose, result)
        for whose, result in open_
        if result.value is not None and result.limit is not None and result.value > result.limit
    ]
    rose = [(whose, change) for whose, change in changes if change.word == "better"]
    decisive = fell or rose or open_ or changes
    sentences = [f"{whose}{result.known}" for whose, result in decisive]
    sentences += [
        f"{change.word}: {whose}{change.known}" for whose, change in changes if (whose, change) not in decisive
    ]
    limits = [_sentence(result, whose) for whose, result in judged if not result.word]
    return decisive[0][1].word or "passed", [*sentences, *limits, *passed]


def _sentence(verdict: GateResult | SnapshotVerdict, whose: str) -> str:
    """The sentence of a verdict by a gate or by approved scores, after the suite or system that it is about."""
    if isinstance(verdict, GateResult):
        # What is undecided comes first; the numbers behind it are in the report.
        reason = verdict.headline
        if verdict.outcome == "undecided":
            reason = _NUMBERS.split(verdict.reason)[0].removeprefix("cannot tell: ")  # which is the word
        return f"{whose}{verdict.gate}: {reason}"
    return f"{whose}snapshot {verdict.metric}: {verdict.reason}"


def gate(
    results: Any,
    *gates: str | Mapping[str, Any],
    baseline: Any = None,
    name: str = "",
    lower_is_better: Sequence[str] = (),
    higher_is_better: Sequence[str] = (),
    undecided: Literal["pass", "fail"] = "fail",
    folder: "Path | str | None" = None,
    approve: bool = False,
    ranges: Mapping[str, tuple[float, float]] = {},
    tolerance: float | None = None,
) -> GateVerdict:
    """Judge the results of another runner, and raise unless they pass.

    Args:
        results: The report of pydantic-evals, deepeval or another tool that is known; a data frame or rows; or a path.
        gates: Such as ``accuracy >= 0.8``, ``drop(accuracy) <= 0.05`` or ``lift(accuracy) >= 0.1``, or mappings as in
            suite files. Default: is anything worse than the baseline, and could we have seen it?
        baseline: Results to compare with; default: the approved ones.
        name: Of the suite, by which approved scores are found; default: that of the results, which several keep.
        lower_is_better: Metrics of which less is better, besides costs and errors, which are known by their names.
        higher_is_better: Metrics of which more is better, against what their names say.
        undecided: What an undecided verdict does; results that are missing or errored never pass.
        folder: Of approved scores and history; default: the current one.
        approve: Approve the results.
        ranges: Metric to its smallest and largest value, such as ``{"grade": (1, 5)}``.
        tolerance: The size of a drop that matters, in the unit of the metric; default: 0.05 of its range.

    Returns:
        The verdict.

    Raises:
        AssertionError: The results fail, or they are undecided and that is to fail.
        LlmevalError: There is nothing to judge by, or the results have faults.
    """
    rows, before = (_rows_of(side, name) for side in (results, baseline))
    settings = Document("gate()", {"gates": list(gates)} if gates else {})
    options = GateOptions(
        settings,
        tuple(lower_is_better),
        tuple(higher_is_better),
        approve,
        ranges=ranges,
        tolerance=tolerance,
        approving="pytest --snapshot-update with the fixture, or gate(..., approve=True)",
    )
    verdict = judge_results(rows, before, (), options, Path(folder or Path.cwd()).resolve())
    __tracebackhide__ = True  # of pytest: the sentence is what failed, and not this line
    if verdict.code(undecided):
        raise AssertionError(verdict.failure())
    return verdict


def _rows_of(data: Any, name: str) -> list[ResultRow]:
    """The rows of results that ``gate()`` gets as an object or a path; empty for ``None``."""
    if data is None:
        return []
    rows = read_results(Path(data), str(data)) if isinstance(data, str | Path) else results_of(data)
    single = len(names_of(rows, "suite")) == 1
    return [structs.replace(row, suite=name) for row in rows] if name and single else rows
