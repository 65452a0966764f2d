"""The limit of open files."""

import subprocess
import sys

import pytest

_FITTING = """
import resource, sys
from pytest_llmeval.services import calls_that_fit
soft, hard, calls = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
print(calls_that_fit(calls), *resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(
    ("soft", "hard", "calls", "expected"),
    [
        (256, 4096, 16, "16 256 4096"),
        (256, 4096, 400, "400 1264 4096"),
        (256, 256, 400, "64 256 256"),
        (30, 60, 16, "1 60 60"),
    ],
)
def test_the_limit_of_open_files_is_raised_as_far_as_calls_need_and_else_limits_them(
    soft: int, hard: int, calls: int, expected: str
) -> None:
    line = [sys.executable, "-c", _FITTING, str(soft), str(hard), str(calls)]
    assert subprocess.run(line, capture_output=True, text=True, check=True).stdout.strip() == expected
