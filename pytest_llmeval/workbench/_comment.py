"""The command ``llmeval comment``: a report as Markdown for a pull request."""

import math
import os
import re
import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import starmap
from pathlib import Path
from typing import NamedTuple, TypeAlias, TypeVar

from pytest_llmeval.baselines import Stamp
from pytest_llmeval.cli import CommandResult, say
from pytest_llmeval.core import CaseRecord, GateResult, SnapshotVerdict, SuiteError, counted, interval, number, seconds
from pytest_llmeval.data import InputFile, OutputFile
from pytest_llmeval.gates import Gate
from pytest_llmeval.reports import (
    CaseReport,
    MergeAnswer,
    RunReport,
    SuiteReport,
    text,
    verdict_cells,
)
from pytest_llmeval.workbench._case_changes import (
    CaseFates,
    CaseLine,
    Change,
    ReportComparison,
    all_returned_modes,
    approved_comparison,
    case_fates,
    compare_runs,
    failing_case,
    fenced,
    grouped_cases,
)
from pytest_llmeval.workbench._console import refuse_input
from pytest_llmeval.workbench._report_pair import ReportPair
from pytest_llmeval.workbench._source_links import (
    NO_LINKS,
    SourceLinks,
    commit_id,
    job_repository,
    page_url,
    repository_url,
    source_links,
)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of ``llmeval comment``."""
    parser.description = (
        "Write a JSON report as Markdown for a comment on a pull request: verdict, gates, significant drops, the cases "
        "that got worse with question and answers; all else is collapsed. No token is needed. The exit code is 2 if a "
        "report cannot be used; the comment then says why. A baseline that does not exist is only mentioned."
    )
    parser.add_argument("report", type=Path, metavar="RUN", help="JSON report of the run")
    parser.add_argument("--baseline", type=Path, metavar="BASE", help="JSON report of the run to compare with")
    parser.add_argument("--guard", type=Path, metavar="FILE", help="include this table, which llmeval guard -o wrote")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write to this file, not to standard output")
    parser.add_argument(
        "--repository",
        type=repository_url,
        metavar="URL",
        help="web address of the repository, which cases and commits link to; default: that of the job of GitHub or "
        "GitLab, else no links",
    )
    parser.add_argument(
        "--report-url",
        type=page_url,
        metavar="URL",
        help="web address of the HTML report, to link to; default: the artifacts of the job of GitHub or GitLab",
    )
    parser.add_argument(
        "--commit", type=commit_id, metavar="SHA", help="commit to link to; default: that of the report, or of the job"
    )
    parser.set_defaults(run=_comment, bulk=True)


def _comment(options: Namespace) -> CommandResult:
    """Run ``llmeval comment``: write a report as Markdown for a pull request."""
    code = 0
    baseline, absent = None, ""
    refuse_input(options.output, options.report, options.baseline, options.guard)
    try:
        run = RunReport.read(options.report)
    except SuiteError as error:
        say(error.faults, error=True)
        return _write(2, failure_text(error.faults), options.output)
    if options.baseline is not None and not options.baseline.exists():
        absent = f"{options.baseline} does not exist"
    elif options.baseline is not None:
        try:
            baseline = RunReport.read(options.baseline)
        except SuiteError as error:
            absent, code = str(error.faults[0]), 2
    if absent:
        say([f"no baseline: {absent}"], error=True)
    repository = job_repository(os.environ)
    if options.repository is not None:
        repository = repository._replace(url=options.repository)
    if options.report_url is not None:
        repository = repository._replace(report=options.report_url)
    commits = [options.commit or "", run.run.commit or ""]
    links = source_links(repository, commits, [suite.path for suite in run.suites])
    guard = "" if options.guard is None else InputFile(options.guard).read_text("a table", _SPACE)
    return _write(code, comment_text(run, baseline, absent, links, guard.strip()), options.output)


def _write(code: int, comment: str, path: Path | None) -> CommandResult:
    """Write the pull-request comment to a file, or print it, and return the exit code of ``llmeval comment``."""
    if path is not None:
        OutputFile(path).save_text([comment])
    data = {"comment": comment, "written": [] if path is None else [str(path)]}
    return CommandResult(code, data, text=comment if path is None else "")


MARKER = "<!-- pytest-llmeval -->"
"""First line of every comment, by which a workflow finds its earlier one."""

_SPACE = 52_000
"""Characters of all sections: with headings and summary, a comment stays below 60,000."""
_SECTION = 6_500
_SCREEN = 40
_MOST_ROWS = 50
"""Lines before the fold."""
_WIDTH = 110
"""Characters of a line, about, as code hosts show comments."""
_GATES, _FAULTS, _METRICS = 7, 3, 5
"""Lines for the rows of tables before the fold; cases have the rest."""
_OPEN = 8
"""Verdicts other than passed that are before the fold however many lines they take."""
_MOST_LISTED = 5
"""Cases before the fold."""
_BELOW = 5
"""Lines before the fold for the names of failing cases that do not fit there, and the next command."""
_NAMED = 8
_FOLDED = 10
"""Cases of one fold."""
_LARGE = 0.1
_TARGET = re.compile(r"\]\(http[^)\]]*+\)")

_Item = TypeVar("_Item")
_Earlier: TypeAlias = Mapping[int, Mapping[str, CaseReport]]
"""Identity of a suite of the run to its cases in the baseline, by their ids in the run."""
_CHANGED = ("suite", "metric", "baseline", "now", "change", "95% interval", "cases")
_JUDGED = ("verdict", "suite", "gate", "reason")


def failure_text(faults: Sequence[object]) -> str:
    """The pull-request comment on a run whose report cannot be used."""
    listed = _Sheet().listed([_item(str(fault)) for fault in faults], "fault")
    return "\n".join([MARKER, "## Evaluation: **no report**", "", *listed]) + "\n"


def comment_text(
    run: RunReport,
    baseline: RunReport | None = None,
    absent: str = "",
    links: SourceLinks = NO_LINKS,
    guard: str = "",
) -> str:
    """The pull-request comment on a run, as Markdown.

    Args:
        run: The run.
        baseline: The run to compare with, if there is one.
        absent: Why there is none.
        links: Where files and commits are on the web.
        guard: What the pull request asks less of, as Markdown.
    """
    pair = ReportPair.from_suites(run.suites, () if baseline is None else baseline.suites)
    comparison = compare_runs(pair) if baseline is not None else None
    changes = approved_comparison(run) if comparison is None else comparison
    fates = case_fates(pair)
    earlier = {id(suite): cases for suite, cases in pair.earlier_cases}
    sheet, shared_reason = _Sheet(), run.failure_groups.shared_reason
    answer = MergeAnswer.of_run(run, _before(run, earlier), 0 if changes is None else len(changes.declined))
    # The counts of a run that passed are in the line below.
    heading = answer._replace(why="") if run.verdict == "passed" else answer
    sheet.add(f"{MARKER}\n## Evaluation: {heading.markdown}")
    sheet.add(
        f"{_failures(run, fates, answer.why, compared=baseline is not None)}{_summary(run, comparison, changes, fates)}"
    )
    if run.conclusion is not None and run.conclusion.verdict != "passed":
        sheet.items("Why", [*run.conclusion.why, f"next: {run.conclusion.next_step}"], _item, _GATES)
    sheet.items("Past their limits", _past_limits(run), _item, _GATES)
    for note in run.notes:
        sheet.add(text(note[0].upper() + note[1:]) + ".")
    sheet.add(" ".join([*_costs(run, baseline), _origin(run, baseline, absent, links)]))
    verdicts = sorted(_verdicts(run.suites, earlier), key=lambda verdict: verdict.outcome != "failed")
    open_gates = [verdict for verdict in verdicts if verdict.outcome != "passed"]
    more_gates = sheet.table("Gates", _JUDGED, open_gates, _Verdict.cells, _GATES, least=min(len(open_gates), _OPEN))
    faults = [f"{path}: {fault}" for path, listed in run.faults.items() for fault in listed]
    more_faults = sheet.items("Faulty files", faults, _item, _FAULTS)
    sheet.items(
        "Failure modes that are back",
        list(all_returned_modes(pair, has_baseline=baseline is not None)),
        _item,
        _METRICS + 2,
    )
    declined = changes.declined if changes is not None else []
    more_declined = sheet.table("Declined", _CHANGED, declined, _changed, _METRICS)
    title = "Failing cases" if comparison is None else "What got worse"
    regressed = starmap(failing_case, fates.new) if comparison is None else comparison.regressed
    worse = _start_first(grouped_cases(regressed, shared_reason), run, answer)
    more_worse = _add_worse(sheet, title, worse, links)
    if any(line.lacks_old_answer for line in worse) and not any(line.before and line.before.answers for line in worse):
        sheet.add("The baseline's report has no answers of these cases; `--llmeval-texts=all` keeps them.")

    if guard:
        sheet.add(guard)
    passed = [verdict for verdict in verdicts if verdict.outcome == "passed"]
    sheet.fold_table("More gates" if open_gates else "Gates", _JUDGED, [*more_gates, *passed], _Verdict.cells)
    sheet.fold_items("More faulty files", more_faults, _item)
    sheet.fold_table("Also declined", _CHANGED, more_declined, _changed)
    sheet.fold_items(
        "More failing cases" if comparison is None else "Also got worse", more_worse, lambda each: each.written(links)
    )
    for name, cases in (("Still failing", fates.still), ("Known failures", fates.known), ("Now passing", fates.mended)):
        listed_cases = grouped_cases(starmap(failing_case, cases), shared_reason)
        sheet.fold_items(name, listed_cases, lambda each: each.written(links))
    if changes is not None:
        sheet.fold_table("Improved", _CHANGED, changes.improved, _changed, note=_SIGNIFICANT)
        alone = _ALONE if any(metric.is_significant_alone for metric in changes.unclear) else ""
        sheet.fold_table("Not significant", _CHANGED, changes.unclear, _changed, note=alone)
        sheet.fold_items("Not compared", changes.notes, _item)
    cost = [row for suite in run.suites for row in _cost(suite, pair)]
    sheet.fold_table("Cost by suite", _COST, cost, tuple)
    return sheet.text


_SIGNIFICANT = "Significant at the suite's confidence, by Holm's method over the metrics that it gates or names."
_ALONE = (
    "An interval without 0 is that of one metric alone; among all that are compared, the change is not significant."
)
_COST = ("suite", "judge calls", "judge, USD", "target, USD", "baseline, USD")


def _start_first(worse: Sequence[CaseLine], run: RunReport, answer: MergeAnswer) -> Sequence[CaseLine]:
    """Sort the worse cases of a comment so that those that fail like the headline's case come first."""
    headline = answer.headline
    if headline is None or not headline.case:
        return worse
    name, case = run.suites[headline.place].suite, headline.case
    return sorted(worse, key=lambda line: line.suite.suite != name or case not in (line.case.id, *line.alike))


