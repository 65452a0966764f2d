"""Recorded judgements: a committed JSONL file beside the suite that replaces the judge."""

__all__ = (
    "Judgements",
    "UsedJudgements",
    "Written",
    "encode_judgements",
    "judgements_of",
    "merge_judgements",
    "recorded_line",
    "write_judgements",
)

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_llmeval.core.errors import LlmevalError
from pytest_llmeval.data.files.documents import decode, read_bytes
from pytest_llmeval.data.files.folders import own_file
from pytest_llmeval.data.files.json import unique_keys
from pytest_llmeval.data.files.places import FaultLog
from pytest_llmeval.data.files.writing import rewrite

if TYPE_CHECKING:
    from pytest_llmeval.judge.stored_judgement import StoredJudgement

_CONFLICT = re.compile(r"<{7}( |$)|={7}$|>{7}( |$)|\|{7}( |$)")
_HIDDEN = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
"""What would not be seen in a review, would turn text round there, or cannot be written as UTF-8."""


def judgements_of(asking: Path) -> Path:
    """Return the file that holds the judgements which a suite or a Python test file asked for."""
    return own_file(asking, "judgements.jsonl")


class Judgements:
    """The judgements of one file.

    Attributes:
        path: The file.
        entries: Key to judgement.
    """

    def __init__(self, path: Path, entries: "Iterable[StoredJudgement]" = ()) -> None:
        self.path = path
        self.entries = {entry.key: entry for entry in entries}

    @classmethod
    def read(cls, path: Path, display_path: str | None = None) -> "Judgements":
        """Read a file; an absent one is empty.

        Args:
            path: The file.
            display_path: Its name in errors; default: its path.

        Raises:
            SuiteError: The file cannot be read, or lines are no judgements; all of them are listed.
        """
        return cls(path, _read(path, display_path or str(path)) if path.exists() else ())

    def get(self, key: str) -> "StoredJudgement | None":
        """Return the judgement recorded under a key."""
        return self.entries.get(key)

    def has(self, case: str, mode: str) -> bool:
        """Return whether a case has judgements of a mode."""
        return any(each.components["mode"] == mode for each in self._by_case.get(case, ()))

    def nearest(self, case: str, components: Mapping[str, Any]) -> str:
        """Say why nothing is recorded: what differs from the most similar judgement of the mode, best of the case.

        Args:
            case: Id of the case.
            components: What the missing key is made of.
        """
        from pytest_llmeval.judge.stored_judgement import difference

        mode, of_case = components["mode"], self._by_case.get(case, ())
        own = _most_like(components, [each for each in of_case if each.components["mode"] == mode])
        if own is not None:
            return f"the recorded verdict of this case differs in {difference(components, own.components)}"
        modes = sorted({each.components["mode"] for each in of_case})
        why = f"this case has verdicts of {', '.join(modes)}" if modes else "no verdict is recorded for this case"
        other = _most_like(components, self._by_mode.get(mode, ()))
        if other is None:
            return why
        return f"{why}; the one of case {other.case!r} differs in {difference(components, other.components)}"

    @cached_property
    def _by_case(self) -> "dict[str, list[StoredJudgement]]":
        return _grouped((entry.case, entry) for entry in self.entries.values())

    @cached_property
    def _by_mode(self) -> "dict[str, list[StoredJudgement]]":
        return _grouped((entry.components["mode"], entry) for entry in self.entries.values())


def merge_judgements(
    old: "Iterable[StoredJudgement]", new: "Iterable[StoredJudgement]", forget: Collection[str] = ()
) -> "list[StoredJudgement]":
    """Merge the judgements that a run used into the recorded ones; a new judgement replaces the old one of its key.

    One with the same reply does not: how long it took this time is no reason to change a committed file.

    Args:
        old: What is recorded.
        new: What the run used.
        forget: Cases of which nothing old is kept, because the run had all their judgements.
    """
    known = {entry.key: entry for entry in old}
    merged = {key: entry for key, entry in known.items() if entry.case not in forget}
    for entry in new:
        before = known.get(entry.key)
        same = before is not None and (before.reply, before.case) == (entry.reply, entry.case)
        merged[entry.key] = before if before is not None and same else entry
    return list(merged.values())


def write_judgements(path: Path, entries: "Iterable[StoredJudgement]") -> bool:
    """Write a file in one step, sorted by case, mode, repeat and key; of two judgements of a key the later is written.

    Returns:
        Whether the file had to change; no file is made for no judgement.

    Raises:
        LlmevalError: The file cannot be written.
    """
    fixed = list(entries)
    return _rewrite(path, lambda: fixed)


def _rewrite(path: Path, made: "Callable[[], Iterable[StoredJudgement]]") -> bool:
    def text() -> str:
        single = {entry.key: entry for entry in made()}.values()
        return "".join(recorded_line(entry) for entry in sorted(single, key=_order))

    try:
        return rewrite(path, text)
    except OSError as error:
        raise LlmevalError(f"{path}: the judgements cannot be written ({error.strerror})") from error


def recorded_line(entry: "StoredJudgement") -> str:
    """Return a judgement as one line, readable in a diff; characters that would not be seen there are escaped."""
    text = json.dumps(entry.to_json(), ensure_ascii=False, allow_nan=False)
    return visible(text) + "\n"


