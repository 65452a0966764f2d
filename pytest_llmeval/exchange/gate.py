"""The command ``llmeval gate``: a verdict on the results of any runner."""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from pytest_llmeval.cli import main
from pytest_llmeval.cli.console import CommandResult, amount, count, say
from pytest_llmeval.cli.options import add_options
from pytest_llmeval.cli.runs import finished_lines
from pytest_llmeval.core.errors import Fault, LlmevalError, SuiteError
from pytest_llmeval.data.files.documents import Document, read_document
from pytest_llmeval.exchange.gating import CODES, GateOptions, GateVerdict, judge_results
from pytest_llmeval.exchange.readers import read_results
from pytest_llmeval.exchange.result_suites import (
    settings_of,
)
from pytest_llmeval.exchange.results import ResultRow
from pytest_llmeval.reports.json import write_json
from pytest_llmeval.run.finishing import write_run

_GATE: Final = (
    "Judge the results of any runner: files in the form that 'llmeval schema results' prints, or those of other tools. "
    "Without gates, results fail if a metric is significantly worse than in the baseline. The exit code is 0 if the "
    "results pass, 1 if they fail, and 2 if they are undecided: a gate is undecided, cases are missing or errored, or "
    "there is no result."
)
_SETTINGS: Final = (".json", ".yaml", ".yml")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = _GATE
    parser.add_argument("results", nargs="+", type=Path, metavar="NEW", help="a file of results; several are one run")
    parser.add_argument(
        "--baseline", nargs="+", type=Path, metavar="OLD", default=(), help="results to compare with; default: approved"
    )
    parser.add_argument(
        "--gates",
        nargs="+",
        metavar="GATE",
        default=(),
        help="gates such as 'accuracy >= 0.8', 'drop(accuracy) <= 0.05' or 'lift(accuracy) >= 0.1', or a YAML or JSON "
        "file. It has a list of gates, or keys of a suite file such as gates, group_by and cluster_by",
    )
    parser.add_argument(
        "--expect", type=Path, metavar="FILE", help="results, or a .txt with an id per line, whose cases must be there"
    )
    parser.add_argument("--format", default="", metavar="NAME", help="form of the files; default: by their content")
    parser.add_argument(
        "--lower-is-better", nargs="+", metavar="METRIC", default=(), help="metrics of which less is better"
    )
    parser.add_argument(
        "--undecided",
        choices=("pass", "fail"),
        help="exit code of an undecided verdict: 0, unless results are missing, or 1; default: 2",
    )
    parser.add_argument(
        "--min-cases", type=count, default=1, metavar="N", help="arms: undecided if fewer cases could tell them apart"
    )
    parser.add_argument(
        "--power", type=amount, metavar="SIZE", help="say how many more cases or repeats would find such a difference"
    )
    parser.add_argument("--json", action="store_true", help="print the verdict as JSON, and nothing else")
    parser.add_argument("--comment", type=Path, metavar="FILE", help="write the comment for a pull request")
    add_options(parser, "report", "snapshot-update", "rootdir", "verbose")
    parser.set_defaults(run=_gate, code_of_faults=CODES["undecided"])


def _gate(options: Namespace) -> CommandResult:
    root = (options.rootdir or Path.cwd()).resolve()
    rows = _read(options.results, options.format)
    baseline = _read(options.baseline, options.format)
    expected = _expected(options.expect, options.format, rows)
    chosen = GateOptions(
        _settings(options.gates), options.lower_is_better, options.snapshot_update, options.min_cases, options.power
    )
    verdict = judge_results(rows, baseline, expected, chosen, root)
    code = verdict.code(options.undecided)
    report = verdict.finished.report
    written, missing, notes = write_run(report, options.report, root)
    if options.comment is not None:
        _comment(verdict, options.comment)
        written = [*written, options.comment]
    say([*notes, *missing], error=True)
    lines = [*finished_lines(verdict.finished, options.verbose), *(f"written to {each}" for each in written)]
    return CommandResult(code or int(bool(missing)), verdict.data(code), [*lines, *verdict.lines()])


def _comment(verdict: GateVerdict, path: Path) -> None:
    """Write the comment by its command, which reads a report."""
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        write_json(verdict.finished.report, report)
        main(["comment", str(report), "-o", str(path)])


def _read(paths: Sequence[Path], format_name: str) -> list[ResultRow]:
    """Return the rows of files, which together are one run.

    Raises:
        SuiteError: Some cannot be read, or two have the same result.
    """
    faults: list[Fault] = []
    first: dict[tuple[str, str, str, str, int], Path] = {}
    rows = []
    for path in dict.fromkeys(paths):
        try:
            of_file = read_results(path, str(path), format_name)
        except SuiteError as error:
            faults += error.faults
            continue
        for row in of_file:
            key = (row.suite, row.case, row.metric, row.system, row.repeat)
            if (other := first.setdefault(key, path)) != path:
                named = f"case {row.case!r}, metric {row.metric!r}, repeat {row.repeat}"
                faults.append(Fault(str(path), 0, 0, "case", f"found {named}, expected it once: {other} has it too"))
        rows += of_file
    if faults:
        raise SuiteError(faults)
    return rows


def _expected(path: Path | None, format_name: str, rows: Sequence[ResultRow]) -> list[ResultRow]:
    """Return the rows that results must have; those of a list of ids are of every suite, and have no metric.

    Raises:
        SuiteError: The file cannot be read.
    """
    if path is None or path.suffix != ".txt":
        return [] if path is None else _read([path], format_name)
    from pytest_llmeval.data.files.documents import read_text

    ids = read_text(path, str(path), "an id of a case in each line").splitlines()
    suites = dict.fromkeys(row.suite for row in rows)
    return [ResultRow(each.strip(), error="expected", suite=name) for name in suites for each in ids if each.strip()]


def _settings(gates: Sequence[str]) -> Document:
    """Return the settings that gates and files of them make.

    Raises:
        SuiteError: A file cannot be read, or is none of them.
    """
    files = [each for each in gates if each.endswith(_SETTINGS)]
    listed = [each for each in gates if each not in files]
    if len(files) > 1:
        raise LlmevalError(f"--gates: found {len(files)} files, expected one at most")
    if not files:
        return settings_of("--gates", {"gates": listed} if listed else {})
    document = read_document(Path(files[0]), files[0])
    document = document.under("gates") if isinstance(document.data, list) else document
    data = document.data
    if not isinstance(data, Mapping):
        raise SuiteError([document.fault((), "found no gates, expected a list of them, or keys of a suite file")])
    settings = settings_of(files[0], data, document)
    if not listed:
        return settings
    return settings_of(files[0], {**data, "gates": [*(data.get("gates") or ()), *listed]}, document)
