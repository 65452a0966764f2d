"""Budgets: what users write, and what they read of it."""

from collections.abc import Sequence

import pytest

from pytest_llmeval.cli._options import parse_budget
from pytest_llmeval.judges import Budget


@pytest.mark.parametrize(
    ("texts", "budget", "shown"),
    [
        ([], Budget(), ""),
        (["calls=500"], Budget(calls=500), "500 calls"),
        (["calls=1"], Budget(calls=1), "1 call"),
        (["calls=0"], Budget(calls=0), "0 calls"),
        (["tokens=200000.0"], Budget(tokens=200000), "200000 tokens"),
        (["usd=2.5"], Budget(usd=2.5), "2.50 USD"),
        ([" calls=5 , usd=0.10"], Budget(calls=5, usd=0.1), "5 calls, 0.10 USD"),
        (["usd=0.001"], Budget(usd=0.001), "0.001 USD"),
        (["usd=0"], Budget(usd=0.0), "0.00 USD"),
        (["usd=1", "tokens=7"], Budget(tokens=7, usd=1.0), "7 tokens, 1.00 USD"),
    ],
)
def test_a_budget_is_read_and_shown(texts: Sequence[str], budget: Budget, shown: str) -> None:
    assert parse_budget(texts) == budget
    assert str(budget) == shown
    assert bool(budget) == bool(texts)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "5",
            "calls",
            "calls=",
            "calls=-1",
            "calls=1e3",
            "calls=\u0663",
            "usd=nan",
            "usd=inf",
            "usd=" + "9" * 400,
        ),
        *("eur=5", "calls=5;usd=1", "usd=1,50", "usd=1,", "Calls=5", "calls = 5"),
    ],
)
def test_anything_else_is_told_with_what_is_expected(text: str) -> None:
    with pytest.raises(ValueError, match=r"^found '.*', expected calls=NUMBER, tokens=NUMBER or usd="):
        parse_budget([text])


@pytest.mark.parametrize("texts", [["calls=1,calls=2"], ["usd=1", "usd=1"]])
def test_two_limits_of_a_kind_are_a_fault(texts: Sequence[str]) -> None:
    with pytest.raises(ValueError, match=r"found (calls|usd) twice, expected only one limit in this unit"):
        parse_budget(texts)


@pytest.mark.parametrize("text", ["calls=1.5", "tokens=0.1"])
def test_calls_and_tokens_are_whole(text: str) -> None:
    with pytest.raises(ValueError, match=f"found '{text}', expected a whole number of "):
        parse_budget([text])