def visible(text: str) -> str:
    """Return JSON text in which characters that would not be seen in a review are escaped."""
    return _HIDDEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _merged(path: Path, used: "Iterable[StoredJudgement]", lacking: Collection[str] | None) -> "list[StoredJudgement]":
    """Merge the judgements of a run into a file; a renewing run drops the others, except of cases without a score."""
    old = Judgements.read(path).entries.values()
    forget = {entry.case for entry in old}.difference(lacking) if lacking is not None else ()
    return merge_judgements(old, used, forget)


def _order(entry: "StoredJudgement") -> tuple[str, str, int, str]:
    return entry.case, entry.components["mode"], entry.components["repeat"], entry.key


def _grouped(pairs: "Iterable[tuple[str, StoredJudgement]]") -> "dict[str, list[StoredJudgement]]":
    groups: dict[str, list[StoredJudgement]] = {}
    for name, entry in pairs:
        groups.setdefault(name, []).append(entry)
    return groups


def _most_like(components: Mapping[str, Any], entries: "Iterable[StoredJudgement]") -> "StoredJudgement | None":
    def rank(entry: "StoredJudgement") -> tuple[int, str]:
        theirs = entry.components
        texts, recorded = components["texts"], theirs["texts"]
        unlike = sum(components[name] != theirs[name] for name in components if name != "texts")
        changed = sum(texts.get(name) != recorded.get(name) for name in texts.keys() | recorded.keys())
        return unlike + changed, entry.key

    return min(entries, key=rank, default=None)


def _read(path: Path, display_path: str) -> "list[StoredJudgement]":
    from pytest_llmeval.judge.stored_judgement import StoredJudgement

    faults = FaultLog(display_path)
    entries: dict[str, tuple[int, StoredJudgement]] = {}
    for number, text in enumerate(decode(read_bytes(path, display_path), display_path).split("\n"), 1):
        if not text.strip():
            continue
        if _CONFLICT.match(text.rstrip("\r")):
            faults.add(
                number,
                1,
                "",
                "found a merge conflict marker, expected a judgement: keep the lines of both sides",
            )
            continue
        try:
            entry = StoredJudgement.from_json(_parse(text))
        except ValueError as error:
            faults.add(number, 1, "", str(error))
            continue
        first, known = entries.setdefault(entry.key, (number, entry))
        if known != entry:
            faults.add(
                number,
                1,
                "key",
                f"found a judgement with the key of line {first}, expected distinct keys: delete one of them",
            )
    faults.check()
    return [entry for _, entry in entries.values()]


def _parse(text: str) -> Any:
    """Parse JSON that may hold half of a surrogate pair: a reply is kept as it came."""
    try:
        return json.loads(text, object_pairs_hook=unique_keys)
    except json.JSONDecodeError as error:
        raise ValueError(f"found invalid JSON at column {error.colno} ({error.msg}), expected a judgement") from None
    except RecursionError:
        raise ValueError("found too many levels of nesting, expected a judgement") from None


class Written(NamedTuple):
    """What came of one file of recordings.

    Attributes:
        path: The file.
        judgements: How many judgements the run used, if the file has changed; else 0.
        fault: Why it could not be written, or nothing.
    """

    path: Path
    judgements: int
    fault: str = ""


def encode_judgements(used: "Iterable[tuple[Path, StoredJudgement]]") -> str:
    """Write judgements, each with the file that asked for it, as one line of ASCII."""
    return json.dumps([(str(asking), entry.to_json()) for asking, entry in used])


class UsedJudgements:
    """Judgements by the file that they are recorded in."""

    def __init__(self) -> None:
        self._used: dict[Path, list[StoredJudgement]] = {}

    def take(self, text: str) -> None:
        """Add what `encode_judgements` wrote."""
        from pytest_llmeval.judge.stored_judgement import StoredJudgement

        for asking, entry in json.loads(text):
            self.add(judgements_of(Path(asking)), StoredJudgement.from_json(entry))

    def add(self, path: Path, entry: "StoredJudgement") -> None:
        """Add a judgement that is recorded in a file."""
        self._used.setdefault(path, []).append(entry)

    def __iter__(self) -> "Iterator[tuple[Path, StoredJudgement]]":
        """Iterate over the judgements, each with the file that it is recorded in, in an order of their content."""
        for path, entries in sorted(self._used.items()):
            for entry in sorted(entries, key=lambda entry: (*_order(entry), entry.reply)):
                yield path, entry

    def write(self, renewed: Mapping[Path, Collection[str]]) -> Iterator[Written]:
        """Write recordings, in the order of their files.

        Args:
            renewed: Suites that renewed all verdicts, to their cases without a score: what the others did not
                use is forgotten.

        Yields:
            What came of each file.
        """
        anew = {judgements_of(asking): lacking for asking, lacking in renewed.items()}
        for path, used in sorted(self._used.items()):
            try:
                # If cases share a verdict, the first by name is recorded, whichever was reported first.
                used.sort(key=lambda entry: entry.case, reverse=True)
                changed = _rewrite(path, partial(_merged, path, used, anew.get(path)))
                yield Written(path, len({entry.key for entry in used}) if changed else 0)
            except LlmevalError as error:
                yield Written(path, 0, str(error))
