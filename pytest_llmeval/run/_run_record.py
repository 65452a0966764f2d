"""The record of a run in its main process."""

import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec
from msgspec import structs

from pytest_llmeval.core import MISSING, CaseRecord, JsonNumber, excerpt
from pytest_llmeval.run._execute import Execution
from pytest_llmeval.services import Secrets
from pytest_llmeval.suites import SuiteKey

if TYPE_CHECKING:
    from pytest_llmeval.judges import StoredJudgement


_LONGEST = 4_000
"""Characters of a value that reports keep."""
_LONGEST_CONVERSATION = 16_000
_SHORTER = (_LONGEST, 1_000, 300, 100)
"""Characters of a text within a value that is too long, tried one after the other."""
_OWN_TEXT = 1_000
_EXCERPTS = json.JSONEncoder(ensure_ascii=False, default=str)


class UsedJudgements:
    """The judge verdicts that a run used, by the file that they are recorded in."""

    def __init__(self) -> None:
        self._used: dict[Path, list[StoredJudgement]] = {}

    def take(self, text: str) -> None:
        """Add what `pytest_llmeval.plugin._payload.encode_judgements` wrote."""
        from pytest_llmeval.judges import Judgements, StoredJudgement

        for asking, entry in json.loads(text):
            self.add(Judgements.path_of(Path(asking)), StoredJudgement.from_json(entry))

    def add(self, path: Path, entry: "StoredJudgement") -> None:
        """Add a judgement that is recorded in a file."""
        self._used.setdefault(path, []).append(entry)

    def __iter__(self) -> "Iterator[tuple[Path, StoredJudgement]]":
        """Iterate over the judgements, each with the file that it is recorded in, in an order of their content."""
        for path, entries in sorted(self._used.items()):
            for entry in sorted(entries, key=lambda entry: (*entry.place, entry.reply)):
                yield path, entry

    def write(self, renewed: Mapping[Path, Collection[str]]) -> Iterator[tuple[Path, int, str]]:
        """Write recordings, if any judgement was used; see `pytest_llmeval.judges.Judgements.write_used`."""
        if self._used:
            from pytest_llmeval.judges import Judgements

            yield from Judgements.write_used(self._used, renewed)


class NamedItem(Protocol):
    """The part of a pytest item, or of pytest's report on it, that names the item."""

    @property
    def location(self) -> tuple[str, int | None, str]:
        """The file, the line and the name of the item."""

    @property
    def nodeid(self) -> str:
        """The node id of the item."""


class ItemReport(Protocol):
    """The part of pytest's report on an item that a run record is made of."""

    location: tuple[str, int | None, str]
    nodeid: str
    when: Any
    outcome: Any
    duration: float


class SuitePart(msgspec.Struct, frozen=True, array_like=True):
    """Cases of a suite that ran as one item: a single one, or many in mode ``bulk``.

    Attributes:
        key: What their results are gathered under.
        total: How many cases the suite has.
        records: One per case.
        attempts: How often the item ran.
    """

    key: SuiteKey
    total: int
    records: Sequence[CaseRecord]
    attempts: int = 1

    @classmethod
    def from_executions(
        cls,
        key: SuiteKey,
        total: int,
        executions: Iterable[Execution],
        *,
        predictions: bool = False,
        secrets: Sequence[str] = (),
        all_answers: bool = False,
    ) -> "SuitePart":
        """The part of a suite that executed cases are.

        Args:
            key: What their results are gathered under.
            total: How many cases the suite has.
            executions: The cases.
            predictions: Whether to add what is recorded of predictions.
            secrets: Environment variables whose values no answer shows.
            all_answers: Whether to add the answers of cases with which nothing is wrong.
        """
        hidden: Secrets | None = None
        records = []
        for execution in executions:
            record = execution.record
            explained = all_answers or record.lines or record.outcome != "passed"
            if (explained or predictions) and hidden is None:
                hidden = Secrets.of_variables(secrets)
            record = as_reported(record, hidden if explained else None)
            if predictions:
                record = structs.replace(record, recordings=_recordings(key, execution, hidden or Secrets()))
            records.append(record)
        return cls(key, total, records)


