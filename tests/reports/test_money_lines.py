"""The line on money, which is left out if no amount is known."""

import pytest

from pytest_llmeval.reports.overview import money_lines
from pytest_llmeval.scoring.usage import Money, SavedMoney, SpentMoney


@pytest.mark.parametrize(
    ("spent", "saved", "line"),
    [
        (SpentMoney(judges=None, targets=None), SavedMoney(), None),
        (SpentMoney(targets=None), SavedMoney(stored=None), None),
        (
            SpentMoney(judges=0.5, targets=None),
            SavedMoney(),
            "money: unknown USD spent (judges 0.5000, targets unknown)",
        ),
        (
            SpentMoney(targets=None),
            SavedMoney(stored=0.25),
            "money: unknown USD spent (targets unknown); saved: 0.2500",
        ),
        (SpentMoney(), SavedMoney(), "money: 0.0000 USD spent; saved: 0"),
    ],
)
def test_money_of_which_no_amount_is_known_is_left_out(spent: SpentMoney, saved: SavedMoney, line: str | None) -> None:
    lines = list(money_lines(Money(spent, saved)))
    assert [each.startswith(line) for each in lines] == [True] if line else lines == []
