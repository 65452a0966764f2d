"""The failure output of one case of each evaluator, at two widths, against recorded files."""

import pytest
from examples import CASES, WIDTHS, failure, recorded, written


@pytest.mark.parametrize("width", WIDTHS)
def test_the_failure_output_of_each_evaluator_is_as_recorded(width: int) -> None:
    there = recorded(width).read_text(encoding="utf-8")
    assert written(width) == there, "run python .ci/recorded_failures.py, and read what changed"


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_of_a_failure_is_wider_than_the_terminal(width: int) -> None:
    reasons = {failure(name, width).splitlines()[0] for name in CASES}
    assert max(len(line) for line in written(width).splitlines() if line not in reasons) <= width
