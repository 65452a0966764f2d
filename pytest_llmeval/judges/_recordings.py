"""Files of verdicts that people commit."""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from pytest_llmeval.core import LlmevalError, SuiteError, excerpt, grouped
from pytest_llmeval.data import FaultLog, InputFile, JsonText, OutputFile, OwnFiles

if TYPE_CHECKING:
    from pytest_llmeval.judges._stored_judgement import StoredJudgement


_CONFLICT = re.compile(r"<{7}( |$)|={7}$|>{7}( |$)|\|{7}( |$)")
_HIDDEN = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
"""Characters that a review hides, that reverse text there, or that cannot be written as UTF-8."""


class Judgements:
    """The recorded judgements of one suite file or Python test file.

    Attributes:
        path: The file.
        entries: Key to judgement.
    """

    NOT_RECORDED: ClassVar = "no recorded verdict"
    """The words of the error of a question whose verdict is not recorded."""

    def __init__(self, path: Path, entries: "Iterable[StoredJudgement]" = ()) -> None:
        self.path = path
        self.entries = {entry.key: entry for entry in entries}

    @staticmethod
    def path_of(asking: Path) -> Path:
        """The file of recorded judgements of a suite or a Python test file."""
        return OwnFiles(asking).path("judgements.jsonl")

    @classmethod
    def read(cls, path: Path, display_path: str | None = None) -> "Judgements":
        """Read a file; an absent one is empty.

        Args:
            path: The file.
            display_path: Its name in errors; default: its path.

        Raises:
            SuiteError: The file cannot be read, or lines are no judgements; all of them are listed.
        """
        return cls(path, _read_recordings(path, display_path or str(path)) if path.exists() else ())

    def write(self) -> bool:
        """Write the file in one step, sorted by case, mode, repeat and key.

        Returns:
            Whether the file had to change; no file is made for no judgement.

        Raises:
            LlmevalError: The file cannot be written.
        """
        return _rewrite_recordings(self.path, self.entries.values)

    @staticmethod
    def write_used(
        used: "Mapping[Path, list[StoredJudgement]]", renewed: Mapping[Path, Collection[str]]
    ) -> "Iterator[Written]":
        """Write the judgements that a run used to their recordings files, in the order of the files.

        Args:
            used: The judgements that a run used, by the file that they are recorded in.
            renewed: Suites that renewed all verdicts, to their cases without a score: what the others did not
                use is forgotten.

        Yields:
            What was written to each file.
        """
        anew = {Judgements.path_of(asking): lacking for asking, lacking in renewed.items()}
        for path, entries in sorted(used.items()):
            try:
                # If cases share a verdict, the first by name is recorded, whichever was reported first.
                entries.sort(key=lambda entry: entry.case, reverse=True)
                changed = _rewrite_recordings(path, partial(_merged, path, entries, anew.get(path)))
                yield Written(path, len({entry.key for entry in entries}) if changed else 0)
            except LlmevalError as error:
                yield Written(path, 0, str(error))

    def get(self, key: str) -> "StoredJudgement | None":
        """The judgement recorded under a key."""
        return self.entries.get(key)

    def has(self, case: str, mode: str) -> bool:
        """Whether a case has judgements of a mode."""
        return any(judgement.components["mode"] == mode for judgement in self._by_case.get(case, ()))

    def nearest(self, case: str, components: Mapping[str, Any]) -> str:
        """The difference from the most similar recorded judgement, for the reason why nothing is recorded.

        Args:
            case: Id of the case.
            components: What the missing key is made of.
        """
        from pytest_llmeval.judges._stored_judgement import difference

        mode, of_case = components["mode"], self._by_case.get(case, ())
        own = _most_like(components, [judgement for judgement in of_case if judgement.components["mode"] == mode])
        if own is not None:
            return f"the recorded verdict of this case differs in {difference(components, own.components)}"
        modes = sorted({judgement.components["mode"] for judgement in of_case})
        why = f"this case has verdicts of {', '.join(modes)}" if modes else "no verdict is recorded for this case"
        other = _most_like(components, self._by_mode.get(mode, ()))
        if other is None:
            return why
        return f"{why}; the one of case {other.case!r} differs in {difference(components, other.components)}"

    @cached_property
    def _by_case(self) -> "dict[str, list[StoredJudgement]]":
        return grouped((entry.case, entry) for entry in self.entries.values())

    @cached_property
    def _by_mode(self) -> "dict[str, list[StoredJudgement]]":
        return grouped((entry.components["mode"], entry) for entry in self.entries.values())


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


def _rewrite_recordings(path: Path, entries: "Callable[[], Iterable[StoredJudgement]]") -> bool:
    """Rewrite a file of recorded judgements, sorted and one for each key; return whether it changed."""

    def text() -> str:
        single = {entry.key: entry for entry in entries()}.values()
        return "".join(recorded_line(entry) for entry in sorted(single, key=lambda entry: entry.place))

    try:
        return OutputFile(path).rewrite(text)
    except OSError as error:
        raise LlmevalError(f"{path}: the judgements cannot be written ({error.strerror})") from error


def recorded_line(entry: "StoredJudgement") -> str:
    """A judgement as a line of a recordings file, readable in a diff; invisible characters are escaped."""
    text = json.dumps(entry.to_json(), ensure_ascii=False, allow_nan=False)
    return visible(text) + "\n"


def visible(text: str) -> str:
    """The JSON text of a judgement with invisible characters escaped, so that a review shows all of it."""
    return _HIDDEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _merged(path: Path, used: "Iterable[StoredJudgement]", lacking: Collection[str] | None) -> "list[StoredJudgement]":
    """Merge a run's judgements into a recordings file; a renewing run keeps old ones only for cases without a score."""
    old = Judgements.read(path).entries.values()
    forget = {entry.case for entry in old}.difference(lacking) if lacking is not None else ()
    return merge_judgements(old, used, forget)


