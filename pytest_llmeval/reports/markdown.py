"""The Markdown report, for files and for GitHub's job summary."""

__all__ = ("append_markdown", "text", "to_markdown", "write_markdown")

import re
from collections.abc import Sequence
from pathlib import Path

from tabulate import tabulate

from pytest_llmeval.core.explanations import as_line
from pytest_llmeval.core.wording import counted, interval, number, printable, seconds
from pytest_llmeval.data.files.writing import append_text, write_text
from pytest_llmeval.reports.asking import asking_lines
from pytest_llmeval.reports.clusters import cluster_lines
from pytest_llmeval.reports.data import RunReport, SuiteReport
from pytest_llmeval.reports.systems import system_tables

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~&$@])")
_LINK = re.compile(r"://|www\.|[^\s@]@[^\s@]|mailto:|xmpp:|@\w|[#!]\d|\bgh-\d", re.IGNORECASE)
"""What becomes a link, a mention or a reference after Markdown has been read, so that a backslash does not stop it."""
_LISTED = 50
_LONGEST = 300
_SAID = 3
"""Lines about a case in the table of the worst."""

_SIGNS = {"passed": "passed", "failed": "**FAILED**", "not_judged": "not judged"}


def text(value: str) -> str:
    r"""Write any text as Markdown that shows it and does nothing else: no markup, no HTML, no line break.

    What GitHub and GitLab would turn into a link, a mention or a reference is shown as code.

    >>> text("a|b <b>"), text("see https://example.org")
    ('a\\|b \\<b\\>', '`see https://example.org`')
    """
    shortened = value if len(value) <= _LONGEST else value[:_LONGEST] + "..."
    shown = printable(" ".join(shortened.split()))
    if _LINK.search(shown):
        fence = "`" * (max(map(len, re.findall("`+", shown)), default=0) + 1)
        space = " " if "`" in shown else ""
        inert = shown.replace("|", r"\|").replace("<!--", r"<\!--")
        return f"{fence}{space}{inert}{space}{fence}"
    return _SPECIAL.sub(r"\\\1", shown)


def _table(rows: Sequence[Sequence[str]], headers: Sequence[str]) -> str:
    return tabulate(rows, headers, tablefmt="github", disable_numparse=True)


def to_markdown(report: RunReport) -> str:
    """Return the report as GitHub-flavoured Markdown."""
    lines = ["# Evaluation report", ""]
    commit = f", commit `{report.commit[:12]}`" if report.commit else ""
    lines += [
        f"{report.started_at}, {seconds(report.duration_s)}, pytest-llmeval-suite {report.version}{commit}",
        "",
    ]
    for suite in report.suites:
        lines += _suite(suite)
    for systems in report.systems:
        lines += [f"## {text(systems.title)}", ""]
        for table in system_tables(systems, metrics=systems.metrics, joined=True):
            lines += [f"### {text(table.title)}", ""] if table.title else []
            lines += [_table([list(map(text, row)) for row in table.rows], list(map(text, table.headers))), ""]
    if not report.suites:
        lines += ["No suite ran.", ""]
    if report.faults:
        rows = [(text(path), text(fault)) for path, faults in report.faults.items() for fault in faults]
        lines += ["## Faulty files", "", _table(rows[:_LISTED], ("suite", "fault")), ""]
        if len(rows) > _LISTED:
            lines += [f"... and {len(rows) - _LISTED} more.", ""]
    return "\n".join(lines).rstrip() + "\n"


