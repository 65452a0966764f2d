"""Shards and their files."""

import gzip
import os
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import structs

from pytest_llmeval.core import LARGEST, MISSING, Case, JsonNumber, LlmevalError, decode, encode, grouped, quotation
from pytest_llmeval.data import MediaFolder, OutputFile, OwnFiles, RowShare, display_path
from pytest_llmeval.judges import JudgeMode, StoredJudgement
from pytest_llmeval.reports import ReportedTexts
from pytest_llmeval.run._measuring import cut_in_blocks
from pytest_llmeval.run._run_record import Item, ItemResult, RunRecord, SuitePart
from pytest_llmeval.suites import LoadedSuite, SuiteKey
from pytest_llmeval.targets import RecordingMode

if TYPE_CHECKING:
    from pytest_llmeval.targets import TargetSpec


_FORM = re.compile(r"(?P<index>[0-9]{1,9}|auto)(?:/(?P<count>[0-9]{1,9}))?", re.ASCII)
_SHARD_FORMS = "I/N with 1 <= I <= N such as 2/5, auto, or auto/N"

_SLURM = "SLURM_ARRAY_TASK_"
_NODE = "CI_NODE_"
_COMPLETION = "JOB_COMPLETION_INDEX"


@dataclass(frozen=True)
class Shard:
    """One of several parts into which the cases of a run are divided, such as one for each machine.

    Attributes:
        index: Counted from 1.
        count: How many parts there are.
    """

    index: int
    count: int

    @classmethod
    def read(cls, text: str, environment: Mapping[str, str]) -> "Shard":
        """Read ``2/5``, or ``auto`` and ``auto/5``, which leave it to the variables of a scheduler.

        Args:
            text: Of the option.
            environment: Variables of the process.

        Raises:
            ValueError: It is something else, or the variables do not say which shard this is.
        """
        match = _FORM.fullmatch(text)
        if match is None or (match["index"] != "auto" and match["count"] is None):
            raise ValueError(f"found {text!r}, expected {_SHARD_FORMS}")
        count = None if match["count"] is None else int(match["count"])
        if match["index"] == "auto":
            return _scheduled_shard(text, count, environment)
        return _within(text, int(match["index"]), int(match["count"]))

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    def has(self, file: str, name: str) -> bool:
        """Whether a group of cases, or a file of other tests, belongs to this shard; see `index_of`."""
        return self._owns(_number(file, name))

    def _owns(self, number: int) -> bool:
        """Whether a group of cases with this hash belongs to this shard."""
        return _index(number, self.count) == self.index

    def picker(self, suite: LoadedSuite, file: str) -> Callable[[str], bool]:
        """A function that says whether the case of an id belongs to this shard.

        Args:
            suite: The suite; its cases stay together by group.
            file: The suite, as reports name it.
        """
        groups = groups_of(suite)
        # A Python test runs over all cases, also those that no system of the suite has.
        return lambda name: self.has(file, groups.get(name, name))

    def share_of(self, file: str) -> RowShare:
        """The rows of a suite's data, whose cases are not in groups, that belong to this shard.

        Args:
            file: The suite, as reports name it.
        """
        return RowShare(lambda name: _number(file, _alone(name)), self._owns)


def index_of(file: str, name: str, count: int) -> int:
    """The index, from 1, of the shard that runs a group of cases, or a file of other tests.

    Args:
        file: As reports name it, so that it is the same on every machine.
        name: Of the group; empty for the file as a whole.
        count: Of shards.
    """
    return _index(_number(file, name), count)


def _number(file: str, name: str) -> int:
    """The hash by which a group of cases in a suite file is assigned to a shard."""
    return int.from_bytes(sha256(f"{file}\n{name}".encode("utf-8", "surrogatepass")).digest(), "big")


def _index(number: int, count: int) -> int:
    """The index, from 1, of the shard to which the hash of a group of cases belongs."""
    return (number >> 192) % count + 1


def _alone(case: str) -> str:
    """The name of a group of one case, for assigning it to a shard."""
    return f"case {case}"


def _within(text: str, index: int, count: int) -> Shard:
    """The shard that an option or a scheduler names."""
    if not 1 <= index <= count:
        raise ValueError(f"found {text}, expected {_SHARD_FORMS}")
    return Shard(index, count)


