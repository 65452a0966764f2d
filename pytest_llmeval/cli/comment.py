"""The command ``llmeval comment``: a run as short Markdown for a pull request, with text of cases escaped."""

__all__ = ("MARKER", "Change", "Regressed", "ReportComparison", "add_arguments", "comment_text", "compare_runs")

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pytest_llmeval.cli.console import say, write_text
from pytest_llmeval.cli.paired import PairedScores, pair_suites, paired_scores
from pytest_llmeval.core.errors import SuiteError
from pytest_llmeval.core.results import PASS_RATE, CaseResult
from pytest_llmeval.core.wording import as_line, counted, cut, interval, number
from pytest_llmeval.reports.data import OUTCOMES, RunReport, SuiteReport, count_text
from pytest_llmeval.reports.markdown import MOST_ROWS, VERDICTS, text
from pytest_llmeval.reports.notes import CaseNote
from pytest_llmeval.reports.overview import MOST_LINES
from pytest_llmeval.reports.reading import read_report
from pytest_llmeval.scoring.comparison.compare import Difference, differences
from pytest_llmeval.scoring.comparison.multiplicity import holm
from pytest_llmeval.scoring.limits import TOLERANCE
from pytest_llmeval.snapshots.stamp import moment_of

MARKER = "<!-- pytest-llmeval -->"
"""First line of every comment, by which a workflow finds its earlier one."""

_SECTION = 6_500
"""Characters of a section: a comment of eight stays below 60,000."""
_MOST = 10**12
"""Largest count to display: a forged one can have thousands of digits."""
_CASES = 10
_CONFIDENCE = 0.95
_BAD = ("failed", "errored")


_Item = TypeVar("_Item")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = (
        "Write a JSON report as Markdown for a comment on a pull request: gates, established falls and rises, the "
        "cases that got worse, cost. No token is needed. The exit code is 2 if a report cannot be used; the comment "
        "then says why. A baseline that does not exist is only mentioned."
    )
    parser.add_argument("report", type=Path, metavar="RUN", help="JSON report of the run")
    parser.add_argument("--baseline", type=Path, metavar="BASE", help="JSON report of the run to compare with")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write to this file, not to standard output")
    parser.set_defaults(run=_comment)


def _comment(options: Namespace) -> int:
    code = 0
    baseline, absent = None, ""
    try:
        run = read_report(options.report)
    except SuiteError as error:
        say(error.faults, error=True)
        _write(_failure_text(error.faults), options.output)
        return 2
    if options.baseline is not None and not options.baseline.exists():
        absent = f"{options.baseline} does not exist"
    elif options.baseline is not None:
        try:
            baseline = read_report(options.baseline)
        except SuiteError as error:
            absent, code = str(error.faults[0]), 2
    if absent:
        say([f"no baseline: {absent}"], error=True)
    _write(comment_text(run, baseline, absent), options.output)
    return code


def _write(comment: str, path: Path | None) -> None:
    if path is None:
        sys.stdout.write(comment)
    else:
        write_text(path, [comment])


class Change(NamedTuple):
    """A metric of a suite in both runs."""

    suite: SuiteReport
    metric: str
    found: Difference
    p_value: float


class Regressed(NamedTuple):
    """A case that is worse than in the baseline.

    Attributes:
        suite: Of the case.
        case: Its result now.
        change: Outcome and score, before and now.
        rank: Sorts the worst first: new failures, then what gates look at, then shares of a metric's range; metrics
            without a range, such as seconds, come last.
        before: What the report of the baseline shows of it.
    """

    suite: SuiteReport
    case: CaseResult
    change: str
    rank: tuple[bool, bool, bool, float]
    before: CaseNote = CaseNote()


@dataclass(frozen=True)
class ReportComparison:
    """A run beside its baseline.

    Attributes:
        fell: Metrics that fell significantly, by Holm's method over the metrics of a suite.
        rose: Metrics that rose significantly.
        unclear: Metrics that moved within chance.
        regressed: Cases that got worse, the worst first.
        notes: What was not compared.
    """

    fell: list[Change] = field(default_factory=list)
    rose: list[Change] = field(default_factory=list)
    unclear: list[Change] = field(default_factory=list)
    regressed: list[Regressed] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def compare_runs(run: RunReport, baseline: RunReport) -> ReportComparison:
    """Compare two runs over the cases that ran in both."""
    found = ReportComparison()
    pairs, alone = pair_suites(run.suites, baseline.suites, named=False)
    for suites, where in zip(alone, ("this run", "the baseline"), strict=True):
        found.notes.extend(f"{each.suite} ({each.path}) is only in {where}" for each in suites)
    for here, there in pairs:
        now, then = here.result.metrics, there.result.metrics
        measured = [name for name in now if name in then]
        changed = [name for name in measured if now[name].signature != then[name].signature]
        pair = paired_scores(here, there, [name for name in measured if name not in changed])
        found.notes.extend(f"{here.suite}: {name} is computed in another way" for name in changed)
        found.notes.extend(f"{here.suite}: {name} no longer has a value" for name in pair.vanished)
        found.notes.extend(f"{here.suite}: {each}" for each in _left_out(pair))
        if pair.here.result.cases:
            _sort(found, pair)
            found.regressed.extend(_regressed(pair))
    found.regressed.sort(key=lambda each: each.rank, reverse=True)
    return found


