"""The record of what code uses: options of pytest, names of databases, and states of modules."""

from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from pytest_llmeval.services import UseRecord
from pytest_llmeval.services._module_states import state_of
from pytest_llmeval.services._uses import _file_of_database

APP = """\
def getoption(name):
    return getattr(options, name)

said = options.model, getoption("tone")
"""


@pytest.fixture
def options() -> Namespace:
    return Namespace(model="small", tone="dry", unread=1)


@pytest.fixture
def record(tmp_path: Path, options: Namespace) -> Iterator[UseRecord]:
    used = UseRecord.begin(tmp_path, options)
    yield used
    used.stop()


def test_options_that_code_of_the_project_reads_are_recorded(
    record: UseRecord, options: Namespace, tmp_path: Path
) -> None:
    exec(compile(APP, str(tmp_path / "app.py"), "exec"), {"options": options})
    assert {use for user, use in record.uses if user == "file app.py"} == {"option model", "option tone"}


def test_options_that_are_set_or_deleted_later_are_recorded(
    record: UseRecord, options: Namespace, tmp_path: Path
) -> None:
    options.model, options.late = "large", "yes"
    del options.unread
    app = "said = options.model, options.late, hasattr(options, 'unread'), hasattr(options, 'nowhere'), options.usepdb"
    names = {"options": options}
    options.usepdb = False
    exec(compile(app, str(tmp_path / "app.py"), "exec"), names)
    assert names["said"] == ("large", "yes", False, False, False)
    assert {use for user, use in record.uses if user == "file app.py"} == {
        *("option model", "option late", "option unread", "option nowhere"),
    }
    assert ("", "option usepdb") in record.uses  # of all, since pytest reads it for each test


@pytest.mark.parametrize(
    "uri", ["/a b.db", "file:/a%20b.db?mode=ro", "file:///a%20b.db", "file://localhost/a%20b.db#x"]
)
def test_database_is_named_by_a_path_or_a_uri(uri: str) -> None:
    assert _file_of_database(uri) == "/a b.db"


KEEPING = """\
def answer(value: str) -> "Nowhere":
    return value

class Keeper:
    pass

KEPT = Keeper()
KEPT.said = []
"""


@pytest.mark.parametrize(
    "look",
    ["vars(answer)", "answer.__annotations__", "vars(KEPT)", "Keeper.__annotations__", "answer(1)", "Keeper()"],
)
def test_looking_at_what_a_module_has_is_no_change_of_its_state(look: str) -> None:
    module = ModuleType("keeping")
    exec(KEEPING, vars(module))
    before = state_of(module, "keeping".__eq__)
    eval(look, vars(module))
    assert state_of(module, "keeping".__eq__) == before


@pytest.mark.parametrize("change", ["answer.said = 1", "KEPT.said.append(1)", "KEPT.more = 1", "Keeper.more = 1"])
def test_setting_something_in_a_module_changes_its_state(change: str) -> None:
    module = ModuleType("keeping")
    exec(KEEPING, vars(module))
    before = state_of(module, "keeping".__eq__)
    exec(change, vars(module))
    assert state_of(module, "keeping".__eq__) != before