def _scheduled_shard(text: str, count: int | None, environment: Mapping[str, str]) -> Shard:
    """The shard that a scheduler's environment variables name."""
    readers = {f"{_SLURM}ID": _slurm_shard, f"{_NODE}INDEX": _gitlab_shard, _COMPLETION: _kubernetes_shard}
    there = [name for name in readers if environment.get(name)]
    if len(there) != 1:
        text_of_shard = " and ".join(there) or f"none of {', '.join(readers)}"
        raise ValueError(f"{text}: found {text_of_shard} in the environment, expected one of them, or I/N")
    index, total = readers[there[0]](environment)
    if total is None and count is None:
        raise ValueError(f"{text}: found {there[0]} without the number of shards, expected auto/N")
    if total is not None and count is not None and total != count:
        raise ValueError(f"{text}: found {total} shards in the environment, expected {count}")
    text_of_shard = f"{text}: shard {index} of {count or total} by {there[0]}={environment[there[0]]}"
    return _within(text_of_shard, index, count or total or 0)


def _slurm_shard(environment: Mapping[str, str]) -> tuple[int, int | None]:
    """The shard of a Slurm array task, from 1; tasks may be counted from any number, and in steps."""
    task, count, first, step = (_whole(environment, f"{_SLURM}{name}") for name in ("ID", "COUNT", "MIN", "STEP"))
    first = 1 if first is None else first
    position, remainder = divmod((task or 0) - first, max(1, 1 if step is None else step))
    if remainder:
        raise ValueError(
            f"auto: found {_SLURM}ID={task}, {_SLURM}MIN={first} and {_SLURM}STEP={step}, expected an array in even "
            "steps, such as --array=1-5, or I/N"
        )
    return position + 1, count


def _gitlab_shard(environment: Mapping[str, str]) -> tuple[int, int | None]:
    """The shard of a GitLab CI job, whose variables count from 1."""
    return _whole(environment, f"{_NODE}INDEX") or 0, _whole(environment, f"{_NODE}TOTAL")


def _kubernetes_shard(environment: Mapping[str, str]) -> tuple[int, int | None]:
    """The shard, from 1, of an indexed Kubernetes job, whose variables do not tell the number of shards."""
    return (_whole(environment, _COMPLETION) or 0) + 1, None


def _whole(environment: Mapping[str, str], name: str) -> int | None:
    """The whole number in a scheduler's environment variable, such as a task index; ``None`` if it is empty."""
    text = environment.get(name, "")
    if text and not (text.isascii() and text.isdigit()):
        raise ValueError(f"auto: found {name}={text!r}, expected a whole number")
    return int(text) if text else None


def groups_of(suite: LoadedSuite) -> Mapping[str, str]:
    """The group of each case by id: cases that one shard must run together.

    These are the cases of a cluster, and those that a service answers in one request. A group is named after the
    cluster, or else the id, of its first case; a case that is added at the end leaves all other groups unchanged.
    """
    parts = [(system.cases, system.target) for system in suite.systems.values()] or [(suite.cases, suite.target)]
    cases = {case.id: case for cases, _ in parts for case in cases}
    first = {name: name for name in cases}

    def root(name: str) -> str:
        while first[name] != name:
            name = first[name]
        return name

    places = {name: place for place, name in enumerate(cases)}
    for together in _together(suite, list(cases.values()), parts):
        roots = sorted({root(case.id) for case in together}, key=places.__getitem__)
        first |= dict.fromkeys(roots, roots[0])
    return {name: _name(cases[root(name)], suite) for name in cases}


def every_case(suite: LoadedSuite) -> list[Case]:
    """All cases of a suite that shards divide: its own, then those of its systems."""
    return [*suite.cases, *(case for system in suite.systems.values() for case in system.cases)]


def cut_in_shards(suite: LoadedSuite, file: str, count: int) -> dict[int, list[Case]]:
    """The cases of a suite by the index of their shard; a shard without cases is absent.

    Args:
        suite: With all its systems.
        file: Its file, as reports name it.
        count: Of shards.
    """
    groups = groups_of(suite)
    return grouped((index_of(file, groups.get(case.id, case.id), count), case) for case in every_case(suite))


