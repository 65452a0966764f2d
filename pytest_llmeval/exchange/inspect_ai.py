"""Logs and datasets of inspect_ai: samples with targets, recorded outputs and scores."""

import json
import os
import re
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final

from pytest_llmeval.core.errors import MissingExtraError, needing
from pytest_llmeval.exchange.contract import (
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
    is_scalar,
    read_records,
    read_source,
)
from pytest_llmeval.exchange.records import Column, add_evaluators, suite_of_records
from pytest_llmeval.exchange.result_formats import INSPECT_CODES
from pytest_llmeval.exchange.templates import Direction, VerdictDifference, as_example

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
    """Return a log, or a dataset, as a suite.

    Raises:
        SuiteError: The file cannot be read, or it is neither.
    """
    if path.suffix.lower() == ".eval":
        ledger = SourceLedger(display_path, read_eval(path, display_path), lambda _: 0)
    elif path.suffix.lower() == ".json":
        ledger = read_source(path, display_path)
    else:
        return _of_dataset(path, display_path, options)
    if not isinstance(ledger.data, Mapping) or not {"eval", "status"} <= ledger.data.keys():
        return _of_dataset(path, display_path, options)
    return _LogReader(ledger, ImportedSuite(options.suite_name(path.stem))).imported()


def _of_dataset(path: Path, display_path: str, options: ImportOptions) -> ImportedSource:
    ledger, records, beside = read_records(path, display_path, ("samples",))
    suite = suite_of_records(options.suite_name(path.stem), ledger, records, _DATASET)
    source = ImportedSource(display_path, suite, [ledger, *beside])
    if not any("input" in case for case in suite.cases):
        source.suite = None
        source.refusal = f"found no column 'input' among {', '.join(ledger.data)}, expected a dataset or a log"
    return source


def read_eval(path: Path, display_path: str) -> dict[str, Any]:
    """Return a log in the packed form, a zip file with a header and a file for each sample, as a log in JSON has it.

    Raises:
        SuiteError: It cannot be read, or is too large.
    """
    try:
        with zipfile.ZipFile(path) as archive, path.open("rb") as stream:
            names = [name for name in archive.namelist() if _SAMPLE_FILE.fullmatch(name)]
            size = sum(archive.getinfo(name).file_size for name in names)
            if size > _LARGEST:
                raise file_fault(display_path, f"found samples of more than {_LARGEST >> 20} MiB, expected fewer")
            header = next((each for each in ("header.json", "_journal/start.json") if each in archive.namelist()), None)
            if header is None:
                raise file_fault(display_path, "found no header in it, expected a log of inspect_ai")
            if archive.getinfo(header).file_size > _LARGEST_HEADER:  # no more than this says is unpacked
                message = f"found a header of more than {_LARGEST_HEADER >> 20} MiB, expected a log of inspect_ai"
                raise file_fault(display_path, message)
            data = {"status": "started", **json.loads(_unpacked(archive, stream, header))}
            data["samples"] = [json.loads(_unpacked(archive, stream, name)) for name in sorted(names, key=_order)]
    except MissingExtraError as error:
        raise file_fault(display_path, str(error)) from None
    except (OSError, ValueError, TypeError, EOFError, NotImplementedError, RuntimeError, struct.error) as error:
        raise file_fault(display_path, f"found no readable log ({error}), expected one of inspect_ai") from None
    except (zipfile.BadZipFile, zlib.error, RecursionError) as error:
        raise file_fault(display_path, f"found no readable log ({error}), expected one of inspect_ai") from None
    return data


_ZSTANDARD: Final = 93
"""The number of a compression that zipfile knows since Python 3.14, and logs have since 2026."""
_LOCAL_HEADER: Final = struct.Struct("<26xHH")


