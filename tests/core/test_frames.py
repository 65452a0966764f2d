"""The user's lines in an exception."""

import json
import traceback

import pytest

from pytest_llmeval import get_evaluator
from pytest_llmeval.core import AnyError
from pytest_llmeval.targets._python import defined_at

HERE = "test_frames.py"


def broken() -> None:
    json.loads("{")


def chained() -> None:
    try:
        broken()
    except ValueError as error:
        raise RuntimeError("no answer") from error


def test_the_origin_is_the_innermost_line_of_the_user() -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (its lines are tested)
        broken()
    line = broken.__code__.co_firstlineno + 1
    assert AnyError(caught.value).line.endswith(f"{HERE}:{line} in broken)")


def test_an_exception_that_passed_no_line_of_the_user_has_no_origin() -> None:
    assert AnyError(ValueError("never raised")).line == ""


def test_only_lines_of_the_user_stay_in_the_tracebacks_of_an_exception_and_its_cause() -> None:
    with pytest.raises(RuntimeError) as caught:
        chained()
    error = caught.value
    assert error.__cause__ is not None
    assert "decoder.py" in {
        each.filename.rpartition("/")[2] for each in traceback.extract_tb(error.__cause__.__traceback__)
    }
    AnyError(error).cut_traceback()
    for each in (error, error.__cause__):
        assert {frame.filename.rpartition("/")[2] for frame in traceback.extract_tb(each.__traceback__)} == {HERE}


def test_an_exception_without_lines_of_the_user_keeps_its_traceback() -> None:
    error = ValueError("never raised")
    AnyError(error).cut_traceback()
    assert error.__traceback__ is None


def test_a_function_is_shown_with_its_file_and_line() -> None:
    assert defined_at(broken).endswith(f"{HERE}:{broken.__code__.co_firstlineno})")
    assert defined_at(len) == ""
    assert defined_at(get_evaluator("text")) == ""