def _together(
    suite: LoadedSuite, cases: Sequence[Case], parts: "Sequence[tuple[Sequence[Case], TargetSpec | None]]"
) -> Iterator[Sequence[Case]]:
    """Yield the cases that one shard must run together: clusters, and batches of a service."""
    clusters: dict[str, list[Case]] = {}
    for case in cases if suite.cluster_by else ():
        if (label := case.labels.get(suite.cluster_by or "")) is not None:
            clusters.setdefault(label, []).append(case)
    yield from clusters.values()
    for answered, target in parts:
        size = target.http.batch if target is not None and target.http is not None else 1
        if size > 1:
            questions = [case for case in answered if case.prediction is MISSING and not case.conversation]
            yield from {id(block): block for block in cut_in_blocks(questions, size).values()}.values()


def _name(case: Case, suite: LoadedSuite) -> str:
    """The name of the group of cases that one shard must run together: the case's cluster, or the case alone."""
    cluster = case.labels.get(suite.cluster_by) if suite.cluster_by else None
    return _alone(case.id) if cluster is None else f"cluster {cluster}"


class ResultOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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
        stop: When suites stop, in place of what they say.
        family: Whose gates are judged together.
    """

    judge: JudgeMode = "auto"
    judge_model: str | None = None
    judge_base_url: str | None = None
    texts: ReportedTexts = "failing"
    snapshots: bool = False
    predictions: str = ""
    predictions_mode: RecordingMode = "auto"
    selection: str = ""
    stop: Literal["decided", "never"] | None = None
    family: Literal["suite", "project"] | None = None


class SuitePrint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Fingerprints of a suite file and of all that decides its scores.

    Attributes:
        path: The file, relative to the root.
        file: Fingerprint of its bytes.
        data: Of its cases that belong to the shard.
        evaluators: Of its evaluators.
        plugins: What registers evaluators for it: conftests relative to the root, and names of modules, with
            the fingerprints of their files.
    """

    path: str
    file: str
    data: str
    evaluators: str
    plugins: Mapping[str, str] = msgspec.field(default_factory=dict)


class SuiteVariant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A suite, or a variant of it, whose cases ran in a shard.

    Attributes:
        key: Of its results; the path is relative to the root.
        judges: Evaluator label to what decides the verdicts.
    """

    key: SuiteKey
    judges: Mapping[str, Mapping[str, str]] = msgspec.field(default_factory=dict)


class Origin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first line of a shard file: what was run, and where.

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

    shard: str
    commit: str | None
    versions: Mapping[str, str]
    options: ResultOptions
    require_gates: bool
    collected: str
    items: Annotated[int, msgspec.Meta(ge=0, le=LARGEST)]
    imports: Sequence[str]
    suites: Sequence[SuitePrint]
    variants: Sequence[SuiteVariant]
    format: Literal["llmeval shard"] = "llmeval shard"
    version: Literal[1] = 1

    def write_shard(self, path: Path, run: RunRecord, root: Path) -> None:
        """Write the file in one step.

        Args:
            path: The file; its folder is made.
            run: The record of the run.
            root: Paths of other files are written relative to this folder, if they lie inside.

        Raises:
            OSError: It cannot be written.
        """
        run = run.relocated(lambda file: display_path(Path(file), root))
        if self.shard:
            run = structs.replace(run, deselected=set(), unwanted=set())  # the other shards have them
        course = {name: getattr(run, name) for name in run.__struct_fields__ if name not in _OWN_LINES}
        lines = [encode(self), encode(course, order="deterministic"), *map(encode, _lines(run))]
        lines += map(encode, _media_lines(lines, MediaFolder(root)))
        content = b"".join(line + b"\n" for line in lines)
        end = encode(_End(len(lines), sha256(content).hexdigest())) + b"\n"
        path.parent.mkdir(parents=True, exist_ok=True)
        OutputFile(path).write_bytes(gzip.compress(content + end, mtime=0))


class _ResultLine(msgspec.Struct, forbid_unknown_fields=True):
    """The line of a shard file with the result of one pytest item."""

    file: str
    nodeid: str
    outcome: str
    duration: JsonNumber
    result: SuitePart


class _RecordedJudgement(msgspec.Struct, forbid_unknown_fields=True):
    """The line of a shard file with one judge verdict."""

    recorded_in: str
    judgement: dict[str, Any]


class _MediumLine(msgspec.Struct, forbid_unknown_fields=True):
    """The line of a shard file with a medium that no file of the checkout has; bytes are in Base64."""

    medium: str
    content: bytes


class _End(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The last line of a shard file: the number of lines before it, and their digest."""

    lines: int
    sha256: str


