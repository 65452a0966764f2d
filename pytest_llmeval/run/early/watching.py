"""The watch on gates while cases run."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pytest_llmeval.baselines.keeper import Keeper
from pytest_llmeval.baselines.runs import CollectedSuite
from pytest_llmeval.core.errors import LlmevalError
from pytest_llmeval.core.results import CaseRecord
from pytest_llmeval.run.early.decisions import decided
from pytest_llmeval.run.run_record import RunRecord
from pytest_llmeval.run.stages import Suites, collected_records, rows_of
from pytest_llmeval.suite.run_settings import CaseOrder
from pytest_llmeval.suite.suite import StopGroup, Suite, SuiteKey, group_of


@dataclass
class _Progress:
    """How far a group has come.

    Attributes:
        keys: Its variants.
        order: Of its cases.
        end: After how many cases gates are looked at next; ``None`` once that is over.
        waiting: Variants and cases before it that have not ended.
        done: Those that have ended.
    """

    keys: tuple[SuiteKey, ...]
    order: CaseOrder
    end: int | None = None
    waiting: set[tuple[str, str]] = field(default_factory=set)
    done: set[tuple[str, str]] = field(default_factory=set)


@dataclass
class StopWatch:
    """Looks at the gates of a suite whenever the cases of its next block have run, and posts when all are decided.

    Attributes:
        suites: Of the run.
        keeper: How snapshots are treated.
        post: Takes what stops together, and after how many cases.
    """

    suites: Suites
    keeper: Keeper
    post: Callable[[StopGroup, int], None]
    _groups: dict[StopGroup, _Progress] = field(default_factory=dict)

    def take(self, run: RunRecord, key: SuiteKey, cases: Iterable[str]) -> None:
        """Note that cases have ended, fixtures included.

        Args:
            run: All that has been reported.
            key: Of the cases' suite.
            cases: Their ids.
        """
        try:
            suite = self.suites.read(Path(key.path))
        except LlmevalError:
            return  # the end of the run says so
        if suite.order is None:
            return
        group = group_of(key, suite)
        if group not in self._groups:
            self._groups[group] = self._begun(key, suite)
        progress = self._groups[group]
        ended = {(key.variant, case) for case in cases}
        progress.done |= ended
        progress.waiting -= ended
        while progress.end is not None and not progress.waiting:
            self._look(run, group, progress)

    def _begun(self, key: SuiteKey, suite: Suite) -> _Progress:
        assert suite.order is not None
        names = tuple(suite.systems) if suite.systems and not key.test else (key.variant,)
        progress = _Progress(tuple(key._replace(variant=name) for name in names), suite.order)
        self._await(progress, suite.order.ends[0])
        return progress

    def _await(self, progress: _Progress, end: int) -> None:
        """Wait for the cases before a look; after the last block there is none, since gates are judged as ever."""
        if end == progress.order.ends[-1]:
            progress.end = None
            return
        progress.end = end
        names = frozenset(progress.order.ids[:end])
        progress.waiting = {
            (key.variant, case.id) for key in progress.keys for case in self._suite(key).cases if case.id in names
        } - progress.done

    def _suite(self, key: SuiteKey) -> Suite:
        suite = self.suites.read(Path(key.path))
        return suite.gated(key.variant) if key.test else suite.of(key.variant)

    def _look(self, run: RunRecord, group: StopGroup, progress: _Progress) -> None:
        assert progress.end is not None
        records = collected_records(run)
        variants = {key.variant: self._run(key, records.get(key, {})) for key in progress.keys}
        decision = decided(variants, progress.order, progress.end, self.keeper)
        if decision is None:
            self._await(progress, next(end for end in progress.order.ends if end > (progress.end or 0)))
        else:
            self.post(group, decision.cases)
            progress.end = None

    def _run(self, key: SuiteKey, records: Mapping[str, CaseRecord]) -> CollectedSuite:
        suite = self._suite(key)
        return CollectedSuite(key, suite, rows_of(suite, records, ""), suite.total, self.suites.judges(key, suite))
