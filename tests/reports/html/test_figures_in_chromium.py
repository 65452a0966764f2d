"""Numbers of the page: how many decimals they have, and that the exact ones are at hand."""

from pathlib import Path
from typing import Any

import pytest
from pages import Browser, case, page_run, report, suite

from pytest_llmeval.reports import to_page
from pytest_llmeval.reports.html import _page as page

FIGURES = (Path(page.__file__).parent / "assets" / "figures.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def empty(browser: Browser) -> Browser:
    browser.driver.get("about:blank")
    return browser


def called(browser: Browser, expression: str, *arguments: Any) -> Any:
    return browser.run(f"{FIGURES}\nreturn {expression}", *arguments)


@pytest.mark.parametrize(
    ("low", "high", "decimals"),
    [
        (0.0, 0.3244, 2),
        (0.6, 0.7, 2),
        (0.852, 0.899, 3),
        (0.5, 0.5123, 3),
        (0.99, 0.9999, 4),
        (0.1, 0.100001, 6),
        (0.0, 1.0, 1),
        (0.0, 9.94, 1),
        (0.0, 9.96, 0),
        (100.0, 350.0, 0),
        (0.7, 0.6, 2),
        (1.0, 1.0, None),
        (None, 1.0, None),
        (None, None, None),
    ],
)
def test_the_width_of_an_interval_has_two_significant_digits(
    empty: Browser, low: float | None, high: float | None, decimals: int | None
) -> None:
    assert called(empty, "decimals(arguments[0], arguments[1])", low, high) == decimals


@pytest.mark.parametrize(
    ("values", "decimals"),
    [([], 2), ([None, 1.0], 2), ([0.75, 0.5], 2), ([0.125], 3), ([2 / 3], 4), ([0.00001], 2), ([0.75, 0.0625], 4)],
)
def test_without_an_interval_there_are_two_to_four_decimals(
    empty: Browser, values: list[float | None], decimals: int
) -> None:
    assert called(empty, "decimalsFor(arguments[0])", values) == decimals


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (None, 2, "n/a"),
        (0.16219, 2, "0.16"),
        (-0.001, 2, "0.00"),
        (-0.006, 2, "-0.01"),
        (999.99, 3, "999.990"),
        (1234.56, 3, "1234.6"),
        (1234.56, 0, "1235"),
        (5.0, 0, "5"),
    ],
)
def test_numbers_have_the_decimals_asked_for_and_no_negative_zero(
    empty: Browser, value: float | None, digits: int, text: str
) -> None:
    assert called(empty, "number(arguments[0], arguments[1])", value, digits) == text


METRIC = {"value": 0.162193, "mean": 0.162193, "low": 0.0, "high": 0.3244, "scored": 2, "undefined": 0, "missing": 0}
METRIC |= {"errored": 0, "signature": ""}


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Browser:
    gate = {"gate": "f1 >= 0.5", "outcome": "failed", "value": 0.162193, "limit": 0.5}
    reason = "f1 is 0.1622, expected >= 0.5000, 0.1622.3 of v0.1622"
    cases = [case("a", "failed", 0.162193, reason="f1 0.1622, limit >= 0.3"), case("b", f1=0.9)]
    made = suite(cases, gates=[{**gate, "reason": reason}], metrics={"f1": METRIC})
    path = tmp_path / "page.html"
    path.write_text(to_page([page_run("", report(made))]).html, encoding="utf-8")
    browser.open(path)
    return browser


def test_a_number_is_the_same_wherever_it_stands_and_has_the_exact_one_as_its_title(opened: Browser) -> None:
    exact = "[...document.querySelectorAll('[data-exact=\"0.162193\"]')].map((each) => [each.textContent, each.title])"
    for view, times in (("", 5), ("view=numbers", 2), ("view=cases", 2), ("view=cases&case=0/a", 3)):
        opened.go(view)
        opened.until(f"document.body.dataset.view === '{'case' if 'case=' in view else view[5:] or 'overview'}'")
        assert opened.run(f"return {exact}") == [["0.16", "0.162193"]] * times, view
    opened.go("view=numbers")
    opened.until("document.querySelector('table')")
    assert "0.00..0.32" in opened.texts("td")


def test_numbers_of_sentences_that_are_no_scores_stay_as_they_are(opened: Browser) -> None:
    assert opened.texts(".gate p") == ["failed: f1 is 0.16, expected >= 0.5000, 0.1622.3 of v0.1622"]


def test_of_metrics_with_the_same_value_the_one_that_a_sentence_names_has_its_decimals(
    browser: Browser, tmp_path: Path
) -> None:
    metrics = {
        "wins": {**METRIC, "value": 0.875, "low": 0.0, "high": 9.0},
        "f1": {**METRIC, "value": 0.875, "low": 0.851, "high": 0.899},
    }
    reasons = ["f1 is 0.8750", "wins is 0.8750", "f1 0.8750 -> 0.8750 beside wins 0.8750"]
    gates = [{"gate": "recall >= 1", "outcome": "failed", "value": None, "reason": reason} for reason in reasons]
    made = suite([case("a", f1=0.875)], gates=gates, metrics=metrics)
    (tmp_path / "page.html").write_text(to_page([page_run("", report(made))]).html, encoding="utf-8")
    browser.open(tmp_path / "page.html")
    assert browser.texts(".gate p") == [
        "failed: f1 is 0.875",
        "failed: wins is 0.9",
        "failed: f1 0.875 -> 0.875 beside wins 0.9",
    ]


def test_what_is_copied_has_the_exact_numbers(opened: Browser) -> None:
    copied = opened.run(
        "getSelection().selectAllChildren(document.querySelector('.gate .figure'));"
        "const data = new DataTransfer();"
        "document.dispatchEvent(new ClipboardEvent('copy', {clipboardData: data, bubbles: true}));"
        "return data.getData('text/plain')"
    )
    assert copied == "0.162193"