@dataclass(frozen=True)
class ShardFile:
    """A shard file that has been read, for a merge.

    Attributes:
        path: The file.
        origin: What was run, and where.
        run: The record of the run, with paths in this checkout.
    """

    path: Path
    origin: Origin
    run: RunRecord

    @classmethod
    def read(cls, path: Path, root: Path) -> "ShardFile":
        """Read a shard file; the contents of media in it are kept beside this run.

        Args:
            path: The file.
            root: What other paths are relative to.

        Raises:
            LlmevalError: It cannot be read, is cut, or is no shard file.
        """
        try:
            count = _count_lines(path)
            return _parse_lines(path, islice(_lines_of(path), count), root)
        except OSError as error:
            raise LlmevalError(f"{path}: cannot be read: {error.strerror or error}") from None
        except (EOFError, zlib.error):
            raise LlmevalError(f"{path}: found a file that is cut or damaged, {_AGAIN}") from None
        except (ValueError, RecursionError) as error:
            raise LlmevalError(f"{path}: {_EXPECTED}: {error}") from None


_OWN_LINES = ("items", "judgements")
"""Fields of a `RunRecord` that have a line for each element; the others share the second line."""


def _lines(run: RunRecord) -> Iterator[_ResultLine | _RecordedJudgement]:
    """Yield the lines of a shard file: the results of a run's items, then the judgements that they used."""
    for item, result in sorted(run.items.items(), key=lambda named: named[0]):
        yield _ResultLine(item.file, item.nodeid, result.outcome, result.duration, result.part)
    for path, entry in run.judgements:
        yield _RecordedJudgement(path.as_posix(), entry.to_json())


_DIGEST = re.compile(rb'"sha256":"([0-9a-f]{64})"')


def _media_lines(lines: Sequence[bytes], folder: MediaFolder) -> Iterator[_MediumLine]:
    """Yield the shard file lines for media that a run's results name and that were kept beside the run."""
    digests = {digest for line in lines if b'"media"' in line for digest in _DIGEST.findall(line)}
    for digest in sorted(digests):
        if (path := folder.find(digest.decode())) is not None:
            yield _MediumLine(digest.decode(), path.read_bytes())


def _count_lines(path: Path) -> int:
    """The number of lines in a shard file before the last one, which confirms it; see `_lines_of`.

    Raises:
        LlmevalError: The lines are not those that were written.
    """
    digest, count, last = sha256(), -1, b""
    for line in _lines_of(path):
        digest.update(last)
        count, last = count + 1, line
    try:
        end = decode(last, _End)
    except (ValueError, RecursionError):
        raise LlmevalError(f"{path}: found a file without its end, {_AGAIN}") from None
    if end != _End(count, digest.hexdigest()):
        raise LlmevalError(f"{path}: found {max(count, 0)} lines that are not those that were written, {_AGAIN}")
    return count


def _lines_of(path: Path) -> Iterator[bytes]:
    """Yield the lines of a compressed shard file; what is packed more tightly than results can be is refused.

    Raises:
        LlmevalError: It is no compressed file, or holds too much.
        OSError: It cannot be read.
        EOFError: It is cut.
    """
    with path.open("rb") as packed:
        size = os.fstat(packed.fileno()).st_size
        most, values = max(_SMALL, _TIGHTEST * size), _FEW + _MOST_VALUES * size
        start = packed.read(len(_GZIP))
        if start and start != _GZIP:
            raise LlmevalError(f"{path}: found something else, {_EXPECTED}")
        packed.seek(0)
        try:
            with gzip.GzipFile(fileobj=packed) as text:
                while line := text.readline(_LONGEST_LINE):
                    most -= len(line)
                    values -= sum(map(line.count, _SEPARATORS))
                    if min(most, values) < 0 or not line.endswith(b"\n"):
                        raise LlmevalError(f"{path}: found more than results can be, {_EXPECTED}")
                    yield line
        except gzip.BadGzipFile:
            raise EOFError from None


