"""The summary of a run as lines: plain columns that work in 80 columns, without colour, with wide characters."""

__all__ = ("Line", "render", "write_plain_text")

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from tabulate import tabulate

from pytest_llmeval.core.explanations import cut
from pytest_llmeval.core.results import MetricValue
from pytest_llmeval.core.wording import counted, interval, number, printable
from pytest_llmeval.data.files.writing import write_text
from pytest_llmeval.reports.asking import asking_lines
from pytest_llmeval.reports.clusters import cluster_lines
from pytest_llmeval.reports.data import RunReport, SuiteReport
from pytest_llmeval.reports.systems import TextTable, system_tables
from pytest_llmeval.scoring.gates import GateResult, Verdict


class Line(NamedTuple):
    """A line of text and its colour: ``green``, ``red``, ``yellow``, ``bold`` or none."""

    text: str
    colour: str = ""


_NAME_WIDTH = 22
"""Columns that names get on a terminal of 80 columns."""
_OTHER_WIDTH = 58
"""Columns that the numbers beside a name take."""
_FILE_WIDTH = 100
_SAID = 3
"""Lines about each of the worst cases."""
_CUT = len("... (999 more characters)")
_METRICS = 16
"""Metrics listed without ``-v``."""


def write_plain_text(report: RunReport, path: Path) -> None:
    """Write what the terminal shows to a file, without colour."""
    lines = (line.text for line in render(report, verbosity=0, width=_FILE_WIDTH))
    write_text(path, ["".join(f"{line}\n" for line in lines)])


def render(report: RunReport, *, verbosity: int, width: int) -> Iterator[Line]:
    """Yield the lines of the summary.

    Args:
        report: The run.
        verbosity: Below 0 only gates that do not pass; 0 metrics and gates; above 0 groups as well.
        width: Of the terminal, in columns.
    """
    for number_, suite in enumerate(report.suites):
        if verbosity < 0:
            yield from (_gate(each, suite) for each in suite.gates if each.outcome == "failed")
            yield from (_verdict(each, suite) for each in suite.snapshot if each.outcome == "failed")
            yield from _not_judged(suite, suite.suite)
            continue
        if number_:
            yield Line("")
        yield from _suite(suite, verbosity, width)
    for systems in report.systems if verbosity >= 0 else ():
        yield Line("")
        yield Line(printable(systems.title), "bold")
        for table in system_tables(systems, metrics=systems.metrics if verbosity > 0 else systems.compare_by):
            if table.title:
                yield Line("")
                yield Line(printable(table.title))
            yield from _fitted(table, width)


def _suite(suite: SuiteReport, verbosity: int, width: int) -> Iterator[Line]:
    yield Line(printable(f"{suite.suite}  ({suite.path})"), "bold")
    counts = ", ".join(
        f"{count} {name.replace('_', ' ')}" for name, count in suite.counts.items() if count and name != "total"
    )
    yield Line(f"{counted(suite.total, 'case')}: {counts}; pass rate {number(suite.result.pass_rate.value)}")
    yield from map(Line, asking_lines(suite))
    yield from (Line(printable(line), "yellow" * line.startswith("warning")) for line in cluster_lines(suite))
    rows = [
        (
            name,
            number(each.value),
            interval(each.low, each.high),
            number(each.mean),
            each.scored,
            each.undefined,
            each.errored,
            each.missing,
        )
        for name, each in _listed(suite, verbosity).items()
    ]
    cut = len(rows) < len(suite.result.metrics)
    if cut and suite.tables:  # the metrics listed are only some; a table says more
        yield from _tables(suite)
        yield Line("")
    if rows:
        headers = ("metric", "value", suite.interval_name, "mean", "scored", "undef", "err", "miss")
        yield from _table(rows, headers, max(_NAME_WIDTH, width - _OTHER_WIDTH))
    if cut:
        yield Line(f"and {counted(len(suite.result.metrics) - len(rows), 'metric')} more (-v shows them)")
    else:
        yield from _tables(suite)
    for key, groups in suite.result.groups.items():
        if verbosity > 0:
            yield Line("")
            yield from _groups(key, suite, width)
        else:
            yield Line(f"by {key}: {counted(len(groups), 'group')} (-v shows them)")
    if errors := _errors(suite):
        yield Line(printable(f"errors: {errors} (--llmeval-report=errors.json lists them)"))
    yield from (_gate(each) for each in suite.gates if each.outcome != "not_judged")
    yield from _not_judged(suite)
    yield from _snapshot(suite, verbosity)
    if verbosity > 0:
        yield from _worst(suite, width)


def _worst(suite: SuiteReport, width: int) -> Iterator[Line]:
    """List the worst cases, each with what is wrong in the words of its evaluators."""
    if suite.worst is None:
        return
    yield Line("")
    yield Line(printable(f"worst cases by {suite.worst.metric}"))
    for case, score in suite.worst.scores.items():
        yield Line(printable(f"{number(score)}  {case}"))
        said = suite.note(case).said
        yield from (Line(cut(f"  {printable(line)}", width - _CUT)) for line in said[:_SAID])
        if len(said) > _SAID:
            yield Line(f"  and {counted(len(said) - _SAID, 'line')} more")


def _tables(suite: SuiteReport) -> Iterator[Line]:
    for each in suite.tables:
        yield Line("")
        if each.title:
            yield Line(printable(each.title))
        yield from _table(list(each.lines()), each.headers, left=each.text_columns)
        if each.left_out:
            yield Line(f"and {counted(each.left_out, 'row')} more")
        if each.note:
            yield Line(printable(each.note))


