"""Logs and datasets of inspect_ai."""

import json
import os
import re
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from msgspec import Struct, to_builtins

from pytest_llmeval.core import MissingExtraError
from pytest_llmeval.exchange._ledger import (
    CaseIds,
    Fate,
    ImportedSource,
    ImportedSuite,
    ImportOptions,
    SourceLedger,
    SourcePath,
    as_list,
    as_mapping,
    file_fault,
    first_text,
    is_scalar,
    read_as,
    read_records,
    read_source,
)
from pytest_llmeval.exchange._media import ImportedMedia, MediumPart, content_parts
from pytest_llmeval.exchange._records import Column, add_evaluators, suite_of_records
from pytest_llmeval.exchange._result_formats import INSPECT_CODES
from pytest_llmeval.exchange._templates import Direction, VerdictDifference, as_example

_DATASET: Final = {
    "id": Column("id"),
    "input": Column("input"),
    "question": Column("input"),
    "target": Column("expected"),
    "answer": Column("expected"),
    "choices": Column("input"),
    "metadata": Column("labels", "lists and objects are left out"),
    "sandbox": Column("lost", "no sandbox is started; write a target"),
    "files": Column("lost", "no sandbox is started; write a target"),
    "setup": Column("lost", "it is a script, which is never executed"),
}
_LARGEST = 256 << 20
"""Bytes that all samples of a log may have, unpacked."""
_LARGEST_HEADER = 16 << 20
"""Bytes that the header of a log may have, unpacked."""
_SAMPLE_FILE = re.compile(r"samples/.+_epoch_\d+\.json")
PATTERNS: Final = {
    "choice": (r"(?i)ANSWER\s*:\s*TARGET\b", "of ANSWER: and the letter of the target"),
    "includes": (r"(?i)TARGET", "of the target anywhere in the answer"),
    "match": (r"(?i)TARGET\W*$", "of the target at the end of the answer"),
}
"""Scorers of plain texts: pattern, and what it looks for."""

_SAMPLE_KEYS: Final = {
    "choices": (Fate.SAME, "part of the input"),
    "attachments": (Fate.SAME, "in their places"),
    "epoch": (Fate.NEAR, "each epoch is a case; repeats asks a case several times"),
    "id": (Fate.SAME, "the id of the case"),
    "input": (Fate.SAME, "the input of the case"),
    "metadata": (Fate.SAME, "labels: texts, numbers and booleans"),
    "output": (Fate.SAME, "the prediction of the case, with its tokens"),
    "scores": (Fate.NEAR, "labels score.NAME, to compare the metrics of this suite with"),
    "target": (Fate.SAME, "the right answer of the case"),
}
_MESSAGES: Final = {"input": (Fate.NEAR, "its messages are the input, as a list")}
_OTHERS: Final = "the record of the run; import reads input, target, output and scores"


def import_inspect(path: Path, display_path: str, options: ImportOptions) -> ImportedSource:
    """Import a log or a dataset of inspect_ai as a suite.

    Raises:
        SuiteError: The file cannot be read, or it is neither.
    """
    if path.suffix.lower() == ".eval":
        ledger = SourceLedger(display_path, read_eval(path, display_path), lambda _: 0)
    elif path.suffix.lower() == ".json":
        ledger = read_source(path, display_path)
    else:
        return _of_dataset(path, display_path, options)
    if not {"eval", "status"} <= as_mapping(ledger.data).keys():
        return _of_dataset(path, display_path, options)
    return _LogReader(ledger, ImportedSuite(options.suite_name(path.stem)), path.parent).imported()


def _of_dataset(path: Path, display_path: str, options: ImportOptions) -> ImportedSource:
    """Import a dataset of inspect_ai, a file of records, as a suite."""
    ledger, records, beside = read_records(path, display_path, ("samples",))
    suite = suite_of_records(options.suite_name(path.stem), ledger, records, _DATASET, path.parent)
    source = ImportedSource(display_path, suite, [ledger, *beside])
    if not any("input" in case for case in suite.cases):
        source.suite = None
        source.refusal = f"the column 'input' is missing among {', '.join(ledger.data)}: name a dataset or a log"
    return source


