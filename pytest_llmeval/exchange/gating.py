"""The verdict on the results of any runner: passed, failed or undecided, with what is missing and the next step."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct, structs, to_builtins

from pytest_llmeval.baselines import SnapshotMode, score_file
from pytest_llmeval.core import (
    EVERYTHING,
    PASS_RATE,
    CaseRecord,
    GateResult,
    LlmevalError,
    SnapshotVerdict,
    counted,
    limit,
    unknown_name,
)
from pytest_llmeval.data import Document
from pytest_llmeval.exchange._arms import UNLIMITED, reference_among, shown_alone, shown_by_arms
from pytest_llmeval.exchange._readers import read_results, results_of
from pytest_llmeval.exchange._result_suites import (
    by_metric,
    key_of,
    metrics_of,
    missing_of,
    names_of,
    records_of,
    suite_of_results,
    with_missing_metrics,
    with_own_names,
)
from pytest_llmeval.exchange.results import ResultRow
from pytest_llmeval.gates import ChangeGate, Gate
from pytest_llmeval.reports import Conclusion, verdicts_of
from pytest_llmeval.run import Checkout, Item, ItemResult, Reported, RunRecord, RunTerms, SuitePart, finish_run
from pytest_llmeval.suites import Suite, SuiteKey

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

_ADD_CASES: Final = "add as many cases as the verdict says, or set the drop that matters with --tolerance"
_FIRST: Final = "nothing to compare with yet"
_LISTED: Final = 3
_OUTCOME: Final = "passed"
"""The metric of runners of tests, which says of each test whether it passed."""
_ALIKE: Final = re.compile(r"cases with the same [^;]+ change alike, [^;]+")
_PASS_RATE: Final = re.compile(rf"\b{PASS_RATE}\b")
_NUMBERS: Final = re.compile(r"; [^;]* -> ")


class GateMode(SnapshotMode, frozen=True):
    """The snapshot mode of the command."""

    def command(self, argument: str, *, suites: bool = True) -> str:
        """Return the command that approves results."""
        del argument, suites
        return "llmeval gate NEW --snapshot-update"


class GateOptions(Struct, frozen=True):
    """What decides the verdict on results.

    Attributes:
        settings: Keys of a suite file, among them gates.
        lower_is_better: Metrics of which less is better.
        approve: Whether the results are approved.
        min_cases: How many cases must be able to tell two arms apart.
        power: A difference of which is said how many cases would find it.
        ranges: Metric to its smallest and largest value; those whose scores all lie in 0 to 1 need none.
        tolerance: The size of a drop that matters, where a gate has no `max_drop`; default: a share of the range.
        approving: What approves the results.
    """

    settings: Document
    lower_is_better: Sequence[str] = ()
    approve: bool = False
    min_cases: int = 1
    power: float | None = None
    ranges: Mapping[str, tuple[float, float]] = {}
    tolerance: float | None = None
    approving: str = "llmeval gate NEW --snapshot-update"

    @property
    def reference(self) -> str:
        """The arm that others are compared with."""
        return str(self.settings.data.get("reference", REFERENCE))


class GateVerdict(Struct, frozen=True):
    """The verdict on results.

    Attributes:
        word: What is known.
        decision: What the gates decide.
        why: What decides it, a sentence each.
        next_step: What to do.
        missing: What is missing, counted and named.
        errored: How many cases errored.
        notes: What cases show about arms, and what would be found.
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
        """Yield the verdict for people."""
        yield from (f"missing: {each}" for each in self.missing)
        yield from self.notes
        head, *others = self.why
        yield f"{self.word}: {head}"
        yield from (f"  {each}" for each in others[:_LISTED])
        if len(others) > _LISTED:
            yield f"  ... and {len(others) - _LISTED} more"
        yield f"next: {self.next_step}"

    def data(self, code: int) -> dict[str, Any]:
        """Return the verdict as JSON data."""
        head = {"verdict": self.word, "exit_code": code, "why": list(self.why), "next": self.next_step}
        counts = {"errored": self.errored, "missing": list(self.missing), "notes": list(self.notes)}
        return {**head, **counts, "cases": to_builtins(self.proofs), "suites": verdicts_of(self.finished.report)}