def _unpacked(archive: zipfile.ZipFile, stream: IO[bytes], name: str) -> bytes:
    """Return the content of a file in a zip file.

    Raises:
        MissingExtraError: Its compression needs a library.
        zipfile.BadZipFile: It is damaged.
    """
    info = archive.getinfo(name)
    if info.compress_type != _ZSTANDARD or sys.version_info >= (3, 14):
        return archive.read(name)
    with needing("a log compressed with Zstandard", "inspect"):
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
    return [each.zfill(12) for each in re.split(r"[/_.]", name)]


class _LogReader:
    """Reads one log."""

    def __init__(self, ledger: SourceLedger, suite: ImportedSuite) -> None:
        self.ledger = ledger
        self.suite = suite
        self.ids = CaseIds()
        self.checks: list[str] = []
        self.scorers: tuple[str, str] = ("eval", "scorers")

    def imported(self) -> ImportedSource:
        """Return the suite of the samples of a log."""
        data = self.ledger.data
        source = ImportedSource(self.ledger.file, ledgers=[self.ledger])
        task = as_mapping(data["eval"]).get("task")
        if isinstance(task, str):
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
            return source.refuse("found no sample in the log, expected one that was written with samples")
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

    def _sample(self, sample: Any, path: SourcePath) -> None:
        if not isinstance(sample, Mapping) or "input" not in sample:
            self.ledger.lost(path, "sample", "found no input")
            return
        epoch = sample.get("epoch", 1)
        name = sample.get("id") if epoch == 1 else f"{sample.get('id')} epoch {epoch}"
        question = _question(sample["input"])
        choices = sample.get("choices")
        case: dict[str, Any] = {"id": self.ids.next(name)}
        case["input"] = {"question": question, "choices": choices} if choices else question
        target = sample.get("target")
        if target not in (None, "", []):
            case["expected"] = target
            if checks := [_check(name, target) for name in self.checks]:
                case["checks"] = checks
        if (prediction := _prediction(sample.get("output"))) is not None:
            case["prediction"] = prediction
        if labels := dict(_labels(sample)):
            case["labels"] = labels
        self.suite.cases.append(case)
        known = _SAMPLE_KEYS | (_MESSAGES if isinstance(sample["input"], list) else {})
        self.ledger.note_keys(sample, path, "sample ", known, _OTHERS)


def _check(scorer: str, target: Any) -> dict[str, Any]:
    """Return the check that a scorer is for a target, or for several of which one is enough."""
    targets = [str(each).strip() for each in (target if isinstance(target, list) else [target])]
    pattern = PATTERNS[scorer][0]
    either = "|".join(map(re.escape, targets))
    return {"regex": pattern.replace("TARGET", f"(?:{either})"), "name": scorer}


def _question(value: Any) -> Any:
    """Return the input of a sample: text, or messages with roles."""
    if not isinstance(value, list):
        return value
    messages = (each for each in value if isinstance(each, Mapping))
    return [{"role": each.get("role"), "content": _text(each.get("content"))} for each in messages]


def _text(content: Any) -> str:
    """Return the text of a message."""
    if isinstance(content, list):
        return "\n".join(
            str(each.get("text", "")) for each in content if isinstance(each, Mapping) and each.get("text")
        )
    return "" if content is None else str(content)


def _prediction(output: Any) -> Any:
    """Return the recorded answer of a sample; ``None`` if it has none."""
    choices = as_list(as_mapping(output).get("choices"))
    if not choices or not isinstance(choices[0], Mapping):
        return None
    answer = _text(as_mapping(choices[0].get("message")).get("content"))
    usage = as_mapping(output.get("usage"))
    tokens = {key: usage[key] for key in ("input_tokens", "output_tokens") if isinstance(usage.get(key), int)}
    return {"answer": answer, "usage": tokens} if tokens else answer


def _labels(sample: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield metadata and scores of a sample as labels."""
    for name, value in as_mapping(sample.get("metadata")).items():
        if is_scalar(value):
            yield str(name), value
    for name, score in as_mapping(sample.get("scores")).items():
        value = score.get("value") if isinstance(score, Mapping) else score
        if is_scalar(value):
            yield f"score.{name}", INSPECT_CODES.get(value, value) if isinstance(value, str) else value