def _add_worse(sheet: "_Sheet", title: str, worse: Sequence[CaseLine], links: SourceLinks) -> Sequence[CaseLine]:
    """Add the worse cases that fit into a comment, the names of other failing ones, and the next command."""
    most = max(_MOST_LISTED, sum(line.case.outcome in CaseRecord.BAD for line in worse))
    others = sheet.items(title, worse, lambda each: each.written(links), sheet.left - _BELOW, most)
    if failing := [other for other in others if other.case.outcome in CaseRecord.BAD]:
        named = [line.named for line in failing[:_NAMED]]
        more = [f"{len(failing) - _NAMED} more"] if len(failing) > _NAMED else []
        sheet.add(f"Below: {'; '.join([*named, *more])}.")
    if node := next((line.node for line in worse if line.case.outcome in CaseRecord.BAD), ""):
        sheet.add(_code_block(f"pytest --llmeval {shlex.quote(node)}"))
    return others


def _code_block(line: str) -> str:
    """A command of a comment as a code block that code hosts offer to copy, or as text."""
    if not line.isprintable() or "<!--" in line:
        return text(line, cell=False)
    return fenced(line, "sh")


class _Sheet:
    """A builder of the pull-request comment with a line and a character budget."""

    def __init__(self) -> None:
        self._blocks: list[str] = []
        self._space = _SPACE
        self._lines = 0

    @property
    def text(self) -> str:
        return "\n\n".join(self._blocks) + "\n"

    @property
    def left(self) -> int:
        """Lines that are left before the fold."""
        return _SCREEN - self._lines

    def add(self, block: str) -> None:
        """Add a block before the fold."""
        self._blocks.append(block)
        self._lines += _height(block)

    def table(
        self,
        title: str,
        headers: Sequence[str],
        items: Sequence[_Item],
        row: Callable[[_Item], Sequence[str]],
        lines: int,
        least: int = 1,
    ) -> Sequence[_Item]:
        """Add a table of the first items, as many as so many lines hold, and `least`; return the others."""
        fitting = _fitting(items, lambda each: _row(row(each)), lines, least)
        if fitting:
            self.add(f"### {title}")
            body = self.listed([_row(row(item)) for item in fitting], "row")
            self.add("\n".join([_row(headers), _row(["---"] * len(headers)), *body]))
        return items[len(fitting) :]

    def items(
        self,
        title: str,
        items: Sequence[_Item],
        item: Callable[[_Item], str],
        lines: int,
        most: int = _MOST_ROWS,
    ) -> Sequence[_Item]:
        """Add a list of the first items, one and as many as so many lines hold; return the others."""
        fitting = _fitting(items[:most], item, lines - 1)
        if fitting:
            self.add(f"### {title}")
            self.add("\n".join(self.listed(map(item, fitting), "case")))
        return items[len(fitting) :]

    def fold_table(
        self,
        title: str,
        headers: Sequence[str],
        items: Sequence[_Item],
        row: Callable[[_Item], Sequence[str]],
        note: str = "",
    ) -> None:
        """Add a folded table."""
        head = [*([note, ""] if note else []), _row(headers), _row(["---"] * len(headers))]
        self._fold(title, [_row(row(item)) for item in items[:_MOST_ROWS]], head, len(items), "row")

    def fold_items(self, title: str, items: Sequence[_Item], item: Callable[[_Item], str]) -> None:
        """Add a folded list."""
        if not items or not isinstance(items[0], CaseLine):
            self._fold(title, [item(entry) for entry in items[:_MOST_ROWS]], [], len(items), "line")
            return
        counts = [1 + len(line.alike) for line in items if isinstance(line, CaseLine)]
        self._fold(title, [item(line) for line in items[:_FOLDED]], [], sum(counts), "case", counts)

    def _fold(
        self, title: str, lines: Sequence[str], head: Sequence[str], total: int, noun: str, counts: Sequence[int] = ()
    ) -> None:
        if total:
            body = "\n".join([*head, *self.listed(lines, noun, total, counts)])
            self._blocks.append(f"<details><summary>{title} ({total})</summary>\n\n{body}\n\n</details>")

    def listed(
        self, lines: Iterable[str], noun: str, total: int | None = None, counts: Sequence[int] = ()
    ) -> list[str]:
        """Return as many lines as fit into a section, and the number of the others.

        Args:
            lines: The first of them.
            noun: What is counted.
            total: How many there are of it; as many as lines, if ``None``.
            counts: How many each line represents; one each, if empty.
        """
        every = list(lines)
        fitting: list[str] = []
        room = min(_SECTION, self._space)
        for line in every:
            room -= len(line) + 1
            if room < 0:
                break
            fitting.append(line)
            self._space -= len(line) + 1
        left_out = (len(every) if total is None else total) - sum(counts[: len(fitting)] or [len(fitting)])
        return [*fitting, *(["", f"... and {counted(left_out, f'more {noun}')}."] if left_out else [])]