def _recordings(key: SuiteKey, execution: Execution, hidden: Secrets) -> list[dict[str, Any]]:
    """The answers of a case's repeats as lines of the predictions file, for a later replay."""
    from pytest_llmeval.targets import Recordings

    return [
        Recordings.row(key.display_path, key.variant, case, repeat, hidden)
        for repeat, case in enumerate(execution.answered)
        if case.prediction is not MISSING
    ]


class Item(NamedTuple):
    """The name of a pytest item over cases: node ids of files outside rootdir lack the file's name."""

    file: str
    nodeid: str

    @classmethod
    def from_pytest(cls, item: NamedItem) -> "Item":
        """The name of an item, or of that of a report."""
        return cls(item.location[0], item.nodeid)


class ItemResult(msgspec.Struct, frozen=True):
    """The result that one pytest item over cases reported last.

    Attributes:
        part: The results of its cases.
        outcome: pytest's verdict on it: ``passed``, ``failed``, ``skipped``, ``xfailed``, or ``error`` of its teardown.
        duration: Seconds that it took.
    """

    part: SuitePart
    outcome: str
    duration: JsonNumber


def _join_reports(before: tuple[str, float] | None, report: ItemReport) -> tuple[str, float]:
    """Outcome and duration of a pytest item's attempt after one more report, which a subtest may have made."""
    # pytest reports a failure that was expected as skipped, with this attribute.
    expected = report.outcome == "skipped" and hasattr(report, "wasxfail")
    outcome = "xfailed" if expected else report.outcome
    return ("failed" if before is not None and before[0] == "failed" else outcome), report.duration


def _settle_record(record: CaseRecord, result: ItemResult) -> CaseRecord:
    """The record of a case with pytest's outcome of its item, which marks and other plugins may have changed."""
    if not record.duration_s:
        record = structs.replace(record, duration_s=result.duration)
    if result.outcome == "xfailed" and record.outcome != "not_run":
        # One that was not scored, as with `pytest.xfail()` in a target, must not leave the denominators.
        errors = record.errors if record.ran else {"": record.reason or "not scored, and expected to fail"}
        return structs.replace(record, outcome="xfailed", errors=errors)
    if result.outcome == "skipped" and record.outcome != "not_run":
        # What was scored on the way counts nowhere; gates limit how many cases are skipped.
        return structs.replace(record, outcome="skipped", observations={}, errors={})
    if result.outcome == "error" and record.outcome == "passed":
        return structs.replace(record, outcome="errored", reason="teardown failed")
    if result.outcome == "failed" and record.outcome == "passed":
        return structs.replace(record, outcome="failed", reason="the test failed after scoring")
    return record


