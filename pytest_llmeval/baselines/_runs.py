"""Runs of suites beside their approved runs."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import msgspec
from msgspec import Struct, structs

from pytest_llmeval.baselines._comparable import Comparable, SharedTexts, SuiteIdentity, fingerprint
from pytest_llmeval.core import CaseRecord, Fault, Result, SnapshotVerdict, SuiteError, decode
from pytest_llmeval.data import InputFile, OutputFile, OwnFiles
from pytest_llmeval.suites import LoadedSuite, SnapshotSettings, SuiteKey

if TYPE_CHECKING:
    from pytest_llmeval.baselines._files import PendingFile
    from pytest_llmeval.baselines._scores import SuiteScores
    from pytest_llmeval.numbers import CaseDigest, CaseStatistics, RunPairing, Shift, WatchedRun


class RunWatch(Struct, frozen=True):
    """The part of a run in gates that weigh all runs since an approval.

    Attributes:
        baseline: Fingerprint of the approved statistics.
        statistics: Fingerprint of those of the run.
        looks: Gate to the evidence of the run.
    """

    baseline: str
    statistics: str
    looks: "Mapping[str, WatchedRun]" = {}


class ApprovedRun(NamedTuple):
    """The last approved run of a suite, the baseline of the current one.

    Attributes:
        statistics: Counts of its cases.
        pairing: Both runs.
    """

    statistics: "CaseStatistics"
    pairing: "RunPairing"


class SuiteRun(Struct, frozen=True, dict=True):
    """A run of a suite next to its baseline, the approved run, from which snapshots and gates are judged.

    Attributes:
        key: The key of its results.
        suite: The suite; that of another system, or of a Python test, if the key names one.
        records: A record for each case.
        result: Its metrics.
        judges: Label of an evaluator to what decides its verdicts.
        baseline: The records of the run that it is compared with, in place of the approved one.
    """

    key: SuiteKey
    suite: LoadedSuite
    records: Sequence[CaseRecord]
    result: Result
    judges: Mapping[str, Mapping[str, str]] = {}
    baseline: Sequence[CaseRecord] | None = None

    @cached_property
    def comparable(self) -> Comparable:
        """The identity of the run: all that decides whether it can be compared with other runs."""
        return SuiteIdentity(self.suite).comparable(self.judges)

    @cached_property
    def digests(self) -> "Mapping[str, CaseDigest]":
        """The fingerprints of its cases, by id, which statistics, reports and known failures have in common."""
        return SuiteIdentity(self.suite).digests

    @property
    def contents(self) -> Mapping[str, str]:
        """The fingerprint of the content of each case of the run, by id."""
        return {case: digest.data for case, digest in self.digests.items()}

    @property
    def repeated_inputs(self) -> int:
        """The number of cases of the run with the input of an earlier one."""
        texts = SharedTexts()
        inputs = [
            case.input if isinstance(case.input, str) else fingerprint(case.input, texts)
            for case in self.suite.cases
            if case.input is not None
        ]
        return len(inputs) - len(set(inputs))

    @cached_property
    def statistics(self) -> "CaseStatistics":
        """The counts of the run's cases, as stored."""
        from pytest_llmeval.numbers import CaseStatistics

        return CaseStatistics.from_records(self.records, digests=self.digests)

    def shifts(self, scores: "SuiteScores") -> "dict[str, Shift]":
        """The distance by which changes of judges since the approval move metrics, where it was approved."""
        from pytest_llmeval.baselines._scores import shifts_between

        return shifts_between(scores.bridges, scores.comparable, self.comparable)

    @cached_property
    def approved_scores(self) -> "SuiteScores | None":
        """The approved scores; ``None`` if there are none.

        Raises:
            SuiteError: Their file cannot be read.
        """
        from pytest_llmeval.baselines._files import ScoreFile

        return ScoreFile.of_suite(self.key).read_checked()

    @cached_property
    def approved(self) -> ApprovedRun | None:
        """The approved run, or the baseline in its place; ``None`` if no scores are approved.

        Raises:
            OSError: The statistics of its cases cannot be read.
            UnicodeDecodeError: As above.
            SuiteError: They, or the scores, are damaged.
        """
        if self.baseline is not None:
            from pytest_llmeval.numbers import CaseStatistics

            baseline = CaseStatistics.exact(self.baseline)
            return ApprovedRun(baseline, self.pair(baseline))
        scores = self.approved_scores
        if scores is None:
            return None
        statistics = approved_statistics(self.key, scores)
        return ApprovedRun(statistics, self.pair(statistics, self.shifts(scores)))

    @cached_property
    def carried(self) -> frozenset[str]:
        """The cases that have the record of the approved run."""
        return frozenset(record.id for record in self.records if record.carried)

    @cached_property
    def silent(self) -> frozenset[str]:
        """The carried cases that say nothing of a change: had they run, their answers could be others."""
        replayed = {record.id for record in self.records if record.selection is not None and record.selection.replayed}
        return self.carried - replayed

    @property
    def is_unchanged(self) -> bool:
        """Whether no case ran, nor would replay its answer, since nothing that the suite depends on has changed."""
        return bool(self.silent) and all(record.carried or record.outcome == "not_run" for record in self.records)

    def pair(self, baseline: "CaseStatistics", shifts: "Mapping[str, Shift] | None" = None) -> "RunPairing":
        """The run paired with another, by the metrics of the suite, without cases that say nothing of a change."""
        from pytest_llmeval.numbers import RunPairing

        run = self.statistics
        if self.silent:
            run, baseline = (
                side.only({record.id for record in side.records} - self.silent) for side in (run, baseline)
            )
        return RunPairing(run, baseline, self.suite.metrics, shifts, self.suite.abstained)

    @property
    def pairing(self) -> "RunPairing | None":
        """The run paired with the approved one; ``None`` if the cases of that one are unknown."""
        try:
            return None if self.approved is None else self.approved.pairing
        except (OSError, UnicodeDecodeError, SuiteError):
            return None