def _left_out(pair: PairedScores) -> Iterator[str]:
    for ids, where in zip(pair.alone, ("this run", "the baseline"), strict=True):
        if ids:
            yield f"{counted(len(ids), 'case')} ran only in {where}"
    if not pair.here.result.cases:
        yield "no case ran in both"


def _sort(found: ReportComparison, pair: PairedScores) -> None:
    """Sort the metrics of a suite into those that fell, rose, or moved within chance."""
    names = [*pair.evaluator.metrics, PASS_RATE]
    rows = pair.pairing.everything()
    compared = differences(pair.pairing, rows, names, confidence=_CONFIDENCE, cluster_by=pair.cluster_by)
    metrics = {name: each for name, each in compared.items() if each.difference is not None}
    adjusted = holm([1.0 if each.p_value is None else each.p_value for each in metrics.values()])
    for (name, each), p_value in zip(metrics.items(), adjusted, strict=True):
        change = Change(pair.here, name, each, p_value)
        if not each.difference:
            continue
        if p_value > 1 - _CONFIDENCE:
            found.unclear.append(change)
        else:
            (found.fell if (each.drop or 0) > 0 else found.rose).append(change)


def _regressed(pair: PairedScores) -> Iterator[Regressed]:
    before = {case.id: case for case in pair.there.result.cases}
    gated = set(pair.here.gated)
    for case in pair.here.result.cases:
        old = before[case.id]
        newly = case.outcome in _BAD and old.outcome not in _BAD
        drops: list[tuple[bool, bool, float, str]] = []
        for name in pair.evaluator.metrics:
            now, then = case.metrics.get(name), old.metrics.get(name)
            if now is not None and then is not None:
                drop = now - then if name in pair.evaluator.lower_is_better else then - now
                low, high = pair.evaluator.ranges.get(name, (0.0, 0.0))
                if drop > TOLERANCE:
                    drops.append((name in gated, high > low, drop / (high - low) if high > low else drop, name))
        looked_at, bounded, share, metric = max(drops, default=(False, False, 0.0, ""))
        if newly or metric:
            parts = [f"{old.outcome} -> {case.outcome}"] if case.outcome != old.outcome else []
            if metric:
                parts.append(f"{metric} {number(old.metrics[metric])} -> {number(case.metrics[metric])}")
            rank = newly, looked_at, bounded, share
            yield Regressed(pair.here, case, "; ".join(parts), rank, pair.there.note(case.id))


def _failure_text(faults: Sequence[object]) -> str:
    """Return the comment on a run whose report cannot be used."""
    return (
        "\n".join([MARKER, "## Evaluation: **no report**", "", *_bounded(list(map(str, faults)), _item, "fault")])
        + "\n"
    )


def comment_text(run: RunReport, baseline: RunReport | None = None, absent: str = "") -> str:
    """Return the comment on a run.

    Args:
        run: The run.
        baseline: The run to compare with, if there is one.
        absent: Why there is none.
    """
    found = compare_runs(run, baseline) if baseline is not None else None
    blocks = [_summary(run, found), _origin(run, baseline, absent)]
    verdicts = [each for suite in run.suites for each in _verdicts(suite)]
    verdicts.sort(key=lambda each: (each[0] != "failed", each[0] == "passed"))
    blocks += _table("Gates", ("verdict", "suite", "gate", "reason"), verdicts, _verdict)
    if found is not None:
        for title, changes in (("Fell", found.fell), ("Rose", found.rose)):
            blocks += _table(title, _CHANGED, changes, _changed, note="Means of case scores; established.")
        rows = [_regressed_case(each) for each in found.regressed]
        blocks += _case_table("Worst regressed cases", "change", rows)
        blocks += _table("Moved within chance", _CHANGED, found.unclear, _changed, most=_CASES)
        blocks += _list("Not compared", found.notes)
    else:
        bad = [(suite, case) for suite in run.suites for case in suite.result.cases if case.outcome in _BAD]
        blocks += _case_table("Failing cases", "outcome", [_failing_case(*each) for each in bad])
    blocks += _list("Faulty files", [f"{path}: {each}" for path, faults in run.faults.items() for each in faults])
    cost = [row for suite in run.suites for row in _cost(suite, baseline)]
    blocks += _table("Cost", ("suite", "judge calls", "judge, USD", "target, USD", "baseline, USD"), cost, tuple)
    outcome = _outcome(run)
    if outcome == "passed" and found is not None and found.fell:
        outcome = f"passed, but {counted(len(found.fell), 'metric')} fell"
    return "\n\n".join([f"{MARKER}\n## Evaluation: {outcome}", *blocks]) + "\n"