class RunRecord(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, dict=True):
    """All that the main process has learned of a run. A shard file keeps it, and shards merge to the record of one run.

    Attributes:
        started: When it started, as `time.time`.
        seconds: How long it took, once it has ended.
        ended: Why the run ended early, or nothing.
        crashed: Why results may be missing though the run went on, or nothing.
        uncollected: Whether collecting failed elsewhere than in suite files.
        faults: Suite file to what is wrong with it.
        selected: Suite files of which some case was to run.
        dropped: Suites and variants of which nothing was to run, if gates must be judged.
        unfinished: Items over cases that were to run and have no result.
        deselected: Items over cases that were collected and left out.
        unwanted: Of them, those that options of pytest have left out.
        failures: Failed tests that are no cases.
        reruns: Items over cases that failed and ran again.
        items: The results of items in order of arrival; of one that is run again, the last result counts.
        judgements: That items used, if these are recorded.
        used: What the processes of the run used, each with who did, if that was recorded.
        inputs: Name of a suite to what its results depend on, for runs that carry them over.
        requests: The deferred requests by id, for another machine.
    """

    started: JsonNumber = msgspec.field(default_factory=time.time)
    seconds: JsonNumber = 0.0
    ended: str = ""
    crashed: str = ""
    uncollected: bool = False
    faults: dict[str, list[str]] = {}
    selected: set[str] = set()
    dropped: set[SuiteKey] = set()
    unfinished: set[str] = set()
    deselected: set[str] = set()
    unwanted: set[str] = set()
    failures: set[str] = set()
    reruns: set[Item] = set()
    items: dict[Item, ItemResult] = {}
    judgements: UsedJudgements = msgspec.field(default_factory=UsedJudgements)
    used: set[tuple[str, str]] = set()
    inputs: dict[str, dict[str, Any]] = {}
    requests: dict[str, dict[str, Any]] = {}

    def __post_init__(self) -> None:
        # No fields: they mean nothing to another process.
        self._since = time.monotonic()
        self._phases: dict[Item, tuple[str, float]] = {}

    @property
    def broken(self) -> str:
        """The reason why cases of the run may be missing without being deselected."""
        return self.crashed or self.ended

    @property
    def duration(self) -> float:
        """The seconds that the run took; until now, if it has not ended."""
        return self.seconds or time.monotonic() - self._since

    def take(self, report: ItemReport, part: SuitePart | None) -> None:
        """Keep the results on the last report of an item, with the outcome and duration of those before it."""
        item = Item.from_pytest(report)
        if report.when == "setup":
            self.items.pop(item, None)
            self._phases.pop(item, None)
        if report.when != "teardown":
            self._phases[item] = _join_reports(self._phases.get(item), report)
            return
        outcome, duration = self._phases.pop(item, ("passed", 0.0))
        if part is not None:
            self.items[item] = ItemResult(part, "error" if report.outcome == "failed" else outcome, duration)
            if part.attempts > 1:
                self.reruns.add(item)

    def keep(self, item: NamedItem, part: SuitePart) -> None:
        """Keep the results of an item that no report will follow."""
        self.items[Item.from_pytest(item)] = ItemResult(part, "passed", 0.0)

    def add_records(self, key: SuiteKey, total: int, records: Sequence[CaseRecord]) -> None:
        """Add the records of cases of a suite that has so many of them."""
        self.add_part(SuitePart(key, total, records))

    def add_part(self, part: SuitePart) -> None:
        """Keep the results of cases that ran outside pytest, where no item reports them."""
        item = Item(part.key.display_path, f"{part.key.variant}::{len(self.items)}")
        self.items[item] = ItemResult(part, "passed", 0.0)

    def case_records(self) -> dict[SuiteKey, dict[str, CaseRecord]]:
        """The case records by suite and case; of a case that ran again, the last record counts."""
        records: dict[SuiteKey, dict[str, CaseRecord]] = {}
        for result in self.items.values():
            of_suite = records.setdefault(result.part.key, {})
            single = len(result.part.records) == 1
            for record in result.part.records:
                of_suite[record.id] = _settle_record(record, result) if single else record
        return records

    def result_of(self, item: NamedItem) -> ItemResult | None:
        """The result of an item; ``None`` if it reported none."""
        return self.items.get(Item.from_pytest(item))

    def relocated(self, move: Callable[[str], str]) -> "RunRecord":
        """The record with other paths of suite files and recordings, as another checkout has them."""

        def moved(key: SuiteKey) -> SuiteKey:
            return key._replace(path=move(key.path))

        judgements = UsedJudgements()
        for path, entry in self.judgements:
            judgements.add(Path(move(str(path))), entry)
        return structs.replace(
            self,
            selected={*map(move, self.selected)},
            dropped={*map(moved, self.dropped)},
            items={
                item: structs.replace(result, part=structs.replace(result.part, key=moved(result.part.key)))
                for item, result in self.items.items()
            },
            judgements=judgements,
        )

    @classmethod
    def merged(cls, records: Sequence["RunRecord"]) -> "RunRecord":
        """The record of one run from several; of an item that two have, the later one's result counts."""
        whole = cls(
            started=min(record.started for record in records), seconds=sum(record.seconds for record in records)
        )
        for record in records:
            for path, entry in record.judgements:
                whole.judgements.add(path, entry)
            for name in cls.__struct_fields__:
                here, there = getattr(whole, name), getattr(record, name)
                if isinstance(here, set | dict):
                    here.update(there)
                elif isinstance(here, str | bool):
                    setattr(whole, name, here or there)
        return whole