def _most_like(components: Mapping[str, Any], entries: "Iterable[StoredJudgement]") -> "StoredJudgement | None":
    """The recorded judgement most like a judge question, to explain why none matches it."""

    def rank(entry: "StoredJudgement") -> tuple[int, str]:
        theirs = entry.components
        texts, recorded = components["texts"], theirs["texts"]
        unlike = sum(components[name] != theirs[name] for name in components if name != "texts")
        changed = sum(texts.get(name) != recorded.get(name) for name in texts.keys() | recorded.keys())
        return unlike + changed, entry.key

    return min(entries, key=rank, default=None)


def _read_recordings(path: Path, display_path: str) -> "list[StoredJudgement]":
    """Read a file of recorded judgements, and report every line at fault, such as one with a merge conflict."""
    from pytest_llmeval.judges._stored_judgement import StoredJudgement

    faults = FaultLog(display_path)
    entries: dict[str, tuple[int, StoredJudgement]] = {}
    for number, text in enumerate(InputFile(path, display_path).read_lines(), 1):
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
    """Parse a line of recorded judgements; half of a surrogate pair is allowed, since a reply is kept as it came."""
    try:
        return JsonText(text).load()
    except json.JSONDecodeError as error:
        raise ValueError(f"found invalid JSON at column {error.colno} ({error.msg}), expected a judgement") from None
    except RecursionError:
        raise ValueError("found too many levels of nesting, expected a judgement") from None


class Written(NamedTuple):
    """The result of writing a file of recorded judgements.

    Attributes:
        path: The file.
        judgements: How many judgements the run used, if the file has changed; else 0.
        fault: Why it could not be written, or nothing.
    """

    path: Path
    judgements: int
    fault: str = ""


_DIGITS = 16
_KEY = re.compile(rf"(.*)/([^/]*)#[0-9a-f]{{{_DIGITS}}}", re.DOTALL)


@dataclass
class JudgeScoreFile:
    """A JSON file of judge scores by question, which several processes can extend.

    Attributes:
        path: The file.
        scores: Key to score, from 0 to 1.
    """

    path: Path
    scores: dict[str, float] = field(default_factory=dict)
    _new: dict[str, float] = field(default_factory=dict)
    _moved: set[str] = field(default_factory=set)

    @classmethod
    def open(cls, path: Path) -> "JudgeScoreFile":
        """Read a file, or begin a new one; its folder is made.

        Raises:
            SuiteError: The file is not what `save` writes; all faults are listed, and it is left unchanged.
            OSError: The folder cannot be made.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        return cls(path, _read_scores(path))

    @staticmethod
    def key_of(sample: str, question: str, parts: Sequence[str]) -> str:
        """Return what a score is kept under: another answer, or the id in another conversation, is another key.

        Args:
            sample: Id of the conversation.
            question: Id of the question in it.
            parts: Everything that the score depends on but the judge.
        """
        digest = sha256(json.dumps(list(map(str, parts))).encode()).hexdigest()[:_DIGITS]
        return f"{sample}/{question}#{digest}"

    @staticmethod
    def case_ids(key: str) -> list[str]:
        """Return the ids of the case that a key may be about, the fullest first; a plain id is its own.

        >>> JudgeScoreFile.case_ids("conv-1/q7#0123456789abcdef"), JudgeScoreFile.case_ids("q7")
        (['conv-1/q7', 'q7'], ['q7'])
        """
        match = _KEY.fullmatch(key)
        return [f"{match[1]}/{match[2]}", match[2]] if match is not None else [key]

    def add(self, key: str, score: float) -> None:
        """Remember a score until `save`."""
        self.scores[key] = self._new[key] = score

    @property
    def plain_ids(self) -> list[str]:
        """The keys that are ids of questions, as other programs write them."""
        return [key for key in self.scores if _KEY.fullmatch(key) is None]

    def move(self, names: Mapping[str, str]) -> None:
        """Move scores from one key to another, until `save` in memory; a score that is there already stays."""
        for name, key in names.items():
            self._moved.add(name)
            score = self.scores.pop(name)
            if key not in self.scores:
                self.add(key, score)

    @property
    def unsaved(self) -> int:
        """The number of scores that the file does not have yet."""
        return len(self._new)

    def save(self) -> None:
        """Merge new scores into the file, sorted, and keep those that other processes have added.

        Raises:
            OSError: It cannot be written.
            SuiteError: It has been damaged in the meantime, and is left unchanged.
        """
        if self._new or self._moved:
            OutputFile(self.path).rewrite(lambda: _text_of_scores(self._merged(_read_scores(self.path))))
            self._new.clear()
            self._moved.clear()

    def _merged(self, there: Mapping[str, float]) -> dict[str, float]:
        return {key: score for key, score in {**there, **self._new}.items() if key not in self._moved}


def _text_of_scores(scores: Mapping[str, float]) -> str:
    """The judge scores of a score file as its JSON text."""
    return json.dumps(scores, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def _read_scores(path: Path) -> dict[str, float]:
    """Read the judge scores of a score file; an absent file is empty."""
    if not path.exists():
        return {}
    document = InputFile(path).read_json()
    if not isinstance(document.data, dict):
        kind = f"a {type(document.data).__name__}"
        raise SuiteError([document.fault((), f"found {kind}, expected an object of question ids and scores")])
    faults = [
        document.fault([key], f"found {excerpt(json.dumps(value), 80)}, expected a score from 0 to 1")
        for key, value in document.data.items()
        if type(value) not in (int, float) or not 0 <= value <= 1
    ]
    if faults:
        raise SuiteError(faults)
    return {key: float(value) for key, value in document.data.items()}