def _height(block: str) -> int:
    """The approximate number of lines that a Markdown block of a comment takes."""
    pieces = [piece for line in _TARGET.sub("]", block).split("\n") for piece in line.split("<br>")]
    return sum(max(1, math.ceil(len(piece) / _WIDTH)) for piece in pieces)


def _fitting(items: Sequence[_Item], written: Callable[[_Item], str], lines: int, least: int = 1) -> Sequence[_Item]:
    """The first items of a comment's list that fit into its lines, at least `least`."""
    used = 0
    for place, item in enumerate(items):
        used += _height(written(item))
        if place >= max(1, least) and used > lines:
            return items[:place]
    return items


def _row(cells: Sequence[str]) -> str:
    """A Markdown table row of the pull-request comment."""
    return f"| {' | '.join(cells)} |"


def _item(line: str) -> str:
    """A list item of the pull-request comment, with its text escaped."""
    return f"- {text(line, cell=False)}"


def _past_limits(run: RunReport) -> list[str]:
    """A sentence for each gate that passed although its value is past the limit, unless the verdict says so."""
    if run.conclusion is not None and run.conclusion.verdict != "passed":
        return []
    return [f"{suite.suite}: {limit}" for suite in run.suites for limit in suite.past_limits]


def _before(run: RunReport, earlier: _Earlier) -> list[Mapping[str, CaseReport]]:
    """The cases of each suite in the baseline, or else the approved ones, by id."""
    return [earlier.get(id(suite)) or own for suite, own in zip(run.suites, run.approved_cases(), strict=True)]


