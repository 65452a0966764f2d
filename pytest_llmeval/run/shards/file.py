"""The file of a shard: everything that its main process heard, as compressed lines of JSON."""

__all__ = (
    "Origin",
    "ShardFile",
    "ShardOptions",
    "SuitePrint",
    "SuiteVariant",
    "read_shard",
    "write_shard",
)

import gzip
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

from pydantic import TypeAdapter

from pytest_llmeval.core.errors import LlmevalError, format_error
from pytest_llmeval.core.results import CaseOutcome
from pytest_llmeval.data.files.places import display_path
from pytest_llmeval.data.files.writing import write_bytes
from pytest_llmeval.judge.options import JudgeMode
from pytest_llmeval.judge.recordings import UsedJudgements
from pytest_llmeval.judge.stored_judgement import StoredJudgement
from pytest_llmeval.reports.notes import ReportedTexts
from pytest_llmeval.run.finishing import HeardRun
from pytest_llmeval.run.payload import decode
from pytest_llmeval.run.result_collector import Item, ItemResult, ResultCollector
from pytest_llmeval.run.shards.selection import shard_of
from pytest_llmeval.suite.suite import SuiteKey
from pytest_llmeval.targets.python import RecordingMode

_CLOSED: dict[str, Any] = {"extra": "forbid"}

_Key: TypeAlias = tuple[str, str, str, str]


@dataclass(frozen=True)
class ShardOptions:
    """The options of a run that change its results.

    Attributes:
        judge: What judges are allowed to do.
        judge_model: In place of the suites' own.
        judge_base_url: Its address.
        texts: Of which cases reports have input, expected and prediction.
        snapshots: Whether suites without the key ``snapshot`` have one.
        predictions: File of recorded predictions, relative to the root; empty for none.
        predictions_mode: What to do with it.
        selection: Options of pytest that leave out tests.
    """

    __pydantic_config__: ClassVar = _CLOSED

    judge: JudgeMode = "auto"
    judge_model: str | None = None
    judge_base_url: str | None = None
    texts: ReportedTexts = "failing"
    snapshots: bool = False
    predictions: str = ""
    predictions_mode: RecordingMode = "auto"
    selection: str = ""


@dataclass(frozen=True)
class SuitePrint:
    """Fingerprints of a suite file and of all that decides its scores.

    Attributes:
        path: The file, relative to the root.
        file: Fingerprint of its bytes.
        data: Of its cases.
        evaluators: Of its evaluators.
        plugins: What registers evaluators for it: conftests relative to the root, and names of modules, with
            the fingerprints of their files.
    """

    __pydantic_config__: ClassVar = _CLOSED

    path: str
    file: str
    data: str
    evaluators: str
    plugins: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SuiteVariant:
    """A suite, or a variant of it, of which cases ran.

    Attributes:
        key: The parts of its `SuiteKey`.
        judges: Evaluator label to what decides the verdicts.
    """

    __pydantic_config__: ClassVar = _CLOSED

    key: _Key
    judges: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Origin:
    """What was run, and where: the first line of the file.

    Attributes:
        shard: Which one, such as ``2/5``; empty where something else has selected the cases.
        commit: What was checked out.
        versions: Of Python, this package and the libraries that it computes with.
        options: Those that change results.
        require_gates: Whether gates must be judged.
        collected: Fingerprint of the ids of all tests over cases, whichever shard has them.
        items: How many these are.
        imports: Folders from which Python imports, relative to the root.
        suites: The suite files.
        variants: What ran of them.
        format: What the file is.
        version: Of its form.
    """

    __pydantic_config__: ClassVar = _CLOSED

    shard: str
    commit: str | None
    versions: Mapping[str, str]
    options: ShardOptions
    require_gates: bool
    collected: str
    items: int
    imports: Sequence[str]
    suites: Sequence[SuitePrint]
    variants: Sequence[SuiteVariant]
    format: Literal["llmeval shard"] = "llmeval shard"
    version: Literal[1] = 1


