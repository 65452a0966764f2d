"""The command ``llmeval cases add``: a trace of production becomes a case of a suite."""

import difflib
import json
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from pytest_llmeval.cli import CommandResult
from pytest_llmeval.core import Fault, LlmevalError, Media, MediaForm, SuiteError, encode, listed
from pytest_llmeval.data import FaultLog, OutputFile
from pytest_llmeval.exchange._media import file_value
from pytest_llmeval.exchange.traces import case_of_spans
from pytest_llmeval.exchange.traces._spans import TraceSpan, read_spans
from pytest_llmeval.services import Secrets
from pytest_llmeval.suites import LoadedSuite, load_suite

_TRACES = "traces"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of ``llmeval cases``."""
    parser.description = "Change the cases of a suite."
    add = parser.add_subparsers(required=True, metavar="add").add_parser(
        "add", help="append a trace of production to a suite as a case"
    )
    add.description = (
        "Append a trace to a suite as a case: what the user asked is its input. The trace is kept beside the suite, "
        "without the values of secret variables. A case that asks the same is not added again."
    )
    add.add_argument("suite", type=Path, metavar="SUITE", help="a suite file with cases of its own, in YAML or JSON")
    add.add_argument("--from", dest="file", type=Path, required=True, metavar="FILE", help="a file of traces")
    add.add_argument("--trace", required=True, metavar="ID", help="id of the trace, or its beginning")
    add.add_argument("--expected", metavar="TEXT", help="the right answer; JSON if it is an object or a list")
    add.add_argument("--id", metavar="ID", help="id of the case (default: the beginning of the trace's)")
    add.add_argument("--label", action="append", default=[], metavar="NAME=VALUE", help="a label; repeatable")
    add.add_argument("--dry-run", action="store_true", help="show what would change, and write nothing")
    add.set_defaults(run=_add)


def _add(options: Namespace) -> CommandResult:
    """Run ``llmeval cases add``: add a trace of production to a suite file as a case."""
    suite = load_suite(options.suite)
    trace, spans = _trace(options.file, options.trace)
    contents: dict[str, bytes] = {}
    case = MediaForm.replace_all(_case(options, trace, spans, suite), partial(_file_of, contents=contents))
    before = options.suite.read_bytes().decode("utf-8")
    after = _appended(options.suite, before, case)
    if "\r\n" in before:
        after = after.replace("\r\n", "\n").replace("\n", "\r\n")
    name = str(options.suite)
    diff = [*difflib.unified_diff(before.splitlines(), after.splitlines(), name, name, "", "", 2, "")]
    data = {"case": case["id"], "diff": diff}
    if options.dry_run:
        return CommandResult(0, {**data, "written": []}, diff)
    trace_file = options.suite.parent / _TRACES / f"{case['id']}.json"
    _make(trace_file.parent)
    OutputFile(trace_file).save_text([_written(spans, Secrets.of_variables(suite.secret_variables))])
    for path, content in contents.items():
        OutputFile(options.suite.parent / path).write_bytes(content)
    try:
        _replace(options.suite, before, after)
    except SuiteError:
        trace_file.unlink()
        raise
    lines = [*diff, f"{name}: case {case['id']!r} added; its trace is kept in {trace_file}"]
    return CommandResult(0, {**data, "written": [name, str(trace_file)]}, lines)


def _file_of(form: Any, contents: dict[str, bytes]) -> dict[str, str]:
    """The medium of a traced case as suite files name it.

    Args:
        form: Its form.
        contents: Gets path and content, if it is no address.
    """
    medium = Media.of_form(form)
    value = file_value(medium, _TRACES)
    if not medium.url:
        contents[value["file"]] = medium.data
    return value


def _make(folder: Path) -> None:
    """Create the folder for traces next to a suite file.

    Raises:
        SuiteError: It cannot be made.
    """
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        message = f"cannot be made ({error.strerror}), expected a folder for traces"
        raise SuiteError([Fault(str(folder), 0, 0, "", message)]) from None


def _replace(path: Path, before: str, after: str) -> None:
    """Replace a suite file by one with a new case, unless it cannot be loaded then."""
    OutputFile(path).save_text([after])
    try:
        load_suite(path)
    except SuiteError:
        OutputFile(path).save_text([before])
        raise


def _trace(path: Path, prefix: str) -> tuple[str, Sequence[TraceSpan]]:
    """The only trace in a file whose id begins with the prefix given to ``llmeval cases add``."""
    faults = FaultLog(str(path))
    spans = read_spans(path, faults).spans
    matches = [trace for trace in spans if trace.lower().startswith(prefix.lower())]
    if len(matches) != 1:
        what = f"{len(matches)} traces" if matches else f"no trace among {len(spans)}"
        which = listed([repr(match) for match in matches or spans])
        faults.add(0, 0, "", f"found {what} whose id begins with {prefix!r}, expected one: {which}")
        faults.check()
    return matches[0], spans[matches[0]]


def _case(options: Namespace, trace: str, spans: Sequence[TraceSpan], suite: LoadedSuite) -> dict[str, Any]:
    """The case that a trace becomes, as the suite file has it.

    Raises:
        LlmevalError: The trace has no input, or the suite has such a case.
    """
    name = options.id or trace[:_SHORT]
    if not _FILE_NAME.fullmatch(name):  # ids of traces are what anybody wrote, and it becomes the name of a file
        raise LlmevalError(f"found the id {name!r}, expected letters, digits, '-', '_' and '.': choose one by --id")
    traced = case_of_spans(name, spans)
    if traced is None or traced.input is None:
        raise LlmevalError(f"{options.file}: a message of the user, which is the input, is missing in trace {trace}")
    known = next(
        (
            suite_case
            for suite_case in suite.cases
            if suite_case.id.casefold() == name.casefold() or suite_case.input == traced.input
        ),
        None,
    )
    if known is not None:
        raise LlmevalError(f"{options.suite}:{known.line}: found the case {known.id!r} with this id or input already")
    case: dict[str, Any] = {"id": name, "input": traced.input}
    if options.expected is not None:
        case["expected"] = _json_or_text(options.expected)
    if suite.target is None and not suite.systems:
        case["prediction"] = {part: value for part, value in traced.prediction.items() if part != "trace"}
    if options.label:
        case["labels"] = dict(_label(text) for text in options.label)
    clean: dict[str, Any] = Secrets.of_variables(suite.secret_variables).masked(case)
    return clean


_SHORT = 12
_FILE_NAME = re.compile(r"\w[\w.-]*")


def _label(text: str) -> tuple[str, str]:
    """Name and value of a label, from ``llmeval cases add --label NAME=VALUE``."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise LlmevalError(f"--label: found {text!r}, expected NAME=VALUE")
    return name, value