def read_eval(path: Path, display_path: str) -> dict[str, Any]:
    """Read a zipped log of inspect_ai, with a header and a file for each sample, as its log in JSON.

    Raises:
        SuiteError: It cannot be read, or is too large.
    """
    try:
        with zipfile.ZipFile(path) as archive, path.open("rb") as stream:
            names = [name for name in archive.namelist() if _SAMPLE_FILE.fullmatch(name)]
            size = sum(archive.getinfo(name).file_size for name in names)
            if size > _LARGEST:
                raise file_fault(display_path, f"found samples of more than {_LARGEST >> 20} MiB, expected fewer")
            header = next((name for name in ("header.json", "_journal/start.json") if name in archive.namelist()), None)
            if header is None:
                raise file_fault(display_path, "the header is missing, expected a log of inspect_ai")
            if archive.getinfo(header).file_size > _LARGEST_HEADER:  # no more than this says is unpacked
                message = f"found a header of more than {_LARGEST_HEADER >> 20} MiB, expected a log of inspect_ai"
                raise file_fault(display_path, message)
            data = {"status": "started", **json.loads(_unpacked(archive, stream, header))}
            data["samples"] = [json.loads(_unpacked(archive, stream, name)) for name in sorted(names, key=_order)]
    except MissingExtraError as error:
        raise file_fault(display_path, str(error)) from None
    except (OSError, ValueError, TypeError, EOFError, NotImplementedError, RuntimeError, struct.error) as error:
        raise file_fault(display_path, f"cannot be read as a log of inspect_ai: {error}") from None
    except (zipfile.BadZipFile, zlib.error, RecursionError) as error:
        raise file_fault(display_path, f"cannot be read as a log of inspect_ai: {error}") from None
    return data


_ZSTANDARD: Final = 93
"""The number of a compression that zipfile knows since Python 3.14, and logs have since 2026."""
_LOCAL_HEADER: Final = struct.Struct("<26xHH")


def _unpacked(archive: zipfile.ZipFile, stream: IO[bytes], name: str) -> bytes:
    """The content of a file in a zipped log of inspect_ai.

    Raises:
        MissingExtraError: Its compression needs a library.
        zipfile.BadZipFile: It is damaged.
    """
    info = archive.getinfo(name)
    if info.compress_type != _ZSTANDARD or sys.version_info >= (3, 14):
        return archive.read(name)
    with MissingExtraError.unless_installed("a log compressed with Zstandard", "inspect"):
        import zstandard
    stream.seek(info.header_offset)
    stream.seek(sum(_LOCAL_HEADER.unpack(stream.read(_LOCAL_HEADER.size))), os.SEEK_CUR)
    try:
        with zstandard.ZstdDecompressor().stream_reader(stream.read(info.compress_size)) as reader:
            content = reader.read(info.file_size + 1)
    except zstandard.ZstdError as error:
        raise zipfile.BadZipFile(f"{name}: {error}") from None
    if len(content) != info.file_size or zlib.crc32(content) != info.CRC:
        raise zipfile.BadZipFile(f"Bad CRC-32 for file {name!r}")
    return content


def _order(name: str) -> list[str]:
    """The sort key of a sample's file in a zipped log of inspect_ai, by which 10 follows 9."""
    return [part.zfill(12) for part in re.split(r"[/_.]", name)]


class _LogMedia(NamedTuple):
    """The media of a sample in a log of inspect_ai.

    Attributes:
        media: Of the suite.
        attachments: Contents that a log has once, beside its messages.
    """

    media: ImportedMedia
    attachments: Mapping[str, Any]

    def of_part(self, part: MediumPart) -> dict[str, str]:
        """Return a part of a message as a value of a suite.

        Raises:
            LeftOutError: Its content is not here.
        """
        name = part.address.removeprefix("attachment://")
        content = first_text(self.attachments, name) if name != part.address else part.address
        return self.media.of_part(part._replace(address=content))


class _LogMessage(Struct):
    """A message in a log of inspect_ai."""

    content: str | list[str | dict[str, Any]] | None = None
    role: str | None = None

    def value(self, media: _LogMedia) -> Any:
        """Return its texts, one below the other; with media, a list of both.

        Raises:
            LeftOutError: The content of a medium is not here.
        """
        parts = [part for part in content_parts(self.content) if part]
        if all(isinstance(part, str) for part in parts):
            return "\n".join(map(str, parts))
        return [part if isinstance(part, str) else media.of_part(part) for part in parts]


class _Choice(Struct):
    """A completion in a log of inspect_ai."""

    message: _LogMessage


class _Tokens(Struct, omit_defaults=True):
    """The token usage of a completion in a log of inspect_ai."""

    input_tokens: int | None = None
    output_tokens: int | None = None


class _Output(Struct):
    """The output of a model in a log of inspect_ai."""

    choices: list[_Choice] = []
    usage: _Tokens | None = None

    def prediction(self, media: _LogMedia) -> Any:
        """Return the answer, with its tokens if they are known; ``None`` if there is none.

        Raises:
            LeftOutError: The content of a medium is not here.
        """
        if not self.choices:
            return None
        answer, tokens = self.choices[0].message.value(media), to_builtins(self.usage)
        if isinstance(answer, list) and len(answer) == 1:
            (answer,) = answer
        return {"answer": answer, "usage": tokens} if tokens else answer


