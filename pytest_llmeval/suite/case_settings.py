"""What a suite file says of its cases beyond their values: checks, messages, and files beside it."""

__all__ = ("CaseSettingsReader",)

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.errors import SuiteError
from pytest_llmeval.data.files.documents import read_json
from pytest_llmeval.data.files.text import check_regular
from pytest_llmeval.suite.conversation import script_fault, script_of
from pytest_llmeval.suite.registry import Registry
from pytest_llmeval.suite.settings import SettingsReader
from pytest_llmeval.suite.suite import CaseEntry

if TYPE_CHECKING:
    from pytest_llmeval.evaluators.checks.evaluator import Checks
    from pytest_llmeval.evaluators.checks.reading import CheckReader
    from pytest_llmeval.evaluators.checks.tree import Check


class CaseSettingsReader(SettingsReader):
    """One reading of one suite file; collects faults.

    Attributes:
        shared_checks: The suite's own.
    """

    def __init__(self, path: Path, registry: Registry, shown: str, root: Path) -> None:
        super().__init__(path, registry, shown, root)
        self.shared_checks: tuple[Check, ...] = ()

    @cached_property
    def _reader(self) -> "CheckReader":
        from pytest_llmeval.evaluators.checks.reading import CheckReader

        return CheckReader(self.registry.checks, self)

    def read_checks(self, entries: Any, place: tuple[str | int, ...]) -> "tuple[Check, ...]":
        """Read ``checks``, of the suite or of a case."""
        return () if entries in ([], ()) else self._reader.read(entries, place)

    def checks_evaluator(self, cases: Iterable[Case] = ()) -> "Checks":
        """Return the evaluator of the suite's checks, and of those of cases."""
        from pytest_llmeval.evaluators.checks.evaluator import checks_evaluator

        return checks_evaluator(self.shared_checks, (check for case in cases for check in case.checks))

    def read_script(self, messages: Any) -> list[dict[str, str]]:
        """Read ``messages`` of a source's row."""
        entry = self.check(CaseEntry, {"messages": messages}, ())
        if entry is None:
            return []
        if fault := script_fault(entry.messages):
            self.fault(("messages",), fault)
        return script_of(entry.messages)

    def read_file(self, name: str, place: tuple[str | int, ...]) -> Any:
        """Return the text or the JSON data of a file beside the suite file; ``None`` where it cannot be read."""
        try:
            target = (self.path.parent / name).resolve()
            if not self.is_inside(name):
                self.fault(place, self.outside_fault(name))
                return None
            check_regular(target, name)
            return read_json(target, name) if target.suffix == ".json" else target.read_text(encoding="utf-8-sig")
        except SuiteError as error:
            for each in error.faults:
                self.faults.append(each if each.line else self.document.fault(place, f"{name!r}: {each.message}"))
        except UnicodeDecodeError as error:
            self.fault(
                place,
                f"found {name!r} with byte 0x{error.object[error.start]:02x} at offset {error.start}, expected UTF-8",
            )
        except (OSError, RuntimeError, ValueError) as error:
            reason = "embedded null byte" if "\0" in name else error  # in words of no version of Python
            self.fault(place, f"found {name!r}, which cannot be read ({reason}), expected a file")
        return None
