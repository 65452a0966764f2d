"""Loading of suite files, once per process, with the evaluators that conftests register."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import Struct, field

from pytest_llmeval.data.files.folders import IN_MODULE
from pytest_llmeval.data.files.places import display_path
from pytest_llmeval.plugin.pytest_private import load_conftests
from pytest_llmeval.run.case_runner import CaseRunner
from pytest_llmeval.services.secrets import presentable
from pytest_llmeval.suite import looks_like_suite, naming_hint
from pytest_llmeval.suite.loading import SuiteMemo, load_suite
from pytest_llmeval.suite.registry import Registry, default_registry
from pytest_llmeval.suite.suite import Suite, SuiteKey

if TYPE_CHECKING:
    from pytest_llmeval.run.declared import DeclaredSuite


class SuiteLoader(Struct):
    """The suites of a process.

    Attributes:
        config: Of the session.
        runner: Of the process.
        ordered: Returns a suite as the run orders its cases.
        refused: How many collectors could not be collected because of a suite.
        offered: Suites and variants of which items were made.
        dropped: Those of which every item was deselected, if gates must be judged.
        misnamed: Files that look like suites and are not collected, as reports name them.
        collected: Ids of all items over cases.
        deselected: Of them, those that a selection has left out.
        unwanted: Of these, those that options of pytest have left out.
        hooks: Suite file to the hook that registers its evaluators.
    """

    config: pytest.Config
    runner: CaseRunner
    ordered: Callable[[Suite], Suite]
    refused: int = 0
    offered: set[SuiteKey] = set()
    dropped: set[SuiteKey] = set()
    misnamed: set[str] = set()
    collected: list[str] = []
    deselected: list[str] = []
    unwanted: set[str] = set()
    hooks: dict[Path, Any] = {}
    _suites: SuiteMemo = field(default_factory=SuiteMemo)

    def load(self, named: "Path | DeclaredSuite", session: pytest.Session) -> Suite:
        """Return the suite of a file, or one that Python declares, reading it the first time.

        Raises:
            SuiteError: It has faults.
            EvaluatorError: An evaluator cannot be registered.
        """
        if isinstance(named, Path) and IN_MODULE in named.name:  # the main process of xdist collects nothing itself
            from pytest_llmeval.run.declared import declared_suite

            return self._suites.get(
                named, lambda: self._read(named, declared_suite(named, self.config.rootpath), session)
            )
        path = named if isinstance(named, Path) else named.path
        return self._suites.get(path, lambda: self._read(path, named, session))

    def _read(self, path: Path, named: "Path | DeclaredSuite", session: pytest.Session) -> Suite:
        load_conftests(self.config, path.parent)
        self.hooks[path] = session.gethookproxy(path.parent).pytest_llmeval_register
        registry = self.registry(path)
        file = self.display_path(path)
        if isinstance(named, Path):
            suite = load_suite(path, registry, root=self.config.rootpath, display_path=file)
        else:
            suite = named.load(registry, root=self.config.rootpath)
        if suite.judged:
            # Faults of judge and recordings are faults of the suite.
            self.runner.judges.judge_of(path, suite.judge, file, priced=suite.asks_judge)
        if suite.conversation.user is not None:
            self.runner.judges.user_of(path, suite.conversation.user, file)
        self.check_answers(suite, suite.systems or [""])
        for tag in sorted({tag for case in suite.cases for tag in case.tags}):
            self.config.addinivalue_line("markers", f"{tag}: a tag of evaluation cases")
        return self.ordered(suite)

    def registry(self, path: Path) -> Registry:
        """Return what is known to a suite that was loaded, with what conftests register for it.

        Raises:
            EvaluatorError: An evaluator cannot be registered.
        """
        registry = default_registry()
        self.hooks[path](registry=registry)
        return registry

    def check_answers(self, suite: Suite, variants: Iterable[str]) -> None:
        """Read the approved answers of systems, or of variants of the target, if the suite compares with them.

        Raises:
            SuiteError: A file has faults, which are those of the suite.
        """
        if not suite.against_approved:
            return
        from pytest_llmeval.baselines.files import ApprovedAnswers

        for name in variants:
            ApprovedAnswers.read(self.key(suite, variant=name))

    def note_misnamed(self, path: Path) -> None:
        """Note a file that is not collected, if it looks like a suite."""
        if looks_like_suite(path):
            self.misnamed.add(self.display_path(path))

    def hints(self) -> list[str]:
        """Return a line for each file with the wrong name."""
        return [naming_hint(name, self.config.getini("llmeval_files")) for name in sorted(self.misnamed)]

    def refuse(self, why: object) -> pytest.Collector.CollectError:
        """Return the error of a collector that cannot be collected because of a suite."""
        self.refused += 1
        return pytest.Collector.CollectError(presentable(str(why)))

    def drop_all_but(self, selected: Iterable[SuiteKey]) -> None:
        """Note the suites and variants of which a selection leaves nothing."""
        # The variants of a Python test are known only from its items.
        remaining = {key for each in selected for key in (each, each._replace(variant=""))}
        self.dropped |= self.offered - remaining

    def left_out(self) -> dict[str, Any]:
        """Return what was collected and left out, as plain data for xdist."""
        return {
            "dropped": [tuple(key) for key in self.dropped],
            "collected": self.collected,
            "deselected": self.deselected,
            "unwanted": sorted(self.unwanted),
            "misnamed": sorted(self.misnamed),
        }

    def display_path(self, path: Path) -> str:
        """Return how reports name a file."""
        return display_path(path, self.config.rootpath)

    def key(self, suite: Suite, *, test: str = "", variant: str = "") -> SuiteKey:
        """Return what results are gathered under."""
        return SuiteKey(str(suite.path), self.display_path(suite.path), test, variant)


LOADER = pytest.StashKey[SuiteLoader]()
"""Key of the suites of a process, in pytest's configuration."""

RUNNER = pytest.StashKey[CaseRunner]()
"""Key of the runner of their cases, in pytest's configuration."""