def _failures(run: RunReport, fates: CaseFates, heading: str, *, compared: bool) -> str:
    """The number of failing cases and faulty files, and what the cases share unless the heading has it."""
    cause = run.cause_of(fates.new)
    among = f" {text(str(cause._replace(label='') if cause.label in heading else cause))}"
    counts = [(len(fates.new), "new failure" if compared else "failure", among), (len(run.faults), "faulty file", "")]
    named = [f"{counted(count, noun)}{more}" for count, noun, more in counts if count]
    if fates.still:
        named.append(f"{len(fates.still)} still failing")
    return f"{'; '.join(named)}. " if named else ""


def _gates(run: RunReport) -> list[str]:
    """The outcomes of all gates of a run, across its suites."""
    return [gate.outcome for suite in run.suites for gate in suite.gates]


def _summary(
    run: RunReport, comparison: ReportComparison | None, changes: ReportComparison | None, fates: CaseFates
) -> str:
    """The sentence of the pull-request comment that counts cases, gates and changes since the baseline."""
    parts = [f"{counted(run.total, 'case')}: {', '.join(run.outcome_counts)}"]
    if gates := _gates(run):
        named = {outcome: outcome for outcome in ("passed", "failed", "undecided")} | {"not_judged": "not evaluated"}
        tally = ", ".join(f"{gates.count(outcome)} {name}" for outcome, name in named.items() if outcome in gates)
        parts.append(f"{counted(len(gates), 'gate')}: {tally}")
    of_run = "; ".join(parts).rstrip(": ") + "."
    if changes is None:
        return of_run
    against = {suite.changes.against for suite in run.suites if suite.changes is not None}
    other = "the baseline" if comparison is not None or against == {"baseline"} else "the approved scores"
    kinds = [(changes.declined, "declined"), (changes.improved, "improved"), (changes.unclear, "not significant")]
    changed = [f"{len(metrics)} {kind}" for metrics, kind in kinds if metrics]
    pieces = [", ".join(changed)] if changed else []
    if comparison is not None and len(comparison.regressed) != len(fates.new):
        pieces.append(f"{counted(len(comparison.regressed), 'case')} got worse")
    if comparison is not None and fates.mended:
        pieces.append(f"{len(fates.mended)} now pass")
    listed = "; ".join(pieces)
    against_other = f"{'Metrics against' if changed else 'Against'} {other}: {listed}."
    compared = f"{of_run} {against_other}" if listed else of_run
    large = max(changes.unclear, key=_fall, default=None)
    if large is None or _fall(large) < _LARGE:
        return compared
    moved = f"{number(large.change.baseline)} -> {number(large.change.value)}"
    where = counted(large.change.cases, "case")
    return (
        f"{compared} Not significant, but large: {text(large.name)} of {text(large.suite.suite)} {moved} over {where}."
    )


