"""The command ``llmeval history``: the last runs and approvals of a suite."""

import textwrap
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from unicodedata import east_asian_width

from msgspec import to_builtins

from pytest_llmeval.cli.console import CommandResult, count, say, write_text
from pytest_llmeval.core.errors import LlmevalError, SuiteError
from pytest_llmeval.core.wording import counted, interval, number, printable, suggest, unknown_name

if TYPE_CHECKING:
    from pytest_llmeval.reports.tables import Point, Timeline

_WIDTH = 80
_LAST = 20
_TABLES = 3
_CHARTS = 6
_COMMIT = 7


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = (
        "Print the last runs and approvals of a suite: values, intervals, gates, commits, and where data, evaluator or "
        "judge changed. Runs are read from .llmeval/history.jsonl, approvals from the suite's score file. The exit "
        "code is 1 if there are none, and 2 if there is no such suite or metric."
    )
    parser.add_argument(
        "suite",
        metavar="SUITE",
        help="a suite file, the name of a suite below this folder, or a module of Python tests",
    )
    parser.add_argument("--metric", action="append", metavar="NAME", help="show only this metric; can be repeated")
    parser.add_argument(
        "--last", type=count, default=_LAST, metavar="N", help=f"how many runs and approvals (default: {_LAST})"
    )
    parser.add_argument("--svg", type=Path, metavar="FILE", help="draw them to this file as well")
    parser.set_defaults(run=_history, code_of_faults=2)


def _history(options: Namespace) -> CommandResult:
    from pytest_llmeval.baselines.history import read_history

    suite = _suite(options.suite)
    history = read_history(suite, _root(suite))
    if history.faults:
        say([f"left out for {counted(len(history.faults), 'fault')}:", *history.faults], error=True)
    if not history.timelines:
        say(_wrapped(f"{suite}: no runs and no approvals: they are noted for suites with 'snapshot'"), error=True)
        return CommandResult(1, {"timelines": []})
    known = dict.fromkeys(name for each in history.timelines for name in each.metrics)
    unknown = [name for name in options.metric or () if name not in known]
    if unknown:
        raise LlmevalError("\n".join(unknown_name("metric", name, known) for name in unknown))
    drawn = [replace(each, points=each.points[-options.last :]) for each in history.timelines]
    if options.svg is not None:
        from pytest_llmeval.baselines.history import history_svg

        metrics = {each.title: _chosen(each, options.metric, _CHARTS) for each in drawn}
        write_text(options.svg, [history_svg(drawn, metrics)])
    lines = [line for each in history.timelines for line in _lines(each, options.metric, options.last)]
    return CommandResult(0, {"timelines": to_builtins(drawn)}, lines)


def _suite(name: str) -> Path:
    """Return the suite file of a path or name.

    Raises:
        LlmevalError: There is none of this name, or there are several.
    """
    if Path(name).is_file():
        return Path(name)
    from pytest_llmeval.baselines.history import noted_paths
    from pytest_llmeval.cli.suite_file import suite_files
    from pytest_llmeval.data.files.places import stem_of

    files = {path: {path.name, stem_of(path.name), _name(path)} - {""} for path in suite_files(Path())}
    matches = [path for path, names in files.items() if name in names]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise LlmevalError(f"found {len(matches)} suites {name!r}, expected one: {', '.join(map(str, matches))}")
    if name in noted_paths(Path.cwd()):
        return Path(name)  # the file is gone, its history is not
    near = suggest(name, {each for names in files.values() for each in names})
    raise LlmevalError(f"found no suite {name!r} here, expected a suite file or the name of one{near}")


def _name(path: Path) -> str:
    """Return the name in a suite file; empty if it cannot be read."""
    from pytest_llmeval.data.files.documents import read_document

    try:
        data = read_document(path, str(path)).data
    except SuiteError:
        return ""
    name = data.get("suite") if isinstance(data, Mapping) else None
    return name if isinstance(name, str) else ""


def _root(suite: Path) -> Path:
    """Return the folder with the history of a suite: the nearest one above it, or else this one."""
    from pytest_llmeval.baselines.history import HISTORY

    folders = suite.resolve().parents
    return next((each for each in folders if (each / HISTORY).exists()), Path.cwd())


def _chosen(timeline: "Timeline", names: Sequence[str] | None, most: int) -> list[str]:
    return [name for name in timeline.metrics if name in names] if names else timeline.metrics[:most]


def _lines(timeline: "Timeline", names: Sequence[str] | None, last: int) -> Iterator[str]:
    points = timeline.points[-last:]
    noted, approved = sum(each.noted for each in timeline.points), sum(each.approved for each in timeline.points)
    cut = f"; the last {last}" if len(points) < len(timeline.points) else ""
    yield from _wrapped(f"{timeline.title}: {counted(noted, 'run')}, {counted(approved, 'approval')}{cut}")
    changes = timeline.changes()[-last:]
    metrics = _chosen(timeline, names, _TABLES)
    for name in metrics:
        yield ""
        yield from _wrapped(name)
        yield from _table(points, changes, name)
    failed = [f"{each.when}  {gate}" for each in points for gate in each.failed_gates]
    if failed:
        yield ""
        yield "failed gates"
        for each in failed:
            yield from _wrapped(each)
    others = [name for name in timeline.metrics if name not in metrics]
    if others and not names:
        yield ""
        yield from _wrapped(f"{counted(len(others), 'more metric')} (--metric NAME): {', '.join(others)}")


def _table(points: Sequence["Point"], changes: Iterable[Sequence[str]], metric: str) -> Iterator[str]:
    from tabulate import tabulate

    rows = [
        (
            each.when,
            printable(each.commit).encode("ascii", "backslashreplace").decode()[:_COMMIT],
            _short(each.values.get(metric)),
            interval(*each.intervals[metric]) if metric in each.intervals else "",
            _gates(each),
            "approved" if each.approved else "",
        )
        for each in points
    ]
    headers = ("when", "commit", "value", "interval", "gates", "")
    align = ("left", "left", "right", "right", "left", "left")
    header, *lines = tabulate([headers, *rows], tablefmt="plain", disable_numparse=True, colalign=align).splitlines()
    yield header.rstrip()
    for line, changed in zip(lines, changes, strict=True):
        if changed:
            yield f"-- changed: {', '.join(changed)} --"
        yield line.rstrip()


def _short(value: float | None) -> str:
    return number(value) if value is None or abs(value) < 1e5 else f"{value:.3g}"  # noqa: PLR2004 (wider than a column)


def _gates(point: "Point") -> str:
    if not point.gates:
        return ""
    judged = sum(outcome != "not_judged" for outcome in point.gates.values())
    failed = len(point.failed_gates)
    if failed:
        return f"FAILED {failed}/{judged}"
    return f"passed {judged}" if judged else "not evaluated"


def _wrapped(text: str) -> list[str]:
    """Wrap a text; East Asian characters and emoji take two columns."""
    wide = any(east_asian_width(each) in "WF" for each in text)
    return textwrap.wrap(
        printable(text), _WIDTH // 2 if wide else _WIDTH, subsequent_indent="  ", break_on_hyphens=False
    ) or [""]
