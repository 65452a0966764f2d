"""Numbers of the page: how many decimals they have, and that the exact ones are at hand."""

from pathlib import Path
from typing import Any

import pytest
from pages import Browser, case, page_run, report, suite

from pytest_llmeval.core import number
from pytest_llmeval.reports.html import _page as page

FIGURES = (Path(page.__file__).parent / "assets" / "figures.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def empty(browser: Browser) -> Browser:
    browser.driver.get("about:blank")
    return browser


def called(browser: Browser, expression: str, *arguments: Any) -> Any:
    return browser.run(f"{FIGURES}\nreturn {expression}", *arguments)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "n/a"),
        (0.16219, "0.1622"),
        (-0.00001, "0.0000"),
        (-0.006, "-0.0060"),
        (999.99, "999.9900"),
        (1234.56, "1234.6"),
        (5.0, "5.0000"),
    ],
)
def test_numbers_are_written_as_in_the_other_reports(empty: Browser, value: float | None, text: str) -> None:
    assert called(empty, "number(arguments[0])", value) == text == number(value)


METRIC = {"value": 0.162193, "mean": 0.162193, "low": 0.0, "high": 0.3244, "scored": 2, "undefined": 0, "missing": 0}
METRIC |= {"errored": 0, "signature": ""}


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Browser:
    gate = {"gate": "f1 >= 0.5", "outcome": "failed", "value": 0.162193, "limit": 0.5}
    reason = "f1 is 0.1622, expected >= 0.5000, 0.1622.3 of v0.1622"
    cases = [case("a", "failed", 0.162193, reason="f1 0.1622, limit >= 0.3"), case("b", f1=0.9)]
    made = suite(cases, gates=[{**gate, "reason": reason}], metrics={"f1": METRIC})
    path = tmp_path / "page.html"
    path.write_text(page_run("", report(made)).page().html, encoding="utf-8")
    browser.open(path)
    return browser


def test_a_number_is_the_same_wherever_it_stands_and_has_the_exact_one_as_its_title(opened: Browser) -> None:
    exact = "[...document.querySelectorAll('[data-exact=\"0.162193\"]')].map((each) => [each.textContent, each.title])"
    for view, times in (("", 2), ("view=numbers", 1), ("view=cases", 1), ("view=cases&case=0/a", 1)):
        opened.go(view)
        opened.until(f"document.body.dataset.view === '{'case' if 'case=' in view else view[5:] or 'overview'}'")
        assert opened.run(f"return {exact}") == [["0.1622", "0.162193"]] * times, view
    opened.go("view=numbers")
    opened.until("document.querySelector('table')")
    assert "0.0000..0.3244" in opened.texts("td")


def test_what_is_copied_has_the_exact_numbers(opened: Browser) -> None:
    copied = opened.run(
        "getSelection().selectAllChildren(document.querySelector('.gate .figure'));"
        "const data = new DataTransfer();"
        "document.dispatchEvent(new ClipboardEvent('copy', {clipboardData: data, bubbles: true}));"
        "return data.getData('text/plain')"
    )
    assert copied == "0.162193"
