"""Rows that run as one item are as strict as rows that are items."""

import pytest
from strategies import run_rows


def test_every_row_runs_and_those_that_fail_are_named() -> None:
    ran = []

    def check(number: int, limit: int) -> None:
        ran.append(number)
        assert number < limit
        if number == 0:
            pytest.skip("nothing to see")

    calls = {f"n{number}": lambda limit, number=number: check(number, limit) for number in (3, 0, 1, 4)}
    with pytest.raises(ExceptionGroup, match="2 of 4 rows") as caught:
        run_rows(calls, {"limit": 3})
    assert ran == [3, 0, 1, 4]
    assert [error.__notes__ for error in caught.value.exceptions] == [["in row n3"], ["in row n4"]]
    with pytest.raises(AssertionError) as alone:
        run_rows(calls, {"limit": 4})
    assert alone.value.__notes__ == ["in row n4"]
    with pytest.raises(pytest.skip.Exception, match="nothing to see"):
        run_rows(calls, {"limit": 5})