@dataclass(frozen=True)
class SnapshotJudgement:
    """The outcome of comparing a suite with its approved scores.

    Attributes:
        verdicts: One per metric, or on the file; empty if the suite has no snapshot.
        remembered: Whether the history of runs gets a line about the suite.
        moved_limits: Metric to its limits when the scores were approved, and now, where they differ.
        watch: The part of the run in gates that weigh many runs; ``None`` if there is none.
        pending: The score file, before it is written; ``None`` if it stays as it is.
    """

    verdicts: Sequence[SnapshotVerdict] = ()
    remembered: bool = False
    moved_limits: Mapping[str, str] = field(default_factory=dict)
    watch: RunWatch | None = None
    pending: "PendingFile | None" = field(default=None, compare=False)


class ApprovedCases(NamedTuple):
    """The last approved scores of a suite, with the counts of its cases.

    Attributes:
        scores: Its scores.
        statistics: Counts of its cases.
    """

    scores: "SuiteScores"
    statistics: "CaseStatistics"

    @classmethod
    def read(cls, key: SuiteKey) -> "ApprovedCases | None":
        """Read the files of a suite's approval; ``None`` if nothing is approved.

        Raises:
            OSError: The file of its cases cannot be read.
            UnicodeDecodeError: As above.
            SuiteError: Its files are not what was approved.
        """
        from pytest_llmeval.baselines._files import ScoreFile

        scores = ScoreFile.of_suite(key).read_checked()
        return None if scores is None else cls(scores, approved_statistics(key, scores))


def approved_statistics(key: SuiteKey, scores: "SuiteScores") -> "CaseStatistics":
    """The counts of the cases of an approved run.

    Raises:
        OSError: Their file cannot be read.
        UnicodeDecodeError: As above.
        SuiteError: They are not what was approved.
    """
    from pytest_llmeval.baselines._files import ScoreFile
    from pytest_llmeval.numbers import CaseStatistics

    file = ScoreFile.of_suite(key)
    return CaseStatistics.from_lines(StringIO(file.read_statistics(scores)), key.display_beside(file.statistics))


_SELECTING = ("keyword", "markexpr", "deselect", "lf", "stepwise")
"""Options of pytest with which a run may leave out what another one has."""