def _fall(change: Change) -> float:
    """The decline of a metric as a share of its range, by which a comment calls a change large."""
    metric = Gate.split_statistic(change.name)[1]
    low, high = change.suite.ranges.get(metric, (0.0, 0.0))
    difference = change.change.difference or 0.0
    drop = difference if metric in change.suite.lower_is_better else -difference
    return max(0.0, drop / (high - low)) if high > low else 0.0


def _costs(run: RunReport, baseline: RunReport | None) -> Iterator[str]:
    """Yield the cost of judges and targets and the duration of a run, each next to those of the baseline."""
    runs = [run] if baseline is None else [run, baseline]
    calls = sum(suite.usage.calls for suite in run.suites if suite.usage is not None)
    judge, target = ([_money(report, name) for report in runs] for name in ("judge_cost_usd", "target_cost_usd"))
    if any(suite.usage is not None and suite.usage.verdicts for suite in run.suites):
        yield f"Judge: {counted(min(calls, RunReport.LARGEST_COUNT), 'call')}, {_beside(judge)}."
    if target[0] is not None:
        yield f"Target: {_beside(target)}."
    if run.run.duration_s > 0:
        yield f"Time: {_beside([seconds(min(report.run.duration_s, RunReport.LARGEST_COUNT)) for report in runs])}."


