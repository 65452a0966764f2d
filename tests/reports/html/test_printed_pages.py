"""The HTML report on paper."""

import base64
import re
from pathlib import Path

import pytest
from pages import Browser, case, page_run, report, suite

ROW = "document.querySelectorAll('[data-row]').length"


def write_page(folder: Path, cases: int) -> Path:
    path = folder / "page.html"
    run = report(suite([case(f"case {number}") for number in range(cases)]))
    path.write_text(page_run("run", run).page()[0], encoding="utf-8")
    return path


def test_all_cases_are_printed_and_the_screen_then_has_those_in_sight(browser: Browser, tmp_path: Path) -> None:
    browser.open(write_page(tmp_path, 200), "view=cases")
    assert 0 < browser.run(f"return {ROW}") < 100
    printed = base64.b64decode(browser.driver.print_page())
    assert len(re.findall(rb"/Type ?/Page\b", printed)) >= 4
    assert 0 < browser.run(f"return {ROW}") < 100
    assert browser.complaints() == []


@pytest.mark.parametrize(("cases", "said"), [(1000, [""]), (1001, ["Only the first 1000 are printed."])])
def test_of_many_cases_the_first_thousand_are_printed(
    browser: Browser, tmp_path: Path, cases: int, said: list[str]
) -> None:
    browser.open(write_page(tmp_path, cases), "view=cases")
    browser.run("dispatchEvent(new Event('beforeprint'))")
    assert browser.run(f"return {ROW}") == 1000
    assert browser.texts(".rest") == said
    browser.run("dispatchEvent(new Event('afterprint'))")
    assert browser.run(f"return {ROW}") < 100


def test_what_is_folded_is_open_on_paper(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    suites = [suite([case("a")], name=f"suite {number}") for number in range(5)]
    path.write_text(page_run("run", report(*suites)).page()[0], encoding="utf-8")
    browser.open(path)
    closed = "document.querySelectorAll('details:not([open])').length"
    folded = browser.run(f"return {closed}")
    assert folded >= 5
    browser.run("dispatchEvent(new Event('beforeprint'))")
    assert browser.run(f"return {closed}") == 0
    browser.run("dispatchEvent(new Event('afterprint'))")
    assert browser.run(f"return {closed}") == folded