def as_reported(record: CaseRecord, hidden: Secrets | None) -> CaseRecord:
    """The record of a case as the main process gets it, equal whether or not it has crossed processes.

    Args:
        record: The record of a scored case.
        hidden: Texts that no answer shows; ``None`` to leave out what explains a failure.
    """
    observations = {label: observation.plain() for label, observation in record.observations.items()}
    if hidden is None:
        return structs.replace(record, observations=observations, lines={}, answers=(), judgings=())
    return structs.replace(
        record,
        observations=observations,
        answers=tuple(
            answer if (value := shown_value(answer.value, hidden)) is answer.value else answer._replace(value=value)
            for answer in record.answers
        ),
        judgings=tuple(
            judging._replace(
                question={name: shown_value(text, hidden) for name, text in judging.question.items()},
                reply=shown_value(judging.reply, hidden),
            )
            for judging in record.judgings
        ),
    )


def shown_value(value: Any, secrets: Secrets) -> Any:
    """An input, expectation or answer in a case record for reports: without secrets, with long texts cut.

    Data keep their form if their texts can be cut so far that they fit; the room of messages and calls is larger.

    Args:
        value: JSON data.
        secrets: Texts that are not shown.
    """
    if value is MISSING:
        return None
    if isinstance(value, str):
        clean = secrets.without(value)
        return value if clean == value and len(value) <= _LONGEST else excerpt(clean, _LONGEST, lines=True, count=True)
    text = _EXCERPTS.encode(value)
    steps = isinstance(value, Mapping) and not value.keys().isdisjoint(("messages", "tool_calls"))
    room = _LONGEST_CONVERSATION if steps else _LONGEST
    clean = secrets.without(text)
    if clean == text and len(text) <= room:
        return value
    redacted = secrets.masked(value) if secrets else value
    shortest = _shorten_value(redacted, _SHORTER[-1])
    # The mark of a cut is shorter than what is left: if this is twice too long, no form fits.
    if len(_EXCERPTS.encode(shortest)) > 2 * room:
        return excerpt(clean, _LONGEST, lines=True, count=True)
    longest = _longest_text(redacted)
    for most, shorter in zip(_SHORTER, (*_SHORTER[1:], -1), strict=True):
        if shorter >= longest:
            continue  # which leaves as much of every text
        shortened = shortest if shorter < 0 else _shorten_value(redacted, most)
        written = _EXCERPTS.encode(shortened)
        if len(written) <= room and secrets.without(written) == written:
            return shortened
    return excerpt(clean, _LONGEST, lines=True, count=True)


def _longest_text(value: Any) -> int:
    """The length of the longest text in a case record's value, as `excerpt` writes it."""
    if isinstance(value, str):
        return len(excerpt(value, _LONGEST, lines=True))
    if isinstance(value, Mapping):
        return max(map(_longest_text, value.values()), default=0)
    return max(map(_longest_text, value), default=0) if isinstance(value, list | tuple) else 0


def _shorten_value(value: Any, most: int, own: int = _OWN_TEXT) -> Any:
    """A value in a case record, such as an answer, with shorter texts.

    Args:
        value: JSON data.
        most: Characters of a text.
        own: As of the fields of the outermost object, which has the answer itself besides what it rests on.
    """
    if isinstance(value, str):
        return excerpt(value, max(most, own), lines=True, count=True)
    if isinstance(value, Mapping):
        return {
            name: _shorten_value(member, most, own if isinstance(member, str) else 0) for name, member in value.items()
        }
    if isinstance(value, list | tuple):
        return [_shorten_value(item, most, 0) for item in value]
    return value
