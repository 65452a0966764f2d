"""The commands ``llmeval import`` and ``llmeval export``."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final

from pytest_llmeval.cli.console import CommandResult, say
from pytest_llmeval.core.errors import Fault, SuiteError
from pytest_llmeval.core.wording import counted, unknown_name
from pytest_llmeval.exchange.contract import Construct, Fate, ImportedSource, ImportOptions
from pytest_llmeval.exchange.differences import Direction
from pytest_llmeval.exchange.writing import (
    REPORT,
    direction_line,
    planned_files,
    report_markdown,
    summary_line,
    trial,
    write_files,
)


@dataclass(frozen=True)
class SourceFormat:
    """A format that is imported.

    Attributes:
        importer: Import string of the function from file, name in messages and options to what was imported.
        patterns: Of its files in a folder; none if the folder itself is the source.
    """

    importer: str
    patterns: tuple[str, ...]


_HERE = "pytest_llmeval.exchange"
_RECORDS = ("*.csv", "*.json", "*.jsonl", "*.parquet", "*.tsv")
FORMATS: Final[dict[str, SourceFormat]] = {
    "promptfoo": SourceFormat(
        f"{_HERE}.promptfoo.config:import_promptfoo",
        ("promptfooconfig*.json", "promptfooconfig*.yaml", "promptfooconfig*.yml"),
    ),
    "openai-evals": SourceFormat(f"{_HERE}.openai_evals:import_openai", ("*.json", "*.yaml", "*.yml")),
    "pydantic-evals": SourceFormat(f"{_HERE}.pydantic_evals:import_pydantic", ("*.json", "*.yaml", "*.yml")),
    "deepeval": SourceFormat(f"{_HERE}.records:import_deepeval", ("*.csv", "*.json", "*.jsonl")),
    "inspect-ai": SourceFormat(f"{_HERE}.inspect_ai:import_inspect", ("*.eval", "*.csv", "*.json", "*.jsonl")),
    "plugin-evals": SourceFormat(f"{_HERE}.skill_evals:import_plugin_evals", ()),
    "skill-creator": SourceFormat(f"{_HERE}.skill_evals:import_skill_evals", ("evals.json",)),
    "ragas": SourceFormat(f"{_HERE}.records:import_ragas", _RECORDS),
    "braintrust": SourceFormat(f"{_HERE}.records:import_braintrust", _RECORDS),
    "langsmith": SourceFormat(f"{_HERE}.records:import_langsmith", _RECORDS),
    "table": SourceFormat(f"{_HERE}.records:import_table", _RECORDS),
}
_ALIASES: Final = {
    **dict.fromkeys(("csv", "jsonl", "json", "parquet", "tables", "tsv"), "table"),
    "inspect": "inspect-ai",
    "openai": "openai-evals",
    "pydantic": "pydantic-evals",
}


def import_source(format_name: str, path: Path, display_path: str, options: ImportOptions) -> ImportedSource | None:
    """Return the import of a file of another tool; ``None`` if it belongs to another source.

    Raises:
        SuiteError: The file cannot be read, or it is not of the format.
    """
    module, _, function = FORMATS[format_name].importer.partition(":")
    importer: Callable[[Path, str, ImportOptions], ImportedSource | None] = getattr(import_module(module), function)
    return importer(path, display_path, options)


EXPORTS: Final = {"mlflow": (f"{_HERE}.mlflow:add_arguments", "runs of an experiment")}
"""Tool to the function that adds its arguments, and one line for the list of tools."""


def add_export_arguments(parser: ArgumentParser) -> None:
    """Add the tools to which reports are taken, each with arguments of its own."""
    parser.description = "Take a JSON report to another tool."
    tools = parser.add_subparsers(required=True, metavar="TOOL")
    for name, (function, line) in EXPORTS.items():
        module, _, add = function.partition(":")
        getattr(import_module(module), add)(tools.add_parser(name, help=line))


_LOOSER: Final = (Direction.LOOSER, Direction.EITHER)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of ``llmeval import``."""
    parser.description = (
        "Make suites of the files of other tools, and list what becomes of every construct in them: the same here, "
        "near, or not imported. Nothing in the files is executed."
    )
    parser.add_argument("format", type=_format, metavar="FORMAT", help=f"one of {', '.join(FORMATS)}")
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
    table = parser.add_argument_group("columns of records")
    table.add_argument(
        "--input", action="append", default=[], metavar="COLUMN", help="column of the input; several make an object"
    )
    table.add_argument("--expected", metavar="COLUMN", help="column of the right answer")
    table.add_argument("--prediction", metavar="COLUMN", help="column of the recorded answer")
    table.add_argument("--id", metavar="COLUMN", help="column of the case ids")
    table.add_argument("--label", action="append", default=[], metavar="COLUMN", help="column of a label")
    parser.set_defaults(run=_import)


def _format(text: str) -> str:
    from argparse import ArgumentTypeError

    name = text.lower().replace("_", "-")
    name = _ALIASES.get(name, name)
    if name not in FORMATS:
        raise ArgumentTypeError(unknown_name("format", text, FORMATS))
    return name


def _import(options: Namespace) -> CommandResult:
    sources: list[ImportedSource] = []
    faults: list[Fault] = []
    import_options = ImportOptions(
        options.input, options.expected, options.prediction, options.id, options.label, options.sources
    )
    import_options.folder = options.to or Path()
    for path in _files(options.sources, FORMATS[options.format].patterns, faults):
        try:
            source = import_source(options.format, path, path.as_posix(), import_options)
        except SuiteError as error:
            faults += error.faults
            continue
        if source is not None:
            sources.append(source)
    names: dict[str, str] = {}
    files: dict[str, str] = {}
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
    constructs = [each for source in sources for each in source.constructs]
    lost = any(each.fate is Fate.NOT_IMPORTED or each.direction in _LOOSER for each in constructs)
    rows = [{key: getattr(each, key) for key in ("fate", "file", "line", "kind", "summary")} for each in constructs]
    data = {"suites": sorted(names.values()), "constructs": rows}
    lines = list(_lines(sources, names, options.to))
    return CommandResult(1 if faults or (options.strict and lost) else 0, data, lines)


def _files(paths: Iterable[Path], patterns: Iterable[str], faults: list[Fault]) -> Iterator[Path]:
    """Yield files, and those in folders, each once."""
    seen: set[Path] = set()
    for path in paths:
        files = [path]
        if path.is_dir() and patterns:
            files = sorted({each for pattern in patterns for each in path.rglob(pattern) if each.is_file()})
            if not files:
                message = f"found a folder without {' or '.join(patterns)}, expected such a file"
                faults.append(Fault(str(path), 0, 0, "", message))
        yield from (each for each in files if each not in seen)
        seen.update(files)


def _lines(sources: Iterable[ImportedSource], names: dict[str, str], folder: Path | None) -> Iterator[str]:
    """Yield the lines that describe an import."""
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
                f"  {each.fate.value}: {each.place}  {each.kind}: {each.summary}"
                for fate in Fate
                for each in constructs
                if each.fate is fate
            )
        if directions := direction_line(constructs):
            yield f"  verdicts on some answers: {directions}"
        yield from (f"  warning: {each}" for each in source.warnings)
    if count > 1:
        yield f"{counted(count, 'source')}, {counted(len(names), 'suite')}, {summary_line(everything)}"
    if folder is not None and count:
        yield f"{(folder / REPORT).as_posix()} lists every construct"