class SnapshotMode(Struct, frozen=True):
    """The snapshot options of the command line: which scores a run may approve.

    Attributes:
        update: Whether scores that differ from the approved ones are approved.
        anchor: Whether an approved run becomes the anchor.
        new_only: Whether scores without approved ones are approved.
        warn_unused: Whether scores that vanished are only reported.
        keep_unused: Whether scores that vanished stay approved.
        selection: Options that choose among the items, by name.
        refused: Whether nothing may be written, because the run has not ended as it should.
        syrupy: The session of syrupy, which counts and writes; ``None`` without syrupy.
    """

    update: bool = False
    anchor: bool = False
    new_only: bool = False
    warn_unused: bool = False
    keep_unused: bool = False
    selection: Mapping[str, Any] = {}
    refused: bool = False
    syrupy: Any = None

    @classmethod
    def from_config(cls, config: Any) -> "SnapshotMode":
        """The snapshot mode of pytest's configuration; syrupy's session exists once pytest's has started."""

        def is_set(*names: str) -> bool:
            return any(getattr(config.option, name, False) for name in names)

        return cls(
            update=is_set("update_snapshots"),
            anchor=is_set("llmeval_snapshot_anchor"),
            new_only=is_set("update_new_snapshots_only"),
            warn_unused=is_set("warn_unused_snapshots", "disable_unused_snapshots"),
            keep_unused=is_set("no_cleanup", "disable_unused_snapshots"),
            selection={name: value for name in _SELECTING if (value := getattr(config.option, name, None))},
            syrupy=getattr(config, "_syrupy", None),  # where syrupy keeps it; it has no public name
        )

    @property
    def selects(self) -> bool:
        """Whether options choose among the items."""
        return bool(self.selection)

    def read_only(self) -> "SnapshotMode":
        """A snapshot mode that compares and writes nothing."""
        return structs.replace(self, update=False, new_only=False, refused=True)

    def command(self, argument: str, *, suites: bool = True) -> str:
        """The command that approves what is named."""
        quoted = f'"{argument}"' if " " in argument or "[" in argument else argument
        return f"pytest {'--llmeval ' if suites else ''}--snapshot-update {quoted}"

    def account(self, files: "Sequence[PendingFile]", *, orphans: bool) -> None:
        """Have score files counted by syrupy, and written; without syrupy, write them."""
        if not files:
            return
        if self.syrupy is not None:
            from pytest_llmeval.baselines._syrupy_bridge import account

            if self.refused:
                # syrupy would report that it deletes unused snapshots, and rely on it.
                orphans = False
                for file in files:
                    file.before = {name: text for name, text in file.before.items() if name in file.after}
            account(
                self.syrupy,
                files,
                update=self.update,
                new_only=self.new_only,
                orphans=orphans and not self.selects,
            )
            return
        for file in files:
            with suppress(OSError, SuiteError):  # reported when the file is compared
                file.write()


class ApprovableRun(Protocol):
    """The run of a suite whose scores may be approved."""

    @property
    def key(self) -> SuiteKey:
        """The key of the results that may be approved."""

    @property
    def suite(self) -> LoadedSuite:
        """The suite whose scores may be approved."""

    @property
    def snapshot(self) -> "SnapshotJudgement":
        """The comparison of the run with its approved scores."""


class Keeper(Struct, frozen=True):
    """The keeper of a run's approved scores: its snapshot settings, and the place of its history.

    Attributes:
        mode: What the command line asks for.
        always: Whether suites without the key ``snapshot`` have one: the ini option ``llmeval_snapshots``.
        root: The folder of the history of runs; ``None`` if there is none.
    """

    mode: SnapshotMode
    always: bool = False
    root: Path | None = None

    def settings(self, suite: LoadedSuite) -> SnapshotSettings | None:
        """The snapshot settings of a suite; ``None`` if it has no snapshot."""
        settings = suite.snapshot or SnapshotSettings(enabled=self.always)
        return replace(settings, excluded=suite.against_approved) if settings.enabled else None

    def settle(self, suites: Iterable[ApprovableRun], *, whole: bool) -> list[tuple[SuiteKey, SnapshotVerdict]]:
        """Let the score files of suites be counted, and written where they are approved.

        Args:
            suites: The suites.
            whole: Whether the run left nothing out, so that files without a suite can be recognised.

        Returns:
            Verdicts on files that could not be written.
        """
        files = [(suite.key, file) for suite in suites if (file := suite.snapshot.pending) is not None]
        self.mode.account([file for _, file in files], orphans=whole)
        return [
            (key, SnapshotVerdict(SnapshotVerdict.EVERYTHING, "not_written", "failed", reason=file.fault))
            for key, file in files
            if file.fault
        ]

    def nothing_approved(self, suites: Sequence[ApprovableRun]) -> Iterator[tuple[str, str]]:
        """Yield a note if scores are to be approved, and no suite has any."""
        no_failures = all(not suite.suite.approve.failures for suite in suites)
        if self.mode.update and suites and no_failures and all(self.settings(suite.suite) is None for suite in suites):
            yield "", "no scores were approved: no suite has 'snapshot: true'"