def _errors(suite: SuiteReport) -> str:
    """Return how many cases each bucket holds; one whose name several evaluators use has its evaluator's before it."""
    often = Counter(each.bucket.name for each in suite.named_buckets)
    return ", ".join(
        f"{len(each.cases)} {f'{each.evaluator}.' if often[each.bucket.name] > 1 else ''}{each.bucket.name}"
        for each in suite.named_buckets
        if each.cases
    )


def _snapshot(suite: SuiteReport, verbosity: int) -> Iterator[Line]:
    """Tell what is not as approved; the rest is counted."""
    unchanged = [each for each in suite.snapshot if each.kind == "unchanged"]
    told = suite.snapshot if verbosity > 0 else [each for each in suite.snapshot if each.kind != "unchanged"]
    yield from (_verdict(each) for each in told)
    if unchanged and verbosity <= 0:
        yield Line(f"snapshot: {counted(len(unchanged), 'metric')} as approved", "green")
    if any(each.kind in ("improved", "new") for each in suite.snapshot):
        yield Line("snapshot: approve improved and new metrics with --snapshot-update")


def _verdict(verdict: Verdict, suite: SuiteReport | None = None) -> Line:
    where = f"{suite.suite}: " if suite else ""
    if verdict.outcome == "not_judged":
        return Line(printable(f"{where}snapshot {verdict.reason}"), "yellow")
    word, colour = ("PASSED", "green") if verdict.outcome == "passed" else ("FAILED", "red")
    return Line(printable(f"snapshot {word}  {where}{verdict.metric}  ({verdict.reason})"), colour)


def _listed(suite: SuiteReport, verbosity: int) -> Mapping[str, MetricValue]:
    """Return the metrics to list: all if they are few or asked for, else those that gates judge and then the first.

    What a table of an evaluator shows is listed only if it is asked for or judged.
    """
    metrics = suite.result.metrics
    if verbosity > 0 or len(metrics) <= _METRICS:
        return metrics
    words = {word for gate in suite.gates for word in re.split(r"[\s()]+", gate.gate)}
    judged = [name for name in metrics if name in words]
    in_tables = {name for table in suite.tables for name in table.metrics}
    others = [name for name in metrics if name not in in_tables]
    chosen = set(list(dict.fromkeys([*judged, *others]))[: max(_METRICS, len(judged))])
    return {name: value for name, value in metrics.items() if name in chosen}


def _groups(key: str, suite: SuiteReport, width: int) -> Iterator[Line]:
    names = list(suite.result.metrics)
    # A column is as wide as its name or as a number such as 0.1234, after two spaces.
    ends = accumulate(max(len(name), 6) + 2 for name in names)
    room = width - _NAME_WIDTH - len("  cases")
    fitting = max(1, sum(end <= room for end in ends))
    rows = [
        (name, group.cases, *(number(group.metrics[metric].value) for metric in names[:fitting]))
        for name, group in suite.result.groups[key].items()
    ]
    yield from _table(rows, (key, "cases", *names[:fitting]))
    if len(names) > fitting:
        rest = ", ".join(names[fitting:])
        if len(rest) > width - len("(and : see --llmeval-report)"):
            rest = f"{len(names) - fitting} more metrics"
        yield Line(printable(f"(and {rest}: see --llmeval-report)"))


def _fitted(table: TextTable, width: int) -> Iterator[Line]:
    """Draw a table without the columns at its end for which there is no room; these are named or counted."""
    columns = list(zip(table.headers, *table.rows, strict=True))
    ends = list(accumulate(max(map(len, column)) + 2 for column in columns))
    least = len(columns) - table.optional
    fitting = max(least, sum(end - 2 <= width for end in ends))
    left = [place for place in table.texts if place < fitting]
    yield from _table([row[:fitting] for row in table.rows], table.headers[:fitting], width, left)
    if rest := table.headers[fitting:]:
        named = ", ".join(rest)
        named = named if len(named) < width // 2 else counted(len(rest), "column")
        yield Line(printable(f"(and {named}: see --llmeval-report)"))


def _folded(name: str, width: int) -> str:
    """Break a name that is too long: before the label of a family, or else behind an underscore or a blank."""
    lines = []
    while len(name) > width:
        end = name.find("[", 1, width + 1)
        if end < 0:
            end = max(name.rfind("_", 0, width), name.rfind(" ", 0, width)) + 1 or width
        lines.append(name[:end])
        name = name[end:]
    return "\n".join([*lines, name])


def _table(
    rows: Sequence[Sequence[object]],
    headers: Sequence[str],
    name_width: int = _NAME_WIDTH,
    left: Collection[int] = (0,),
) -> Iterator[Line]:
    cells = [[printable(str(cell)) for cell in row] for row in (headers, *rows)]
    # The headers go in as a row: tabulate would make their columns two characters wider than needed.
    text = tabulate(
        [[_folded(name, name_width), *others] for name, *others in cells],
        tablefmt="plain",
        disable_numparse=True,
        colalign=["left" if place in left else "right" for place in range(len(headers))],
        maxcolwidths=[name_width, *[None] * (len(headers) - 1)],
    )
    for line in text.splitlines():
        yield Line(line.rstrip())


def _gate(gate: GateResult, suite: SuiteReport | None = None) -> Line:
    verdict, colour = ("PASSED", "green") if gate.outcome == "passed" else ("FAILED", "red")
    where = f"{suite.suite}: " if suite else ""
    return Line(printable(f"gate {verdict}  {where}{gate.gate}  ({gate.reason})"), colour)


def _not_judged(suite: SuiteReport, name: str = "") -> Iterator[Line]:
    """Say once what all gates of an incomplete suite have in common."""
    waiting = [gate for gate in suite.gates if gate.outcome == "not_judged"]
    if waiting:
        where = f"{name}: " if name else ""
        yield Line(f"{where}{len(waiting)} of {len(suite.gates)} gates {waiting[0].reason}", "yellow")
