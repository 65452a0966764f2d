"""The commands ``llmeval import``, with the files that it writes, ``export`` and ``gate``."""

import json
import re
import shlex
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from pytest_llmeval.cli import OPTIONS, CommandResult, NumberArgument, main, say
from pytest_llmeval.core import Fault, LlmevalError, SuiteError, counted, grouped, printable, resolve, unknown_name
from pytest_llmeval.data import Document, InputFile, OutputFile, plain_value
from pytest_llmeval.exchange._causes import Situation
from pytest_llmeval.exchange._ledger import Construct, Fate, ImportedSource, ImportedSuite, ImportOptions
from pytest_llmeval.exchange._readers import read_files
from pytest_llmeval.exchange._result_suites import names_of
from pytest_llmeval.exchange._templates import Direction
from pytest_llmeval.exchange.gating import CODES, GateOptions, GateVerdict, judge_results
from pytest_llmeval.exchange.results import FIELDS, LABEL, ResultRow
from pytest_llmeval.reports import ReportFormat
from pytest_llmeval.reports import text as markdown
from pytest_llmeval.run import unmet_by_expected
from pytest_llmeval.suites import Registry, load_suite

REPORT: Final = "IMPORT.md"
_MOST_INLINE = 20
"""Cases that the suite file itself holds; more go into a JSONL file."""
_WIDTH = 110
_BREAKS = frozenset("\r\x85\u2028\u2029")
"""Line breaks of YAML 1.1 that would not survive in plain texts."""
_INTRODUCTION = {
    Fate.SAME: (
        "These mean the same here, for answers that are texts in composed form (NFC). An answer that is no text meets "
        "neither a check of texts nor its negation."
    ),
    Fate.NEAR: "These are imported, and differ in what is said beside them.",
    Fate.NOT_IMPORTED: "These are left out.",
}


def planned_files(suite: ImportedSuite) -> dict[str, str | bytes]:
    """The files to write for an imported suite: path to text or content."""
    files = dict(suite.files)
    settings: dict[str, Any] = {"suite": suite.name, **suite.settings}
    if len(suite.cases) > _MOST_INLINE:
        data = f"{suite.name}.jsonl"
        files[data] = "".join(f"{json.dumps(case, ensure_ascii=False, allow_nan=False)}\n" for case in suite.cases)
        settings["source"] = {"format": "jsonl", "path": data}
    else:
        settings["cases"] = suite.cases
    return {f"{suite.name}.eval.yaml": yaml_text(settings), **files}


def trial(suite: ImportedSuite, files: Mapping[str, str | bytes]) -> tuple[list[Fault], list[str]]:
    """Load an imported suite from the text that is written, and try its expected answers as predictions.

    Args:
        suite: The suite.
        files: Its files, of `planned_files`.

    Returns:
        Its faults, and the limits and checks that expected answers do not meet.
    """
    name = f"{suite.name}.eval.yaml"
    with TemporaryDirectory() as folder:
        write_files(Path(folder), files, force=False)
        try:
            loaded = load_suite(Path(folder, name), display_path=name)
        except SuiteError as error:
            return list(error.faults), []
        return list(loaded.faults), [] if loaded.faults else list(unmet_by_expected(loaded))


def write_files(folder: Path, files: Mapping[str, str | bytes], *, force: bool) -> None:
    """Write the files of imported suites into a folder.

    Args:
        folder: It is made if it is not there.
        files: Path in the folder to text or content.
        force: Whether to overwrite files.

    Raises:
        LlmevalError: A file is there already, or cannot be written.
    """
    there = [name for name in files if (folder / name).exists() or (folder / name).is_symlink()]
    if there and not force:
        more = f" and {len(there) - 1} more" if there[1:] else ""
        raise LlmevalError(f"{folder / there[0]}{more}: found a file, expected none: use --force to overwrite")
    try:
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, bytes):
                OutputFile(path).write_bytes(content)
            else:
                OutputFile(path).write_text([content])
    except OSError as error:
        message = f"cannot be written: {error.strerror}"
        raise SuiteError([Fault(str(folder), 0, 0, "", message)]) from None


def yaml_text(data: Mapping[str, Any]) -> str:
    """The YAML of an imported suite, which the loader of suite files reads back unchanged."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Writes texts so that YAML 1.1 and 1.2 both read them as texts, and shares nothing by anchors."""

        def ignore_aliases(self, data: Any) -> bool:
            del data
            return True

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
            del indentless
            super().increase_indent(flow, False)

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        style = None
        try:
            if value and not isinstance(plain_value(value), str):
                style = "'"
        except ValueError:
            style = "'"
        if set(value) & _BREAKS:
            style = '"'
        elif "\n" in value and _fits_a_block(value):
            style = "|"
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    dumped: str = yaml.dump(dict(data), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)
    return dumped