KnownFailures: TypeAlias = Mapping[str, Sequence[str]]
"""Case id to the names of the limits and checks that the case is approved not to meet."""

_FAILURES = "failures.json"


class _FailuresForm(Struct, forbid_unknown_fields=True):
    """The known failures of a suite in their JSON file, with the content digest of each failing case."""

    schema: int
    cases: dict[str, list[str]]
    content: dict[str, str]


def _rename_failures(file: _FailuresForm, contents: Mapping[str, str]) -> KnownFailures:
    """The known failures by the ids that their cases have now.

    Content decides where ids are positions or gone: an edited case keeps its known failure by a name only.
    """
    from pytest_llmeval.numbers import CaseMatching

    movable = {case: content for case, content in file.content.items() if case.isdecimal() or case not in contents}
    before_of = CaseMatching.match_contents(contents, movable)
    others = {case for case, content in movable.items() if contents.get(case, content) != content}
    stayed = {case: names for case, names in file.cases.items() if case not in {*before_of.values(), *others}}
    return stayed | {case: file.cases[before] for case, before in before_of.items() if before in file.cases}


class FailuresFile(NamedTuple):
    """The file of the known failures of a suite, or of one variant of it.

    Attributes:
        key: Of the suite.
    """

    key: SuiteKey

    @property
    def path(self) -> Path:
        """The path of the file of known failures."""
        from pytest_llmeval.baselines._files import ScoreFile

        return ScoreFile.of_suite(self.key).beside(_FAILURES)

    def read(self, contents: Callable[[], Mapping[str, str]]) -> KnownFailures:
        """The known failures of a suite; empty where none were approved.

        Args:
            contents: Returns id to content of its cases: a case whose id has changed is known by its content.

        Raises:
            SuiteError: The file cannot be read.
        """
        if not any(OwnFiles(Path(self.key.path)).folder.glob(f"*{_FAILURES}")):
            return {}  # which most runs find out without what reads and writes approved scores
        return _rename_failures(self._content(), contents())

    def read_for(self, suite: LoadedSuite) -> KnownFailures:
        """The known failures of a suite whose cases are loaded; empty where none were approved.

        Raises:
            SuiteError: The file cannot be read.
        """
        return self.read(lambda: {case: digest.data for case, digest in SuiteIdentity(suite).digests.items()})

    def _content(self) -> _FailuresForm:
        """The content of the file of known failures; empty if there is no file."""
        path = self.path
        if not path.exists():
            return _FailuresForm(1, {}, {})
        display_path = self.key.display_beside(path)
        try:
            return decode(InputFile(path, display_path).read_bytes(), _FailuresForm)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            message = f"the list of known failures cannot be read ({error}): restore the file, or delete it"
            raise SuiteError([Fault(display_path, 0, 0, "", message)]) from None

    def write(self, failures: KnownFailures, contents: Mapping[str, str]) -> bool:
        """Write the known failures of a suite; without any, there is no file.

        Args:
            failures: By the ids that the cases have now.
            contents: Id to content of its cases; that of a case which the suite has no more stays as it was.

        Returns:
            Whether the file had to change.

        Raises:
            OSError: It cannot be written; then it is as it was.
        """
        known = {**self._content().content, **contents}
        of_cases = {case: known[case] for case in sorted(failures) if known.get(case)}
        content = {"cases": dict(sorted(failures.items())), "content": of_cases, "schema": 1}
        text = f"{json.dumps(content, ensure_ascii=False, indent=1)}\n" if failures else ""
        if not failures and not self.path.exists():
            return False
        return OutputFile(self.path).rewrite(lambda: text)
