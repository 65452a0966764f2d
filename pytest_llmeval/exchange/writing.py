"""Writing of imports: suite files, data files, prompts, and the report ``IMPORT.md``."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from pytest_llmeval.cli.suite_file import open_suite
from pytest_llmeval.core.errors import Fault, LlmevalError, SuiteError
from pytest_llmeval.core.wording import counted, printable
from pytest_llmeval.data.files.writing import write_text
from pytest_llmeval.data.files.yaml import plain_value
from pytest_llmeval.exchange.contract import Construct, Fate, ImportedSource, ImportedSuite
from pytest_llmeval.exchange.differences import Direction
from pytest_llmeval.reports.markdown import text as markdown
from pytest_llmeval.run.execute import unmet_by_expected

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


def planned_files(suite: ImportedSuite) -> dict[str, str]:
    """Return the files of a suite: path to text."""
    files = dict(suite.files)
    settings: dict[str, Any] = {"suite": suite.name, **suite.settings}
    if len(suite.cases) > _MOST_INLINE:
        data = f"{suite.name}.jsonl"
        files[data] = "".join(f"{_json_line(case)}\n" for case in suite.cases)
        settings["source"] = {"format": "jsonl", "path": data}
    else:
        settings["cases"] = suite.cases
    return {f"{suite.name}.eval.yaml": yaml_text(settings), **files}


def trial(suite: ImportedSuite, files: Mapping[str, str]) -> tuple[list[Fault], list[str]]:
    """Read a suite as the text that is written, and try its expected answers as predictions.

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
            loaded = open_suite(Path(folder, name), Path(name))
        except SuiteError as error:
            return list(error.faults), []
        return list(loaded.faults), [] if loaded.faults else list(unmet_by_expected(loaded))


def write_files(folder: Path, files: Mapping[str, str], *, force: bool) -> None:
    """Write files into a folder.

    Args:
        folder: It is made if it is not there.
        files: Path in the folder to text.
        force: Whether to overwrite files.

    Raises:
        LlmevalError: A file is there already, or cannot be written.
    """
    there = [name for name in files if (folder / name).exists() or (folder / name).is_symlink()]
    if there and not force:
        more = f" and {len(there) - 1} more" if there[1:] else ""
        raise LlmevalError(f"{folder / there[0]}{more}: found a file, expected none: use --force to overwrite")
    try:
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, [text])
    except OSError as error:
        message = f"found no way to write it ({error.strerror}), expected a folder that can be written"
        raise SuiteError([Fault(str(folder), 0, 0, "", message)]) from None


def _json_line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def yaml_text(data: Mapping[str, Any]) -> str:
    """Return data as YAML that the loader of suite files reads back unchanged."""
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
    """Return whether a text can be written line by line."""
    lines = value.split("\n")
    return not value[:1].isspace() and all(line == line.rstrip() and line.isprintable() for line in lines)


def summary_line(constructs: Sequence[Construct]) -> str:
    """Return how many constructs there are of each fate."""
    counts = Counter(each.fate for each in constructs)
    listed = ", ".join(f"{counts[fate]} {fate.value}" for fate in Fate)
    return f"{counted(len(constructs), 'construct')}: {listed}"


def direction_line(constructs: Iterable[Construct]) -> str:
    """Return how many constructs judge some answers otherwise, by direction; empty if none does."""
    counts = Counter(direction for each in constructs for direction in {each.direction} if direction is not None)
    return ", ".join(f"{counts[direction]} {direction.value}" for direction in Direction if counts[direction])


def report_markdown(sources: Iterable[ImportedSource], written: Mapping[str, str]) -> str:
    """Return the report of an import.

    Args:
        sources: In the order in which they were imported.
        written: Source to the name of its suite file.
    """
    return "\n".join(_report_lines(sources, written)) + "\n"


def _report_lines(sources: Iterable[ImportedSource], written: Mapping[str, str]) -> Iterator[str]:
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
            yield from (f"- {markdown(each)}" for each in source.warnings)
        for fate in Fate:
            constructs = [each for each in source.constructs if each.fate is fate]
            if constructs:
                yield from ("", f"### {fate.value.capitalize()}", "", _INTRODUCTION[fate], "")
                yield from _listed(constructs, source.file.rpartition("/")[0])


def _listed(constructs: Iterable[Construct], folder: str) -> Iterator[str]:
    """Yield an item for each kind and text, with all its places; their files are relative to a folder."""
    groups: dict[tuple[str, str, str], list[Construct]] = {}
    for each in constructs:
        groups.setdefault((each.kind, each.summary, each.stub), []).append(each)
    for (kind, text, stub), members in groups.items():
        places = ", ".join(f"`{_code(each.place.removeprefix(f'{folder}/'))}`" for each in members)
        times = f" ({len(members)} times)" if len(members) > 1 else ""
        yield f"- **{markdown(kind)}**{times}: {markdown(text)} ({places})"
        if stub:
            longest = max(map(len, re.findall("`+", stub)), default=0)
            fence = "`" * max(3, longest + 1)
            yield from ("", *(f"  {line}".rstrip() for line in (f"{fence}python", *stub.splitlines(), fence)), "")


def _code(text: str) -> str:
    return printable(text).replace("`", "'")