def judge_results(
    rows: Sequence[ResultRow],
    baseline: Sequence[ResultRow],
    expected: Sequence[ResultRow],
    options: GateOptions,
    root: Path,
) -> GateVerdict:
    """Judge results.

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
    rows, baseline, expected = map(with_own_names, (rows, baseline, expected))
    names = names_of(rows, "suite")
    gone = [each for each in names_of([*baseline, *expected], "suite") if each not in names]
    missing = [f"no result of the suite {each!r}" for each in gone]
    suites: dict[Path, Suite] = {}
    compared: dict[SuiteKey, Sequence[CaseRecord]] = {}
    record = RunRecord()
    for name in names:
        news, olds, musts = ([row for row in each if row.suite == name] for each in (rows, baseline, expected))
        systems, arms = names_of(news, "system"), names_of([*olds, *musts], "system")
        absent = [each for each in arms if each and len(arms) > 1 and each not in systems]
        suite, records, old = _run(news, _named_as(olds, systems), _named_as(musts, systems), options, root)
        missing += [*(f"no result of {each}, which {name!r} had" for each in absent), *missing_of(records)]
        suites[suite.path] = suite
        record.selected.add(str(suite.path))
        for system, of_system in records.items():
            key = key_of(name, system, root)
            part = SuitePart(key, suite.total, of_system)
            record.items[Item(key.display_path, system)] = ItemResult(part, "passed", 0.0)
            if old is not None:
                compared[key] = old.get(system or systems[0], old.get(system, ()))
    mode = GateMode(update=options.approve)
    finished = finish_run(
        record, RunTerms(compares=True, family="project"), Checkout(root, {}, loaded=suites), mode, baselines=compared
    )
    return _verdict(finished, missing, options)


def _run(
    rows: Sequence[ResultRow],
    baseline: Sequence[ResultRow],
    expected: Sequence[ResultRow],
    options: GateOptions,
    root: Path,
) -> tuple[Suite, SystemRecords, SystemRecords | None]:
    """Return a suite and its records, and those of the baseline; ``None`` if the approved scores are the baseline."""
    _check_signatures(rows, baseline)
    planned = [*expected, *baseline]
    metrics = metrics_of([*rows, *planned])
    if not metrics:
        raise LlmevalError(f"nothing is measured: there are errors only, such as {rows[0].error!r}")
    if unknown := [each for each in [*options.lower_is_better, *options.ranges] if each not in metrics]:
        raise LlmevalError("\n".join(unknown_name("metric", each, metrics) for each in unknown))
    rows, baseline = with_missing_metrics(by_metric(rows, metrics), planned), by_metric(baseline, metrics)
    suite_of = partial(
        suite_of_results,
        root=root,
        ranges=_ranges([*rows, *baseline], options.ranges),
        lower_is_better=options.lower_is_better,
    )
    settings = _completed(options, rows, root, has_baseline=bool(baseline))
    suite = suite_of(rows, settings, expected=[row.case for row in planned])
    # An error is no failure of a gate: it keeps the verdict open.
    suite = structs.replace(suite, gates=tuple(_open_to_errors(each, options) for each in suite.gates))
    if suite.snapshot and "gates" not in options.settings.data:  # is a drop significant? Not: is there one?
        suite = structs.replace(suite, snapshot=replace(suite.snapshot, yields=True))
    old = records_of(baseline, suite_of(baseline, Document(settings.file, {})), root) if baseline else None
    return suite, records_of(rows, suite, root, planned), old


def _open_to_errors(gate: Gate, options: GateOptions) -> Gate:
    """Return a gate that tolerates errors, with the size of the drop that matters."""
    if isinstance(gate, ChangeGate):
        return replace(gate, max_errors=UNLIMITED, matters=options.tolerance)
    return replace(gate, max_errors=UNLIMITED)


def _named_as(rows: Sequence[ResultRow], systems: Sequence[str]) -> Sequence[ResultRow]:
    """Return rows; those of a single system, where the results have one system too, get its name.

    A model or a version that is compared with another one has another name.
    """
    if len(systems) == len(names_of(rows, "system")) == 1:
        return [structs.replace(row, system=systems[0]) for row in rows]
    return rows


def _check_signatures(rows: Sequence[ResultRow], baseline: Sequence[ResultRow]) -> None:
    """Refuse to compare what was computed in two ways."""
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
    """Return the ranges of metrics: those declared, and 0 to 1 where all scores lie between them.

    Raises:
        LlmevalError: A score lies outside of a range that is declared.
    """
    scores = [(row.metric, row.score, row.case) for row in rows if row.score is not None]
    for name, score, case in scores:
        low, high = declared.get(name, (-math.inf, math.inf))
        if not low <= score <= high:
            raise LlmevalError(f"found {name} {limit(score)} in case {case!r}, expected {limit(low)} to {limit(high)}")
    outside = {name for name, score, _ in scores if not 0 <= score <= 1}
    return {name: (0.0, 1.0) for name, *_ in scores if name not in outside} | dict(declared)


def _completed(options: GateOptions, rows: Sequence[ResultRow], root: Path, *, has_baseline: bool) -> Document:
    """Return settings with the default question, if there are no gates, and with the approved scores, if any.

    Without anything to compare with there is no question. Without arms, systems are compared with none of them.
    """
    systems = names_of(rows, "system")
    keys = [key_of(rows[0].suite, each, root) for each in (systems if len(systems) > 1 else [""])]
    data = dict(options.settings.data)
    approved = options.approve or any(score_file(key).exists() for key in keys)
    drops = any(map(_is_drop, data.get("gates") or ()))
    data.setdefault("snapshot", (approved or drops) and not has_baseline)
    if "gates" in data and "thresholds" not in data:
        data["gates"] = [_on_outcomes(each, metrics_of(rows)) for each in data["gates"] or ()]
    if "gates" not in data:
        base = reference_among(systems, options.reference)
        questions: list[dict[str, Any]]
        if approved or has_baseline:
            questions = [{"max_drop": 0}]
        else:
            questions = [{"min_gain": 0, "rule": "decided", "against": base}] if base is not None else []
        data["gates"] = [{"metric": name, **question} for question in questions for name in metrics_of(rows)]
    return replace(options.settings, data=data)


def _on_outcomes(gate: Any, metrics: Sequence[str]) -> Any:
    """Return a gate on the pass rate as one on the outcomes that the tool wrote: nothing else says what passed.

    Raises:
        LlmevalError: The tool wrote none.
    """
    text = gate if isinstance(gate, str) else str(gate.get("metric", "")) if isinstance(gate, Mapping) else ""
    if not _PASS_RATE.search(text):
        return gate
    if _OUTCOME not in metrics:
        known = f"expected a gate on a metric such as {metrics[0]}, or thresholds" if metrics else "expected a metric"
        raise LlmevalError(f"found a gate on {PASS_RATE}, and the results do not say which cases passed: {known}")
    named = _PASS_RATE.sub(_OUTCOME, text)
    return named if isinstance(gate, str) else {**gate, "metric": named}


def _is_drop(gate: Any) -> bool:
    """Return whether a gate is one on a drop from a baseline, as a text or as a mapping."""
    if isinstance(gate, str):
        return gate.lstrip().startswith("drop(")
    return isinstance(gate, Mapping) and "max_drop" in gate and not gate.get("against")


def _verdict(finished: Reported, missing: Sequence[str], options: GateOptions) -> GateVerdict:
    report = finished.report
    verdicts: list[GateResult | SnapshotVerdict] = []
    for suite in report.suites:
        verdicts += [*suite.gates, *suite.snapshot]
    verdicts += [each for _, each in finished.verdicts if each not in verdicts]
    cases = [case for suite in report.suites for case in suite.cases]
    errored, ungated = _errored_cases(finished)
    failing = sum(case.outcome == "failed" for case in cases)
    refused = [each for each in verdicts if each.outcome == "failed"]
    # A run with other cases than the approved one is no worse.
    unmeasured = [
        each for each in refused if (each.value is None if isinstance(each, GateResult) else each.metric == EVERYTHING)
    ]
    failed = [_sentence(each) for each in refused if each not in unmeasured]
    failed += [f"{counted(failing, 'case')} below its thresholds"] if failing else []
    open_ = [_sentence(each) for each in verdicts if each.outcome in ("undecided", "not_judged") or each in unmeasured]
    gates = options.settings.data.get("gates") or [{}]
    tolerated = min(each.get("max_errors", 0) if isinstance(each, Mapping) else 0 for each in gates)
    unscored = errored if errored > tolerated else 0
    open_ += [f"no score: {counted(unscored, 'case')} errored"] if unscored else []
    by_proof, notes, few = shown_by_arms(finished.judged.suites, options.reference, options.min_cases, options.power)
    judged = [each for each in verdicts if isinstance(each, GateResult)]
    claims = sum(isinstance(each, GateResult) and bool(each.word) for each in verdicts)
    if claims > 1:
        notes.append(f"{claims} gates on changes are one family, with the level of one")
    notes += dict.fromkeys(match for each in judged for match in _ALIKE.findall(each.reason))
    notes += [f"no score, and no gate reads it: {each}" for each in ungated]
    if not verdicts:
        notes += shown_alone(finished.judged.suites)
    open_ += [*missing, *few, *finished.shortfalls]
    unjudged = unmeasured or not verdicts or any(each.outcome == "not_judged" for each in verdicts)
    measured = not (missing or unscored or finished.shortfalls or unjudged)
    decision: GateDecision = "passed"
    word: Word
    if failed:
        fell = any(isinstance(each, GateResult) and each.word == "worse" for each in refused)
        decision, word, why = "failed", "worse" if fell else "failed", failed
        next_step = "look at the cases above; --report page.html shows each of them"
    elif options.approve and not open_:
        word, why, next_step = "passed", ["the results are approved"], "compare later results: llmeval gate NEW"
    elif not verdicts and not open_:
        decision, word, why = "undecided", "cannot tell", [_FIRST]
        next_step = f"make these results the baseline: {options.approving}"
    elif open_:
        other_cases = any(isinstance(each, SnapshotVerdict) for each in unmeasured)
        decision, word, why, next_step = "undecided", "cannot tell", open_, _next_step(missing or other_cases, unscored)
    else:
        word, why, next_step = _known(judged, len(cases))
    why = list(dict.fromkeys(why))
    conclusion = Conclusion("undecided" if word == "cannot tell" else decision, why, next_step)
    run = structs.replace(finished, report=structs.replace(report, conclusion=conclusion))
    return GateVerdict(word, decision, why, next_step, missing, errored, run, notes, by_proof, measured)


def _errored_cases(finished: Reported) -> tuple[int, list[str]]:
    """Return how many cases errored in what gates read, and the metrics that none reads, with their errored cases."""
    errored, ungated = 0, Counter[str]()
    for each in finished.judged.suites:
        read = {*each.suite.judged_metrics, *(verdict.metric for verdict in each.snapshot.verdicts)}
        for record in each.records:
            failed = {name for own in record.observations.values() for name in own.errored}
            lost = bool(record.errors) or bool(failed & read if read else failed)
            errored += lost
            if not lost:
                ungated.update(failed)
    return errored, [f"{name} in {counted(count, 'case')}" for name, count in ungated.items()]


def _known(judged: Sequence[GateResult], cases: int) -> tuple[Word, list[str], str]:
    """Return what is known about results that no gate stops: the word, sentences and the next step.

    A fall beyond its limit that is not significant comes before a rise of another metric.
    """
    changes = [each for each in judged if each.word]
    passed = [f"{counted(len(judged), 'gate')} passed in {counted(cases, 'case')}"]
    if not changes:
        return "passed", [*passed, *map(_sentence, judged)], "nothing to do"
    open_ = [each for each in changes if each.word == "cannot tell"]
    fell = [each for each in open_ if each.value is not None and each.limit is not None and each.value > each.limit]
    rose = [each for each in changes if each.word == "better"]
    decisive = fell or rose or open_ or changes
    sentences = [each.known for each in decisive]
    sentences += [f"{each.word}: {each.known}" for each in changes if each not in decisive]
    limits = [_sentence(each) for each in judged if not each.word]
    step = _ADD_CASES if decisive[0].word == "cannot tell" else "nothing to do"
    return decisive[0].word or "passed", [*sentences, *limits, *passed], step


def _next_step(missing: Sequence[str] | bool, errored: int) -> str:
    if missing:
        return "run what is missing, and judge all results together"
    if errored:
        return "run the cases that errored again"
    return f"{_ADD_CASES}; --undecided pass accepts an undecided result"


def _sentence(verdict: GateResult | SnapshotVerdict) -> str:
    if isinstance(verdict, GateResult):
        # What is undecided comes first; the numbers behind it are in the report.
        reason = verdict.headline
        if verdict.outcome == "undecided":
            reason = _NUMBERS.split(verdict.reason)[0].removeprefix("cannot tell: ")  # which is the word
        return f"{verdict.gate}: {reason}"
    return f"snapshot {verdict.metric}: {verdict.reason}"


def gate(
    results: Any,
    *gates: str | Mapping[str, Any],
    baseline: Any = None,
    name: str = "",
    lower_is_better: Sequence[str] = (),
    undecided: Literal["pass", "fail"] = "fail",
    folder: "Path | str | None" = None,
    approve: bool = False,
    ranges: Mapping[str, tuple[float, float]] = {},
    tolerance: float | None = None,
) -> GateVerdict:
    """Judge the results of another runner, and raise unless they pass.

    Args:
        results: The report of pydantic-evals, deepeval or another tool that is known, a data frame or rows of the
            fields of `llmeval schema results`, or the path of a file of results.
        gates: Such as ``accuracy >= 0.8``, ``drop(accuracy) <= 0.05`` or ``lift(accuracy) >= 0.1``, or mappings as in
            suite files. Default: is anything worse than the baseline, and could we have seen it?
        baseline: Results to compare with; default: the approved ones.
        name: Of the suite, by which approved scores are found; default: that of the results, which several keep.
        lower_is_better: Metrics of which less is better.
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
    rows, before = (_rows_of(each, name) for each in (results, baseline))
    settings = Document("gate()", {"gates": list(gates)} if gates else {})
    options = GateOptions(
        settings,
        tuple(lower_is_better),
        approve,
        ranges=ranges,
        tolerance=tolerance,
        approving="pytest --snapshot-update with the fixture, or gate(..., approve=True)",
    )
    verdict = judge_results(rows, before, (), options, Path(folder or Path.cwd()).resolve())
    if verdict.code(undecided):
        raise AssertionError("\n".join(verdict.lines()))
    return verdict


def _rows_of(data: Any, name: str) -> list[ResultRow]:
    if data is None:
        return []
    rows = read_results(Path(data), str(data)) if isinstance(data, str | Path) else results_of(data)
    single = len(names_of(rows, "suite")) == 1
    return [structs.replace(row, suite=name) for row in rows] if name and single else rows