_LONGEST_LINE = 64 << 20
_LONGEST_QUOTATION = 200
_YEAR_3000 = 32_503_680_000
_SMALL = 16 << 20
_TIGHTEST = 100
"""Times as long as when it is compressed, at most: results of cases that are alike reach 60."""

_SEPARATORS = (b",", b"[", b"{")
_FEW = 1_000_000
_MOST_VALUES = 8
"""Values for each compressed byte, besides `_FEW`: each takes up to 64 bytes of memory. Results reach 4."""

_GZIP = b"\x1f\x8b"
_AGAIN = "expected a whole shard file: run this shard again, or fetch its file again"
_EXPECTED = "expected a shard file that this version of pytest-llmeval-suite wrote"


def _parse_lines(path: Path, lines: Iterator[bytes], root: Path) -> ShardFile:
    """The content of a shard file, read from its unpacked lines."""
    first, second = next(lines, None), next(lines, None)
    if first is None or second is None:
        raise ValueError("the header is missing")
    origin, run = decode(first, Origin), decode(second, RunRecord)
    if not 0 <= run.started < _YEAR_3000 or run.seconds < 0:
        raise ValueError(
            f"found a run that started at {run.started} and took {run.seconds} s, expected seconds since 1970"
        )
    if origin.shard:
        Shard.read(origin.shard, {})
    for number, line in enumerate(lines, 3):
        try:
            if line.startswith(_MEDIUM):
                _keep_medium(line, MediaFolder(root))
            else:
                _add_line(run, line)
        except ValueError as error:
            raise ValueError(f"line {number}: found a result that cannot be read: {error}") from None
    paths = {suite.path for suite in origin.suites}
    known = (*run.selected, *(key.path for key in run.dropped), *(item.part.key.path for item in run.items.values()))
    foreign = {*known, *(variant.key.path for variant in origin.variants)} - paths
    if foreign and not run.ended:
        raise ValueError(f"found results of {min(foreign)!r}, which is none of its suites")
    recorded = {path.as_posix() for path, _ in run.judgements}
    for file in (*paths, *foreign, *recorded, origin.options.predictions):
        check_inside(file, root)
    for file in recorded:
        if not Path(file).match(f"{OwnFiles.FOLDER}/*.jsonl"):
            raise ValueError(f"found {file!r} as a file of judgements, expected one in {OwnFiles.FOLDER}")
    return ShardFile(path, origin, run.relocated(lambda file: str(root / file)))


_MEDIUM = b'{"medium"'


def _keep_medium(line: bytes, folder: MediaFolder) -> None:
    """Keep the medium that a line of a shard file carries.

    Raises:
        ValueError: It is not the one that its digest names.
    """
    medium = decode(line, _MediumLine)
    if sha256(medium.content).hexdigest() != medium.medium:
        raise ValueError(f"found a content that is not {medium.medium[:16]}")
    folder.keep(medium.medium, medium.content)


def check_inside(path: str, root: Path) -> None:
    """Refuse a path of a shard file that leaves the checkout.

    Raises:
        ValueError: It is absolute, goes up, or goes through a link to elsewhere.
    """
    parts = PurePosixPath(path.replace("\\", "/"))
    absolute = parts.is_absolute() or PureWindowsPath(path).drive
    if absolute or ".." in parts.parts or not (root / path).resolve().is_relative_to(root.resolve()):
        raise ValueError(f"found the path {path!r}, expected one inside the checkout")
    try:
        (root / path).stat()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise ValueError(f"found the path {quotation(path, _LONGEST_QUOTATION)}: {error.strerror}") from None


def _add_line(run: RunRecord, line: bytes) -> None:
    """Add the result or judgement in a line of a shard file to the run record.

    Raises:
        ValueError: It is neither.
    """
    if line.startswith(b'{"recorded_in"'):
        judgement = decode(line, _RecordedJudgement)
        run.judgements.add(Path(judgement.recorded_in), StoredJudgement.from_json(judgement.judgement))
    else:
        line_data = decode(line, _ResultLine)
        for record in line_data.result.records:
            for label, observation in record.observations.items():
                if fault := observation.fault():
                    raise ValueError(f"case {record.id!r}, {label}: {fault}")
        run.items[Item(line_data.file, line_data.nodeid)] = ItemResult(
            line_data.result, line_data.outcome, line_data.duration
        )