def _outcome(run: RunReport) -> str:
    """Return the verdict on the run; it is not passed if anything was not judged."""
    suites = run.suites
    outcomes = [verdict[0] for suite in suites for verdict in _verdicts(suite)]
    if run.faults or "failed" in outcomes or any(_count(suites, each) for each in _BAD):
        return "**failed**"
    if not suites:
        return "**no suite ran**"
    if "not_judged" in outcomes or _count(suites, "not_run"):
        return "**incomplete**"
    return "**undecided**" if "undecided" in outcomes else "passed"


def _count(suites: Iterable[SuiteReport], outcome: str) -> int:
    return min(_MOST, sum(suite.counts.get(outcome, 0) for suite in suites))


def _summary(run: RunReport, found: ReportComparison | None) -> str:
    counts = [count_text(count, name) for name in OUTCOMES if (count := _count(run.suites, name))]
    parts = [f"{counted(_count(run.suites, 'total'), 'case')}: {', '.join(counts)}"]
    gates = [gate.outcome for suite in run.suites for gate in suite.gates]
    if gates:
        others = [
            (gates.count(each), each.replace("_", " "))
            for each in ("failed", "undecided", "not_judged")
            if each in gates
        ]
        rest = "".join(f", {count} {name}" for count, name in others)
        parts.append(f"{counted(len(gates), 'gate')}: {gates.count('passed')} passed{rest}")
    of_run = "; ".join(parts).rstrip(": ") + "."
    if found is None:
        return of_run
    changes = (
        f"{of_run} Against the baseline: {counted(len(found.fell), 'metric')} fell and {len(found.rose)} rose "
        f"(established), {len(found.unclear)} moved within chance; {counted(len(found.regressed), 'case')} got worse."
    )
    large = max(found.unclear, key=_fall, default=None)
    if large is None or _fall(large) < _LARGE:
        return changes
    moved = f"{number(large.found.baseline)} -> {number(large.found.value)}"
    where = counted(large.found.cases, "case")
    return (
        f"{changes} Not established, but large: {text(large.metric)} of {text(large.suite.suite)} {moved} over {where}."
    )


_LARGE = 0.1


def _fall(change: Change) -> float:
    """Return how far a metric fell, as a share of its range; 0 where it has none."""
    low, high = change.suite.ranges.get(change.metric, (0.0, 0.0))
    return max(0.0, (change.found.drop or 0.0) / (high - low)) if high > low else 0.0


def _origin(run: RunReport, baseline: RunReport | None, absent: str) -> str:
    """Return times and commits of run and baseline, and the age of the baseline."""
    parts = [f"Run {_start(run)}."]
    if baseline is not None:
        parts.append(f"Baseline {_start(baseline)}{_age(run, baseline)}.")
    elif absent:
        parts.append(f"No baseline: {text(absent)}.")
    return " ".join(parts)


def _start(run: RunReport) -> str:
    time, commit = moment_of(run.started_at), run.commit
    shown = f"of {time:%Y-%m-%d %H:%M} UTC" if time is not None else "of unknown time"
    return f"{shown}, commit {text(commit[:12])}" if commit else shown


def _age(run: RunReport, baseline: RunReport) -> str:
    now, then = moment_of(run.started_at), moment_of(baseline.started_at)
    if now is None or then is None:
        return ""
    age = abs(now - then)
    for unit, noun in ((timedelta(days=1), "day"), (timedelta(hours=1), "hour"), (timedelta(minutes=1), "minute")):
        if age >= unit:
            return f", {counted(age // unit, noun)} {'earlier' if then < now else 'LATER'}"
    return ""


def _verdicts(suite: SuiteReport) -> Iterator[tuple[str, str, str, str]]:
    """Yield the verdicts on gates, and on scores that differ from the approved ones and did not pass."""
    for gate in suite.gates:
        yield gate.outcome, suite.suite, gate.gate, gate.reason
    for each in suite.snapshot:
        if each.outcome != "passed":
            yield each.outcome, suite.suite, f"snapshot {each.metric}", each.reason


