"""Extensions of pytest runs."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

from pytest_llmeval.core import CaseChoice
from pytest_llmeval.reports import Line
from pytest_llmeval.run import RunRecord
from pytest_llmeval.suites import LoadedSuite, SuiteKey


@runtime_checkable
class RunWatcher(Protocol):
    """An extension of a run while its cases run, at the point ``watched``."""

    def take(self, run: RunRecord, key: SuiteKey, cases: Iterable[str]) -> None:
        """Note that cases of a suite that may stop have ended, fixtures included.

        Args:
            run: Everything that has been reported.
            key: The key of the suite.
            cases: Their ids.
        """


@runtime_checkable
class CaseChooser(Protocol):
    """Chooses the cases of a run, at the point ``chosen``."""

    def choose(self, key: SuiteKey, suite: LoadedSuite) -> Mapping[str, CaseChoice]:
        """The fate of each case of a suite, or of a system of it, by id."""


@runtime_checkable
class PlanReport(Protocol):
    """The plan of a run, from the extension point ``planned``."""

    @property
    def exceeds_budget(self) -> bool:
        """Whether the planned run is known to exceed a limit."""

    def lines(self, width: int, *, everything: bool = False) -> Iterable[Line]:
        """The plan of a run as text.

        Args:
            width: The width of the terminal, in columns.
            everything: Whether columns without room follow in tables below.
        """

    def data(self) -> Mapping[str, Any]:
        """The plan of a run as JSON data."""
