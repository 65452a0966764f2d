"""The line on money, which is left out if no amount is known."""

import pytest

from pytest_llmeval.numbers import Money
from pytest_llmeval.numbers._usage import SavedMoney, SpentMoney
from pytest_llmeval.reports._overview import money_lines


@pytest.mark.parametrize(
    ("spent", "saved", "line"),
    [
        (SpentMoney(judges=None, targets=None), SavedMoney(), None),
        (SpentMoney(targets=None), SavedMoney(stored=None), None),
        (
            SpentMoney(judges=0.5, targets=None),
            SavedMoney(),
            "cost: 0.5000 USD (judges 0.5000); no known price: targets",
        ),
        (SpentMoney(targets=None), SavedMoney(stored=0.25), "saved: 0.2500 USD by what was stored"),
        (SpentMoney(), SavedMoney(), None),
    ],
)
def test_money_that_is_unknown_or_0_is_left_out(spent: SpentMoney, saved: SavedMoney, line: str | None) -> None:
    lines = list(money_lines(Money(spent, saved)))
    assert [each.startswith(line) for each in lines] == [True] if line else lines == []