def _verdict(cells: Sequence[str]) -> Sequence[str]:
    outcome, *others = cells
    return (VERDICTS[outcome], *map(text, others))


_CHANGED = ("suite", "metric", "baseline", "now", "change", "95% interval", "cases")


def _changed(change: Change) -> tuple[str, ...]:
    found = change.found
    values = (number(found.baseline), number(found.value), number(found.difference), interval(found.low, found.high))
    return (text(change.suite.suite), text(change.metric), *values, str(found.cases))


def _regressed_case(found: Regressed) -> Sequence[str]:
    now = found.suite.note(found.case.id)
    return (
        _case(found.suite, found.case),
        text(found.change),
        _said(now, found.before),
        _wrong(found.suite, found.case),
    )


def _said(now: CaseNote, before: CaseNote | None = None) -> str:
    """Return the question and both answers, as far as the reports have them; answers from where they differ."""
    notes = [CaseNote() if before is None else before, now]
    question = next((each.input for each in reversed(notes) if each.input is not None), None)
    old, new = (_words(each.answers[0].value) if each.answers else None for each in notes)
    if old is not None and new is not None:
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
        begin = max(0, same - _WORDS_BEFORE)
        old, new = ([*(["..."] if begin else []), *each[begin:]] for each in (old, new))
    shown = [] if question is None else [("asked", _words(question))]
    answers = (("before", old), ("now" if before is not None else "answered", new))
    shown += [(name, words) for name, words in answers if words is not None]
    return "<br>".join(f"{name}: {text(cut(' '.join(words), _SAID))}" for name, words in shown)


def _words(value: Any) -> list[str]:
    """Return the words of a question or an answer; of an object those of its text, where it has one."""
    if isinstance(value, Mapping):
        value = next(
            (value[name] for name in ("answer", "question", "text") if isinstance(value.get(name), str)), value
        )
    return as_line(value).split()


_WORDS_BEFORE = 3
_SAID = 120


def _failing_case(suite: SuiteReport, case: CaseResult) -> Sequence[str]:
    return (_case(suite, case), case.outcome, _said(suite.note(case.id)), _wrong(suite, case))


def _case_table(title: str, middle: str, rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table of cases; without a column for question and answers where the reports have none."""
    headers = ["case", middle, "question and answers", "what is wrong"]
    if not any(row[2] for row in rows[:_CASES]):
        del headers[2]
        rows = [(*row[:2], *row[3:]) for row in rows]
    return _table(title, headers, rows, tuple, most=_CASES)


def _case(suite: SuiteReport, case: CaseResult) -> str:
    return f"{text(case.id)}<br>{text(suite.note(case.id).place(suite.path))}"


def _wrong(suite: SuiteReport, case: CaseResult) -> str:
    """Return the findings of evaluators, or else why the case failed."""
    return "<br>".join(map(text, suite.note(case.id).findings[:MOST_LINES] or [case.reason or ""]))


def _cost(suite: SuiteReport, baseline: RunReport | None) -> Iterator[tuple[str, ...]]:
    usage = suite.usage
    if usage is None or not (usage.verdicts or usage.target_cost_usd is not None):
        return
    before = {(each.path, each.suite): each.usage for each in baseline.suites} if baseline is not None else {}
    old = before.get((suite.path, suite.suite))
    was = "n/a" if old is None else f"{number(old.cost_usd)} + {number(old.target_cost_usd)}"
    yield (text(suite.suite), str(min(usage.calls, _MOST)), number(usage.cost_usd), number(usage.target_cost_usd), was)


def _table(
    title: str,
    headers: Sequence[str],
    items: Sequence[_Item],
    row: Callable[[_Item], Sequence[str]],
    *,
    note: str = "",
    most: int = MOST_ROWS,
) -> list[str]:
    """Return a section with a table; nothing without items."""
    if not items:
        return []
    lines = [_row(headers), _row(["---"] * len(headers))]
    body = _bounded(items, lambda each: _row(row(each)), "row", most)
    return [f"### {title}", *([note] if note else []), "\n".join([*lines, *body])]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _list(title: str, lines: Sequence[str]) -> list[str]:
    return [f"### {title}", "\n".join(_bounded(lines, _item, "line"))] if lines else []


def _item(line: str) -> str:
    return f"- {text(line)}"


def _bounded(items: Sequence[_Item], written: Callable[[_Item], str], noun: str, most: int = MOST_ROWS) -> list[str]:
    """Return lines for as many items as fit into a section, and the number of the others."""
    kept: list[str] = []
    room = _SECTION
    for each in items[:most]:
        line = written(each)
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    rest = len(items) - len(kept)
    return [*kept, *(["", f"... and {counted(rest, f'more {noun}')}."] if rest else [])]