def _json_or_text(text: str) -> Any:
    """The expected answer of ``llmeval cases add``: an object or list in JSON, or a text."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, dict | list) else text


def _written(spans: Sequence[TraceSpan], hidden: Secrets) -> str:
    """The spans of a case's trace as a file from which they can be read again, without secrets."""
    rows = (
        {
            "name": span.name,
            "context": {"trace_id": span.trace, "span_id": span.id},
            "parent_id": span.parent or None,
            "start_time": span.start,
            "end_time": span.end,
            "status": {"status_code": "ERROR" if span.failed else "UNSET"},
            "attributes": span.attributes,
            "events": [{"name": event.name, "attributes": event.attributes} for event in span.events],
            "resource": {"attributes": {"service.name": span.service}},
        }
        for span in spans
    )
    return "".join(f"{encode(hidden.masked(row)).decode()}\n" for row in rows)


def _appended(path: Path, text: str, case: Mapping[str, Any]) -> str:
    """The text of a suite file with one more case; everything else stays as it is written.

    Raises:
        LlmevalError: The file has no list of cases that can be continued.
    """
    if path.suffix == ".json":
        content = json.loads(text)
        content.setdefault("cases", []).append(case)
        return json.dumps(content, ensure_ascii=False, indent=2) + "\n"
    written = yaml.safe_dump([case], allow_unicode=True, sort_keys=False, width=120, default_flow_style=False)
    lines = text.splitlines()
    begin = next((number for number, line in enumerate(lines) if re.match(r"cases\s*:", line)), None)
    if begin is None:
        return "\n".join([*lines, "cases:", *_prefixed(written, "  ")]) + "\n"
    if re.sub(r"#.*", "", lines[begin]).split(":", 1)[1].strip():
        raise LlmevalError(f"{path}:{begin + 1}: found cases on one line, expected a list with a line for each")
    end = next((number for number in range(begin + 1, len(lines)) if re.match(r"[^\s#-]", lines[number])), len(lines))
    while end > begin + 1 and not lines[end - 1].split("#")[0].strip():
        end -= 1
    first = next((line for line in lines[begin + 1 : end] if line.lstrip().startswith("-")), "  -")
    indent = first[: len(first) - len(first.lstrip())]
    return "\n".join([*lines[:end], *_prefixed(written, indent), *lines[end:]]) + "\n"


def _prefixed(text: str, indent: str) -> Iterator[str]:
    """Yield the lines of a new case's YAML, indented for its suite file."""
    yield from (f"{indent}{line}" for line in text.splitlines())
