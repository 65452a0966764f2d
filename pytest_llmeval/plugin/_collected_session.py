"""A session of pytest that has collected its tests."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import pytest

from pytest_llmeval.core import Case
from pytest_llmeval.plugin._collect import CaseItem
from pytest_llmeval.plugin._payload import LOADER, carried_records, case_of
from pytest_llmeval.plugin._pytest_private import fixture_functions, fixture_info
from pytest_llmeval.run import LoadedCase

if TYPE_CHECKING:
    from pytest_llmeval.plugin._extensions import CaseChooser


class CollectedSession:
    """A session of pytest that has collected its tests, for commands that run none of them.

    Attributes:
        session: Of pytest.
    """

    def __init__(self, session: pytest.Session) -> None:
        self.session = session

    @property
    def chooser(self) -> "CaseChooser | None":
        """What decides which cases run; ``None`` if all of them do."""
        return self.session.config.stash[LOADER].chooser

    def cases(self) -> Iterator[tuple[pytest.Item, LoadedCase | None, Sequence[Case]]]:
        """Yield each test with its loaded case, and all cases that it runs; no case for other tests."""
        for item in self.session.items:
            loaded = case_of(item)
            bulk = item.bulk if isinstance(item, CaseItem) else ()
            yield item, loaded, () if loaded is None else bulk or (loaded.case,)

    def planned_cases(self) -> Iterator[tuple[LoadedCase, bool]]:
        """Yield the cases that the session would run, each with whether a fixture of the user answers it."""
        for item in self.session.items:
            if isinstance(item, CaseItem) and item.get_closest_marker("skip") is None and carried_records(item) is None:
                defined = fixture_info(item).name2fixturedefs.get("llmeval_target", ())[-1:]
                own = any(not definition.func.__module__.startswith("pytest_llmeval.") for definition in defined)
                for case in item.bulk or (item.loaded.case,):
                    loaded = LoadedCase(item.loaded.suite, case, item.loaded.key)
                    if not loaded.is_skipped:
                        yield loaded, own

    def fixture_functions(self, item: pytest.Item, name: str) -> list[Callable[..., object]]:
        """The functions of a fixture that a test finds, the one that it gets last."""
        return fixture_functions(item, name)
