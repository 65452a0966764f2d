"""What people see in common situations: verdict, cause and next step, against recorded screens."""

from pathlib import Path

import pytest
from screens import RECORDED, SCREENS, screen

_MOST_LINES = 80


@pytest.mark.parametrize(("name", "width"), SCREENS)
def test_a_screen_is_as_recorded(name: str, width: int, tmp_path: Path) -> None:
    recorded = (RECORDED / f"{name}-{width}.txt").read_text(encoding="utf-8")
    shown = screen(name, width, tmp_path.resolve())
    assert shown == recorded, "run python .ci/recorded_failures.py, and read what changed"
    assert len(shown.splitlines()) <= _MOST_LINES