@dataclass(frozen=True)
class _Course:
    """How the run went: the second line of the file; see `HeardRun`."""

    __pydantic_config__: ClassVar = _CLOSED

    started: float
    seconds: float
    ended: str
    crashed: str
    uncollected: bool
    faults: Mapping[str, Sequence[str]]
    selected: Sequence[str]
    dropped: Sequence[_Key]
    unfinished: Sequence[str]
    deselected: Sequence[str]
    unwanted: Sequence[str]
    failures: Sequence[str]


@dataclass(frozen=True)
class _Result:
    """The line of an item; `result` is its payload, with the path of the suite relative to the root."""

    __pydantic_config__: ClassVar = _CLOSED

    file: str
    nodeid: str
    outcome: str
    duration: float
    result: tuple[_Key, int, list[dict[str, Any]]]


@dataclass(frozen=True)
class _Judgement:
    """The line of a judgement; the path of its recordings is relative to the root."""

    __pydantic_config__: ClassVar = _CLOSED

    recorded_in: str
    judgement: dict[str, Any]


@dataclass(frozen=True)
class _End:
    """The last line: how many lines there are before it, and their digest."""

    __pydantic_config__: ClassVar = _CLOSED

    lines: int
    sha256: str


@dataclass(frozen=True)
class ShardFile:
    """A shard file that has been read.

    Attributes:
        path: The file.
        origin: What was run, and where.
        heard: What its main process heard, with paths in this checkout.
        seconds: How long it took.
    """

    path: Path
    origin: Origin
    heard: HeardRun
    seconds: float


def write_shard(path: Path, origin: Origin, heard: HeardRun, root: Path, seconds: float) -> None:
    """Write the file in one step.

    Args:
        path: The file; its folder is made.
        origin: What was run, and where.
        heard: Of it.
        root: Paths of other files are written relative to this folder, if they lie inside.
        seconds: How long it took.

    Raises:
        OSError: It cannot be written.
    """
    course = _Course(
        started=heard.started,
        seconds=seconds,
        ended=heard.ended,
        crashed=heard.crashed,
        uncollected=heard.uncollected,
        faults=dict(sorted(heard.faults.items())),
        selected=sorted(display_path(each, root) for each in heard.selected),
        dropped=sorted(_moved(key, lambda file: display_path(Path(file), root)) for key in heard.dropped),
        unfinished=sorted(heard.unfinished),
        deselected=[] if origin.shard else sorted(heard.deselected),  # the other shards have them
        unwanted=[] if origin.shard else sorted(heard.unwanted),
        failures=sorted(heard.failures),
    )
    lines = [_line(each) for each in (origin, course, *_results(heard, root), *_judgements(heard, root))]
    content = b"".join(lines)
    end = _line(_End(len(lines), sha256(content).hexdigest()))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, gzip.compress(content + end, mtime=0))


def _results(heard: HeardRun, root: Path) -> Iterator[_Result]:
    for item, each in sorted(heard.results.results.items()):
        key, total, entries = json.loads(each.payload)
        moved = _moved(SuiteKey(*key), lambda file: display_path(Path(file), root))
        yield _Result(item.file, item.nodeid, each.outcome, each.duration, (moved, total, entries))


def _judgements(heard: HeardRun, root: Path) -> Iterator[_Judgement]:
    for path, entry in heard.judgements:
        yield _Judgement(display_path(path, root), entry.to_json())


def _line(content: Any) -> bytes:
    return json.dumps(content, default=vars, separators=(",", ":")).encode() + b"\n"


def _moved(key: SuiteKey, move: Callable[[str], str]) -> SuiteKey:
    return key._replace(path=move(key.path))