def _money(run: RunReport, name: str) -> str | None:
    """The cost of a run over all suites; ``None`` if none is known."""
    used = [suite.usage for suite in run.suites if suite.usage is not None]
    if name == "target_cost_usd":
        used = [report for report in used if report.target_cost_usd is not None]
    if not used:
        return None
    amounts = [getattr(report, name) for report in used]
    return "cost unknown" if None in amounts else f"{number(math.fsum(amounts))} USD"


def _beside(values: Sequence[str | None]) -> str:
    """A cost or duration of a run in the pull-request comment, with that of the baseline in brackets."""
    now, *before = values
    return f"{now}{f' (baseline: {before[0]})' if before and before[0] is not None else ''}"


def _origin(run: RunReport, baseline: RunReport | None, absent: str, links: SourceLinks) -> str:
    """The line of a comment with time and commit of a run, and the age of its baseline."""
    parts = [f"[Report]({links.report})."] if links.report else []
    parts.append(f"Run {_start(run, links)}.")
    if baseline is not None:
        parts.append(f"Baseline {_start(baseline, links)}{_age(run, baseline)}.")
    elif absent:
        parts.append(f"No baseline: {text(absent)}.")
    return " ".join(parts)


def _start(run: RunReport, links: SourceLinks) -> str:
    """The time and linked commit of a run, in the origin line of the pull-request comment."""
    time, commit = Stamp.moment_of(run.run.started_at), run.run.commit
    start = f"of {time:%Y-%m-%d %H:%M} UTC" if time is not None else "of unknown time"
    return f"{start}, commit {links.revision(text(commit[:12]), commit)}" if commit else start


def _age(run: RunReport, baseline: RunReport) -> str:
    """The time between a run and its baseline in words; empty if a report has no start time."""
    now, then = Stamp.moment_of(run.run.started_at), Stamp.moment_of(baseline.run.started_at)
    if now is None or then is None:
        return ""
    age = abs(now - then)
    for unit, noun in ((timedelta(days=1), "day"), (timedelta(hours=1), "hour"), (timedelta(minutes=1), "minute")):
        if age >= unit:
            return f", {counted(age // unit, noun)} {'earlier' if then < now else 'LATER'}"
    return ""


class _Verdict(NamedTuple):
    """The verdict on a gate or an approved score, as a row of a comment."""

    suite: SuiteReport
    judged: GateResult | SnapshotVerdict
    before: Mapping[str, CaseReport]

    @property
    def outcome(self) -> str:
        return self.judged.outcome

    def cells(self) -> Sequence[str]:
        """Return the row."""
        name = self.judged.gate if isinstance(self.judged, GateResult) else f"snapshot {self.judged.metric}"
        outcome, reason = verdict_cells(self.suite, self.judged, self.before or None)
        return (outcome, text(self.suite.suite), text(name), reason)


def _verdicts(suites: Iterable[SuiteReport], earlier: _Earlier) -> Iterator[_Verdict]:
    """Yield the verdicts of a comment's gate table: gates, and approved scores that did not pass."""
    for suite in suites:
        before = earlier.get(id(suite), {})
        yield from (_Verdict(suite, gate, before) for gate in suite.gates)
        yield from (_Verdict(suite, score, before) for score in suite.broken_scores)
        yield from (
            _Verdict(suite, score, before) for score in suite.snapshot if score.outcome not in ("passed", "failed")
        )


def _changed(change: Change) -> tuple[str, ...]:
    """The table cells of a metric that changed since the baseline, for the pull-request comment."""
    difference = change.change
    values = (
        number(difference.baseline),
        number(difference.value),
        number(difference.difference),
        interval(difference.low, difference.high),
    )
    return (text(change.suite.suite), text(change.name), *values, str(difference.cases))


def _cost(suite: SuiteReport, pair: ReportPair) -> Iterator[tuple[str, ...]]:
    """Yield the table cells of the cost of a suite's judges and target, with the cost in the baseline."""
    usage = suite.usage
    if usage is None or not (usage.verdicts or usage.target_cost_usd is not None):
        return
    before = pair.counterpart(suite)
    old = None if before is None else before.usage
    parts = () if old is None else (old.judge_cost_usd, old.target_cost_usd)
    # Beside a known part an unknown one is named: the place says which is of judges.
    was = "n/a" if set(parts) <= {None} else " + ".join(map(number, parts))
    yield (
        text(suite.suite),
        str(min(usage.calls, RunReport.LARGEST_COUNT)),
        number(usage.judge_cost_usd),
        number(usage.target_cost_usd),
        was,
    )
