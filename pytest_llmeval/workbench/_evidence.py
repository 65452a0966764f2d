"""Recorded verdicts and answers in two states: those of the same question with another reply."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from pytest_llmeval.core import as_line
from pytest_llmeval.workbench._loosening import Loosening

_SUFFIXES: Final = (".json", ".jsonl")
_LONGEST: Final = 100
_ANSWER: Final = ("suite", "variant", "case", "input", "repeat")
"""The keys that say which question a recorded answer belongs to."""


class _Recording(NamedTuple):
    """A recorded verdict or answer in one state of a project, for ``llmeval guard``."""

    line: int
    subject: str
    reply: str


def compare_evidence(base: Path, head: Path, changed: Iterable[str]) -> Iterator[Loosening]:
    """Yield recorded verdicts and answers that a pull request changed although their question is the same.

    Args:
        base: The earlier state.
        head: The later state.
        changed: Names of files that differ.
    """
    names = [name for name in changed if name.endswith(_SUFFIXES)]
    before = {key: recording for name in names for key, recording in _recordings(base / name)}
    for name in names:
        for key, after in _recordings(head / name):
            old = before.get(key)
            if old is not None and old.reply != after.reply:
                replies = as_line(old.reply, _LONGEST), as_line(after.reply, _LONGEST)
                yield Loosening(name, after.line, after.subject, "edited by hand, or asked again", *replies)


def _recordings(path: Path) -> Iterator[tuple[tuple[str, ...], _Recording]]:
    """Yield the recorded verdicts and answers of a file, by what identifies their question."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    rows = enumerate(text.split("\n"), 1) if path.suffix == ".jsonl" else [(1, text)]
    for line, row in rows:
        try:
            data = json.loads(row)
        except (ValueError, RecursionError):
            continue
        if isinstance(data, dict):
            yield from _recording(data, line)


def _recording(data: Mapping[str, Any], line: int) -> Iterator[tuple[tuple[str, ...], _Recording]]:
    """Yield the recorded verdict or answer of a JSON object, by what identifies its question."""
    if isinstance(data.get("key"), str) and isinstance(data.get("reply"), str):
        yield (data["key"],), _Recording(line, f"recorded verdict on case {data.get('case')}", data["reply"])
    elif "prediction" in data and {"suite", "case", "input"} <= data.keys():
        key = tuple(str(data.get(name, "")) for name in _ANSWER)
        reply = json.dumps(data["prediction"], ensure_ascii=False, sort_keys=True)
        yield key, _Recording(line, f"recorded answer to case {data['case']}", reply)