def read_shard(path: Path, root: Path) -> ShardFile:
    """Read a shard file.

    Args:
        path: The file.
        root: What other paths are relative to.

    Raises:
        LlmevalError: It cannot be read, is cut, or is no shard file.
    """
    try:
        written = path.read_bytes()
    except OSError as error:
        raise LlmevalError(f"{path}: cannot be read: {error.strerror}") from None
    if written and not written.startswith(_GZIP):
        raise LlmevalError(f"{path}: found something else, {_EXPECTED}")
    try:
        text = gzip.decompress(written)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise LlmevalError(f"{path}: found a file that is cut or damaged, {_AGAIN}") from None
    *lines, last = text.splitlines(keepends=True) or [b""]
    try:
        end = _END.validate_python(json.loads(last))
    except ValueError:
        raise LlmevalError(f"{path}: found a file without its end, {_AGAIN}") from None
    if end != _End(len(lines), sha256(b"".join(lines)).hexdigest()):
        raise LlmevalError(f"{path}: found {len(lines)} lines that are not those that were written, {_AGAIN}")
    try:
        return _parsed(path, lines, root)
    except (ValueError, RecursionError) as error:
        raise LlmevalError(f"{path}: {_EXPECTED}: {error}") from None


_GZIP = b"\x1f\x8b"
_AGAIN = "expected a whole shard file: run this shard again, or fetch its file again"
_EXPECTED = "expected a shard file that this version of pytest-llmeval-suite wrote"


def _parsed(path: Path, lines: Sequence[bytes], root: Path) -> ShardFile:
    if len(lines) < 2:  # noqa: PLR2004 (where it comes from, and how it went)
        raise ValueError("found no header")
    origin, course = _ORIGIN.validate_python(json.loads(lines[0])), _COURSE.validate_python(json.loads(lines[1]))
    if origin.shard:
        shard_of(origin.shard, {})
    results: dict[Item, ItemResult] = {}
    judgements = UsedJudgements()
    for number, line in enumerate(lines[2:], 3):
        if b'"recorded_in"' in line[: len('{"recorded_in"')]:
            judgement = _JUDGEMENT.validate_python(json.loads(line))
            judgements.add(root / judgement.recorded_in, StoredJudgement.from_json(judgement.judgement))
        else:
            found = _RESULT.validate_python(json.loads(line))
            key, total, entries = found.result
            payload = json.dumps([_here(key, root), total, entries])
            _check(payload, number)
            results[Item(found.file, found.nodeid)] = ItemResult(payload, found.outcome, found.duration)
    heard = HeardRun(
        started=course.started,
        results=ResultCollector(results),
        judgements=judgements,
        ended=course.ended,
        crashed=course.crashed,
        uncollected=course.uncollected,
        faults={file: list(lines) for file, lines in course.faults.items()},
        selected={root / each for each in course.selected},
        dropped={_here(key, root) for key in course.dropped},
        unfinished=set(course.unfinished),
        deselected=set(course.deselected),
        unwanted=set(course.unwanted),
        failures=set(course.failures),
    )
    return ShardFile(path, origin, heard, course.seconds)


def _check(payload: str, number: int) -> None:
    """Raise `ValueError` if the results of cases in a line cannot be read."""
    try:
        for record in decode(payload).records:
            _CASE.validate_python((record.id, record.outcome))
    except Exception as error:  # noqa: BLE001 (whatever reading trips over, the file is to blame)
        raise ValueError(f"line {number}: found a result that cannot be read: {format_error(error)}") from None


def _here(key: _Key, root: Path) -> SuiteKey:
    return _moved(SuiteKey(*key), lambda file: str(root / file))


_ORIGIN, _COURSE = TypeAdapter(Origin), TypeAdapter(_Course)
_CASE: TypeAdapter[tuple[str, CaseOutcome]] = TypeAdapter(tuple[str, CaseOutcome])
_RESULT, _JUDGEMENT, _END = TypeAdapter(_Result), TypeAdapter(_Judgement), TypeAdapter(_End)
