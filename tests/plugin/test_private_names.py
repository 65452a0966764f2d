"""pytest's private names stand in one module, so that a new pytest is tried in one place."""

import re
from pathlib import Path

import pytest_llmeval

PACKAGE = Path(pytest_llmeval.__file__).parent
PRIVATE = re.compile(r"\b(?:_pytest|_fixtureinfo|_fixturemanager|_getobj|_loadconftestmodules|_tw)\b")


def named_in(folder: Path, pattern: re.Pattern[str]) -> set[str]:
    return {path.name for path in folder.rglob("*.py") if pattern.search(path.read_text(encoding="utf-8"))}


def test_one_module_uses_private_names_of_pytest() -> None:
    assert named_in(PACKAGE / "plugin", PRIVATE) == {"_pytest_private.py"}
    others = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "plugin"}
    # These tell frames and calls of test runners from those of users.
    assert {name for folder in others for name in named_in(PACKAGE / folder, PRIVATE)} == {"_process.py", "_uses.py"}


def test_no_other_module_of_the_plugin_is_allowed_to_touch_a_private_name() -> None:
    assert named_in(PACKAGE / "plugin", re.compile("SLF001")) == {"_pytest_private.py"}