def _fits_a_block(value: str) -> bool:
    """Whether a text of an imported suite can be a literal block in YAML, written line by line."""
    lines = value.split("\n")
    return not value[:1].isspace() and all(line == line.rstrip() and line.isprintable() for line in lines)


def summary_line(constructs: Sequence[Construct]) -> str:
    """The number of imported constructs of each fate, in one line."""
    counts = Counter(construct.fate for construct in constructs)
    listed = ", ".join(f"{counts[fate]} {fate.value}" for fate in Fate)
    return f"{counted(len(constructs), 'construct')}: {listed}"


def direction_line(constructs: Iterable[Construct]) -> str:
    """The number of imported constructs that judge some answers differently, by direction; empty if none does."""
    counts = Counter(
        direction for construct in constructs for direction in {construct.direction} if direction is not None
    )
    return ", ".join(f"{counts[direction]} {direction.value}" for direction in Direction if counts[direction])


def report_markdown(sources: Iterable[ImportedSource], written: Mapping[str, str]) -> str:
    """The Markdown report of ``llmeval import``.

    Args:
        sources: In the order in which they were imported.
        written: Source to the name of its suite file.
    """
    return "\n".join(_report_lines(sources, written)) + "\n"


def _report_lines(sources: Iterable[ImportedSource], written: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of the Markdown report of an import: its sources, suites and constructs."""
    yield "# What was imported"
    for source in sources:
        yield from ("", f"## {markdown(source.file)}", "")
        if source.suite is not None and source.file in written:
            cases = counted(len(source.suite.cases), "case")
            yield f"Written: {markdown(written[source.file])}, {cases}."
        else:
            yield f"No suite: {markdown(source.refusal)}."
        yield f"{summary_line(source.constructs)}."
        if directions := direction_line(source.constructs):
            yield f"Verdicts on some answers: {directions}."
        if source.warnings:
            yield from ("", "### Not met by the expected answers themselves", "")
            yield from (f"- {markdown(warning)}" for warning in source.warnings)
        for fate in Fate:
            constructs = [construct for construct in source.constructs if construct.fate is fate]
            if constructs:
                yield from ("", f"### {fate.value.capitalize()}", "", _INTRODUCTION[fate], "")
                yield from _listed(constructs, source.file.rpartition("/")[0])


def _listed(constructs: Iterable[Construct], folder: str) -> Iterator[str]:
    """Yield an item of the import report for each kind and text, with all its places, relative to a folder."""
    groups = grouped(((construct.kind, construct.summary, construct.stub), construct) for construct in constructs)
    for (kind, text, stub), members in groups.items():
        places = ", ".join(f"`{_code(member.place.removeprefix(f'{folder}/'))}`" for member in members)
        times = f" ({len(members)} times)" if len(members) > 1 else ""
        yield f"- **{markdown(kind)}**{times}: {markdown(text)} ({places})"
        if stub:
            longest = max(map(len, re.findall("`+", stub)), default=0)
            fence = "`" * max(3, longest + 1)
            yield from ("", *(f"  {line}".rstrip() for line in (f"{fence}python", *stub.splitlines(), fence)), "")


def _code(text: str) -> str:
    """A text of an imported file that can stand in Markdown code of the import report."""
    return printable(text).replace("`", "'")


_ALIASES: Final = {
    **dict.fromkeys(("csv", "jsonl", "json", "parquet", "tables", "tsv"), "table"),
    "inspect": "inspect-ai",
    "openai": "openai-evals",
    "pydantic": "pydantic-evals",
}


def import_source(format_name: str, path: Path, display_path: str, options: ImportOptions) -> ImportedSource | None:
    """Import a file of another tool by its format; ``None`` if it belongs to another source.

    Raises:
        SuiteError: The file cannot be read, or it is not of the format.
    """
    importer: Callable[[Path, str, ImportOptions], ImportedSource | None]
    importer = resolve(Registry.installed().importers[format_name].function)
    return importer(path, display_path, options)


def add_export_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of ``llmeval export``: a subcommand for each tool that takes reports."""
    parser.description = "Take a JSON report to another tool."
    tools = parser.add_subparsers(required=True, metavar="TOOL")
    for name, export in Registry.installed().exports.items():
        export.configure(tools.add_parser(name, help=export.help))


_LOOSER: Final = (Direction.LOOSER, Direction.EITHER)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of ``llmeval import``."""
    parser.description = (
        "Make suites of the files of other tools, and list what becomes of every construct in them: the same here, "
        "near, or not imported. Nothing in the files is executed."
    )
    parser.add_argument(
        "format", type=_format, metavar="FORMAT", help=f"one of {', '.join(Registry.installed().importers)}"
    )
    parser.add_argument("sources", nargs="+", type=Path, metavar="SOURCE", help="a file, or a folder with such files")
    parser.add_argument(
        "--to",
        type=Path,
        metavar="FOLDER",
        help="write the suites here, with IMPORT.md beside them (default: print the report only)",
    )
    parser.add_argument("--force", action="store_true", help="overwrite files in FOLDER")
    parser.add_argument(
        "--strict", action="store_true", help="exit code 1 if anything is not imported, or can be looser here"
    )
    parser.add_argument(
        "--arms", action="store_true", help="of plugin-evals: two systems, with the plugin and without it"
    )
    table = parser.add_argument_group("columns of records")
    table.add_argument(
        "--input", action="append", default=[], metavar="COLUMN", help="column of the input; several make an object"
    )
    table.add_argument("--expected", metavar="COLUMN", help="column of the right answer")
    table.add_argument("--prediction", metavar="COLUMN", help="column of the recorded answer")
    table.add_argument("--id", metavar="COLUMN", help="column of the case ids")
    table.add_argument("--label", action="append", default=[], metavar="COLUMN", help="column of a label")
    parser.set_defaults(run=_import, bulk=True)


def _format(text: str) -> str:
    """The import format that an argument of ``llmeval import`` names."""
    from argparse import ArgumentTypeError

    name = text.lower().replace("_", "-")
    name = _ALIASES.get(name, name)
    known = Registry.installed().importers
    if name not in known:
        raise ArgumentTypeError(unknown_name("format", text, known))
    return name


def _import(options: Namespace) -> CommandResult:
    """Run ``llmeval import``: write the suites of other tools' files, and list the fate of each construct."""
    sources: list[ImportedSource] = []
    faults: list[Fault] = []
    import_options = ImportOptions(
        options.input, options.expected, options.prediction, options.id, options.label, options.sources
    )
    import_options.folder = options.to or Path()
    import_options.arms = options.arms
    for path in _files(options.sources, Registry.installed().importers[options.format].patterns, faults):
        try:
            source = import_source(options.format, path, path.as_posix(), import_options)
        except SuiteError as error:
            faults += error.faults
            continue
        if source is not None:
            sources.append(source)
    names: dict[str, str] = {}
    files: dict[str, str | bytes] = {}
    for source in sources:
        if source.suite is None:
            faults.append(Fault(source.file, 0, 0, "", source.refusal))
            continue
        names[source.file] = f"{source.suite.name}.eval.yaml"
        planned = planned_files(source.suite)
        written_faults, source.warnings = trial(source.suite, planned)
        faults += written_faults
        files |= planned
    if options.to is not None and sources:
        write_files(options.to, {**files, REPORT: report_markdown(sources, names)}, force=options.force)
    say(faults, error=True)
    constructs = [construct for source in sources for construct in source.constructs]
    lost = any(construct.fate is Fate.NOT_IMPORTED or construct.direction in _LOOSER for construct in constructs)
    rows = [
        {key: getattr(construct, key) for key in ("fate", "file", "line", "kind", "summary")}
        for construct in constructs
    ]
    data = {"suites": sorted(names.values()), "constructs": rows}
    lines = list(_lines(sources, names, options.to))
    return CommandResult(1 if faults or (options.strict and lost) else 0, data, lines)


def _files(paths: Iterable[Path], patterns: Iterable[str], faults: list[Fault]) -> Iterator[Path]:
    """Yield the files to import: those named, and those in named folders that fit the format, each once."""
    seen: set[Path] = set()
    for path in paths:
        files = [path]
        if path.is_dir() and patterns:
            files = sorted({file for pattern in patterns for file in path.rglob(pattern) if file.is_file()})
            if not files:
                message = f"found a folder without {' or '.join(patterns)}, expected such a file"
                faults.append(Fault(str(path), 0, 0, "", message))
        yield from (file for file in files if file not in seen)
        seen.update(files)


def _lines(sources: Iterable[ImportedSource], names: dict[str, str], folder: Path | None) -> Iterator[str]:
    """Yield the lines that ``llmeval import`` prints."""
    everything: list[Construct] = []
    count = 0
    for source in sources:
        constructs = source.constructs
        everything += constructs
        count += 1
        target = ""
        if folder is not None and source.file in names:
            target = f" -> {(folder / names[source.file]).as_posix()}"
        yield f"{source.file}{target}: {summary_line(constructs)}"
        if folder is None:
            yield from (
                f"  {construct.fate.value}: {construct.place}  {construct.kind}: {construct.summary}"
                for fate in Fate
                for construct in constructs
                if construct.fate is fate
            )
        if directions := direction_line(constructs):
            yield f"  verdicts on some answers: {directions}"
        yield from (f"  warning: {warning}" for warning in source.warnings)
    if count > 1:
        yield f"{counted(count, 'source')}, {counted(len(names), 'suite')}, {summary_line(everything)}"
    if folder is not None and count:
        yield f"{(folder / REPORT).as_posix()} lists every construct"


_GATE: Final = (
    "Judge the results of any runner: files in the form that 'llmeval schema results' prints, or those of other tools. "
    "Without gates, results are compared with the baseline: worse, better, no drop, or cannot tell. The exit code is 1 "
    "if they are worse or miss a limit, 2 if nothing could be seen, or cases are missing or errored, and else 0."
)
_SETTINGS: Final = (".json", ".yaml", ".yml")
_NUMBER: Final = r"[-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d++)?"
_RANGE: Final = re.compile(rf"(?P<metric>.+)=(?P<low>{_NUMBER})\.\.(?P<high>{_NUMBER})")


def add_gate(parser: ArgumentParser) -> None:
    """Add the arguments of ``llmeval gate``."""
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
    parser.add_argument(
        "--map",
        type=_columns,
        metavar="COLUMN=FIELD,...",
        default={},
        help="fields that columns of rows hold, such as id=case,correct=score; a score is named after its column",
    )
    parser.add_argument(
        "--reference",
        metavar="SYSTEM",
        help="the system that others are compared with; default: the one without the plugin",
    )
    parser.add_argument("--format", default="", metavar="NAME", help="form of the files; default: by their content")
    parser.add_argument(
        "--lower-is-better", nargs="+", metavar="METRIC", default=(), help="metrics of which less is better"
    )
    parser.add_argument(
        "--higher-is-better",
        nargs="+",
        metavar="METRIC",
        default=(),
        help="metrics of which more is better, against what their names say",
    )
    parser.add_argument(
        "--range",
        nargs="+",
        type=_range,
        metavar="METRIC=LOW..HIGH",
        default=(),
        help="smallest and largest value of a metric, such as grade=1..5; default: 0..1 if all its scores lie there",
    )
    parser.add_argument(
        "--tolerance",
        type=NumberArgument(least=0),
        metavar="SIZE",
        help="the drop that matters, in the unit of the metric, where a gate names none; default: 0.05 of its range",
    )
    parser.add_argument(
        "--undecided",
        choices=("pass", "fail"),
        help="exit code of an undecided verdict: 0, unless results are missing, or 1; default: 2",
    )
    parser.add_argument(
        "--min-cases",
        type=NumberArgument(least=1, whole=True),
        default=1,
        metavar="N",
        help="undecided if two systems can differ in fewer test cases",
    )
    parser.add_argument(
        "--power",
        type=NumberArgument(least=0),
        metavar="SIZE",
        help="say how many more cases or repeats would find such a difference",
    )
    parser.add_argument("--json", action="store_true", help="print the verdict as JSON, and nothing else")
    parser.add_argument("--comment", type=Path, metavar="FILE", help="write the comment for a pull request")
    OPTIONS.add_to(parser, "report", "snapshot-update", "snapshot-anchor", "rootdir", "verbose")
    parser.set_defaults(run=_gate, bulk=True, code_of_faults=CODES["undecided"])


def _columns(text: str) -> dict[str, str]:
    """Columns of results with their fields, from ``llmeval gate --map id=case,correct=score``."""
    columns = {}
    for pair in text.split(","):
        column, _, field = pair.rpartition("=")
        if not column or not (field in FIELDS or field.startswith(LABEL)):
            known = ", ".join([*FIELDS, f"{LABEL}NAME"])
            raise ArgumentTypeError(f"found {pair!r}, expected COLUMN=FIELD with a field of {known}")
        columns[column.strip()] = field
    return columns


def _range(text: str) -> tuple[str, tuple[float, float]]:
    """The metric and the ends of its range, from ``llmeval gate --range grade=1..5``."""
    match = _RANGE.fullmatch(text)
    if match is None:
        raise ArgumentTypeError(f"found {text!r}, expected METRIC=LOW..HIGH such as grade=1..5")
    low, high = float(match["low"]), float(match["high"])
    if not low < high:
        raise ArgumentTypeError(f"found {text!r}, expected a low end below the high one")
    return match["metric"], (low, high)


def _gate(options: Namespace) -> CommandResult:
    """Run ``llmeval gate``: judge files of results by gates, a baseline or approved scores."""
    root = (options.rootdir or Path.cwd()).resolve()
    rows = read_files(options.results, options.format, options.map)
    baseline = read_files(options.baseline, options.format, options.map)
    expected = _expected(options.expect, options.format, rows)
    settings = _settings(options.gates)
    if options.reference is not None:
        settings = replace(settings, data={**settings.data, "reference": options.reference})
        if options.reference not in (systems := names_of(rows, "system")):
            raise LlmevalError(unknown_name("system", options.reference, systems))
    if options.snapshot_anchor and not options.snapshot_update:
        raise LlmevalError("--snapshot-anchor needs --snapshot-update: only approved results can be the anchor")
    options_set = {name for name in ("undecided", "tolerance") if getattr(options, name) is not None}
    chosen = GateOptions(
        settings,
        options.lower_is_better,
        options.higher_is_better,
        options.snapshot_update,
        options.snapshot_anchor,
        options.min_cases,
        options.power,
        dict(options.range),
        options.tolerance,
        f"llmeval gate {shlex.join(map(str, options.results))} --snapshot-update",
        Situation(
            files=[str(path) for path in options.results],
            itself=_same_file(options.results, options.baseline),
            pages=[str(path) for path in options.report or () if path.suffix == ".html"],
            options=frozenset(options_set),
        ),
    )
    verdict = judge_results(rows, baseline, expected, chosen, root)
    code = verdict.code(options.undecided)
    written, missing, notes = verdict.finished.write_files(options.report, root)
    if options.comment is not None:
        _comment(verdict, options.comment)
        written = [*written, options.comment]
    say([*notes, *missing], error=True)
    lines = [*verdict.finished.lines(options.verbose), *(f"written to {path}" for path in written)]
    return CommandResult(code or int(bool(missing)), verdict.data(code), [*lines, *verdict.lines()])


def _same_file(results: Sequence[Path], baseline: Sequence[Path]) -> str:
    """The file of results that ``llmeval gate`` also got as the baseline; empty if there is none."""
    for path in results:
        for other in baseline:
            if path.exists() and other.exists() and path.samefile(other):
                return str(path)
    return ""


def _comment(verdict: GateVerdict, path: Path) -> None:
    """Write a gate verdict as a comment for a pull request, by ``llmeval comment``, which reads a report."""
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        ReportFormat.of_path(report).write(verdict.finished.report, report)
        main(["comment", str(report), "-o", str(path)])


def _expected(path: Path | None, format_name: str, rows: Sequence[ResultRow]) -> list[ResultRow]:
    """The rows that results must have; those of a list of ids are of every suite, and have no metric.

    Raises:
        SuiteError: The file cannot be read.
    """
    if path is None or path.suffix != ".txt":
        return [] if path is None else read_files([path], format_name)

    ids = InputFile(path).read_text("an id of a case in each line").splitlines()
    suites = names_of(rows, "suite")
    return [ResultRow(id_.strip(), error="expected", suite=name) for name in suites for id_ in ids if id_.strip()]


def _settings(gates: Sequence[str]) -> Document:
    """The suite settings in ``llmeval gate --gates``: gates as texts, or a file of gates.

    Raises:
        SuiteError: A file cannot be read, is none of them, or has keys that results decide.
    """
    files = [gate for gate in gates if gate.endswith(_SETTINGS)]
    texts = [gate for gate in gates if gate not in files]
    if len(files) > 1:
        raise LlmevalError(f"--gates: found {len(files)} files, expected one at most")
    document = InputFile(Path(files[0]), files[0]).read_document() if files else Document("--gates", {})
    document = document.under("gates") if isinstance(document.data, list) else document
    if not isinstance(document.data, Mapping):
        raise SuiteError([document.fault((), "gates are missing, expected a list of them, or keys of a suite file")])
    faults = [
        document.fault((name,), f"found {name}, expected none: results decide it", key=True)
        for name in ("evaluators", "cases", "source", "systems", "target", "checks", "judge", "judges")
        if name in document.data
    ]
    if faults:
        raise SuiteError(faults)
    more = {"gates": [*(document.data.get("gates") or ()), *texts]} if texts else {}
    return replace(document, data={**document.data, **more})