class _LogSample(Struct):
    """A sample in a log of inspect_ai."""

    input: str | list[_LogMessage]
    id: str | int | None = None
    epoch: int = 1
    choices: list[Any] | None = None
    target: Any = None
    output: _Output | None = None
    metadata: dict[str, Any] | None = None
    scores: dict[str, Any] | None = None
    attachments: dict[str, Any] = {}

    def question(self, media: _LogMedia) -> Any:
        """Return the input: text, or messages with roles.

        Raises:
            LeftOutError: The content of a medium is not here.
        """
        if isinstance(self.input, str):
            return self.input
        return [{"role": message.role, "content": message.value(media)} for message in self.input]

    def labels(self) -> Iterator[tuple[str, Any]]:
        """Yield metadata and scores as labels."""
        for name, value in (self.metadata or {}).items():
            if is_scalar(value):
                yield name, value
        for name, score in (self.scores or {}).items():
            value = as_mapping(score).get("value", None if isinstance(score, Mapping) else score)
            if is_scalar(value):
                yield f"score.{name}", INSPECT_CODES.get(value, value) if isinstance(value, str) else value


class _LogReader:
    """A reader of one log of inspect_ai, whose samples become the cases of a suite."""

    def __init__(self, ledger: SourceLedger, suite: ImportedSuite, folder: Path) -> None:
        self.ledger = ledger
        self.folder = folder
        self.suite = suite
        self.ids = CaseIds()
        self.checks: list[str] = []
        self.scorers: tuple[str, str] = ("eval", "scorers")

    def imported(self) -> ImportedSource:
        """Return the suite of the samples of a log."""
        data = self.ledger.data
        source = ImportedSource(self.ledger.file, ledgers=[self.ledger])
        if task := first_text(as_mapping(data["eval"]), "task"):
            self.suite.settings["description"] = task
            self.ledger.same(("eval", "task"), "task", "description of the suite")
        self._read_scorers(data)
        for number, sample in enumerate(as_list(data.get("samples"))):
            self._sample(sample, ("samples", number))
        for key, value in data.items():
            for inner in as_mapping(value):
                if (key, inner) not in (("eval", "task"), self.scorers):
                    self.ledger.lost(
                        (key, inner), f"{key} {inner}", "figures of a run are computed anew from its answers"
                    )
        if not self.suite.cases:
            return source.refuse("samples are missing: write the log with its samples")
        add_evaluators(self.suite)
        source.suite = self.suite
        return source

    def _read_scorers(self, data: Mapping[str, Any]) -> None:
        """Note the scorers, which old logs have with the results; those of plain texts become checks of each case."""
        for section, key in (("eval", "scorers"), ("results", "scores")):
            if scorers := as_list(as_mapping(data.get(section)).get(key)):
                self.scorers = (section, key)
                break
        for number, scorer in enumerate(scorers):
            path = (*self.scorers, number)
            name = str(as_mapping(scorer).get("name", "")).rpartition("/")[2]
            if name in PATTERNS:
                self.checks.append(name)
                differences = [VerdictDifference("spaces and punctuation may count differently")]
                self.ledger.same(path, f"scorer {name}", f"check regex, {PATTERNS[name][1]}", differences)
            elif name in ("exact", "f1"):
                differences = [
                    VerdictDifference("articles and punctuation count", Direction.STRICTER, as_example("The Lima."))
                ]
                self.ledger.same(path, f"scorer {name}", "evaluator text", differences)
            else:
                text = "scores are labels score.NAME; write a check judge, or a registered check"
                self.ledger.lost(path, f"scorer {name}", text)

    def _sample(self, data: Any, path: SourcePath) -> None:
        with self.ledger.losing(path, "sample"):
            sample = read_as(_LogSample, data)
            name = sample.id if sample.epoch == 1 else f"{sample.id} epoch {sample.epoch}"
            media = _LogMedia(ImportedMedia(self.suite, self.folder), sample.attachments)
            question = sample.question(media)
            case: dict[str, Any] = {"id": self.ids.next(name)}
            case["input"] = {"question": question, "choices": sample.choices} if sample.choices else question
            if sample.target not in (None, "", []):
                case["expected"] = sample.target
                if checks := [_check(name, sample.target) for name in self.checks]:
                    case["checks"] = checks
            if sample.output is not None and (prediction := sample.output.prediction(media)) is not None:
                case["prediction"] = prediction
            if labels := dict(sample.labels()):
                case["labels"] = labels
            self.suite.cases.append(case)
            known = _SAMPLE_KEYS | ({} if isinstance(sample.input, str) else _MESSAGES)
            self.ledger.note_keys(data, path, "sample ", known, _OTHERS)


def _check(scorer: str, target: Any) -> dict[str, Any]:
    """The check that an inspect_ai scorer becomes for a target, or for several of which one is enough."""
    targets = [str(answer).strip() for answer in (target if isinstance(target, list) else [target])]
    pattern = PATTERNS[scorer][0]
    either = "|".join(map(re.escape, targets))
    return {"regex": pattern.replace("TARGET", f"(?:{either})"), "name": scorer}