def _suite(suite: SuiteReport) -> list[str]:
    counts = ", ".join(
        f"{count} {name.replace('_', ' ')}" for name, count in suite.counts.items() if count and name != "total"
    )
    lines = [
        f"## {text(suite.suite)}",
        "",
        (
            f"{text(suite.path)}: {counted(suite.total, 'case')}: {counts}; "
            f"pass rate {number(suite.result.pass_rate.value)}"
        ),
        "",
    ]
    for line in (*asking_lines(suite), *cluster_lines(suite)):
        lines += [text(line), ""]
    rows = [
        (
            text(name),
            number(each.value),
            interval(each.low, each.high),
            number(each.mean),
            str(each.scored),
            str(each.undefined),
            str(each.errored),
            str(each.missing),
        )
        for name, each in suite.result.metrics.items()
    ]
    if rows:
        lines += [
            _table(rows, ("metric", "value", suite.interval_name, "mean", "scored", "undefined", "errored", "missing")),
            "",
        ]
    for each in suite.tables:
        if each.title:
            lines += [f"### {text(each.title)}", ""]
        lines += [_table([list(map(text, row)) for row in each.lines()], list(map(text, each.headers))), ""]
        if each.left_out:
            lines += [f"... and {each.left_out} more.", ""]
        if each.note:
            lines += [text(each.note), ""]
    if suite.gates:
        gates = [(_SIGNS[gate.outcome], text(gate.gate), text(gate.reason)) for gate in suite.gates]
        lines += ["### Gates", "", _table(gates, ("verdict", "gate", "reason")), ""]
    told = [each for each in suite.snapshot if each.kind != "unchanged"]
    if told:
        changes = [(_SIGNS[each.outcome], text(each.metric), text(each.reason)) for each in told]
        lines += ["### Snapshot", "", _table(changes, ("verdict", "metric", "reason")), ""]
    for key, groups in suite.result.groups.items():
        names = list(suite.result.metrics)
        body = [
            (text(name), str(group.cases), *(number(group.metrics[metric].value) for metric in names))
            for name, group in groups.items()
        ]
        lines += [f"### By {text(key)}", "", _table(body, (text(key), "cases", *map(text, names))), ""]
    lines += _error_analysis(suite)
    bad = [case for case in suite.result.cases if case.outcome in ("failed", "errored")]
    if bad:
        listed = [(text(case.id), case.outcome, text(case.reason or "")) for case in bad[:_LISTED]]
        lines += ["### Failing cases", "", _table(listed, ("case", "outcome", "reason")), ""]
        if len(bad) > _LISTED:
            lines += [f"... and {len(bad) - _LISTED} more.", ""]
    return lines + _notes(suite) + _worst(suite)


def _notes(suite: SuiteReport) -> list[str]:
    """Return the texts of cases, and what is wrong with their answers: of failing ones, or of all."""
    noted = [(case.id, note) for case in suite.result.cases if (note := suite.note(case.id)).has_texts]
    lines = []
    for case, note in noted[:_LISTED]:
        place = f"{suite.path}:{note.line}" if note.line else suite.path
        texts = note.texts()
        answers = texts.pop("answers", None)
        if answers:
            del texts["prediction"]
        rows = [(name, as_line(value)) for name, value in texts.items()]
        rows += [
            (f"prediction, {counted(each['times'], 'time')}", as_line(each["prediction"])) for each in answers or ()
        ]
        lines += [f"#### {text(case)}", "", f"- at {text(place)}"]
        lines += [f"- {name}: {text(value)}" for name, value in rows]
        lines += [f"- {text(line)}" for line in note.said]
        lines.append("")
    if len(noted) > _LISTED:
        lines += [f"... and {len(noted) - _LISTED} more.", ""]
    return lines


def _worst(suite: SuiteReport) -> list[str]:
    """Return a table of the worst cases, with what is wrong with their answers."""
    if suite.worst is None:
        return []
    rows = [
        (text(case), number(score), "; ".join(map(text, suite.note(case).said[:_SAID])))
        for case, score in suite.worst.scores.items()
    ]
    metric = text(suite.worst.metric)
    return ["### Worst cases", "", _table(rows, ("case", metric, "what is wrong")), ""]


def _error_analysis(suite: SuiteReport) -> list[str]:
    """Return a table of the buckets that hold a case."""
    rows = []
    for each in suite.named_buckets:
        if each.cases:
            ids = ", ".join(case.id for case in each.cases[:_LISTED])
            rest = f", and {len(each.cases) - _LISTED} more" if len(each.cases) > _LISTED else ""
            condition = f"{each.bucket.metric} {each.bucket.limit}"
            rows.append((text(each.bucket.name), text(condition), str(len(each.cases)), text(ids) + rest))
    return ["### Error analysis", "", _table(rows, ("errors", "where", "cases", "which")), ""] if rows else []


def write_markdown(report: RunReport, path: Path) -> None:
    """Write the report to a file."""
    write_text(path, [to_markdown(report)])


def append_markdown(report: RunReport, path: Path) -> None:
    """Append the report to a file that other steps write to as well, such as GitHub's job summary."""
    append_text(path, to_markdown(report))
