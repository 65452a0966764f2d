"""The HTML report in a real browser, opened from disk."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from pages import Browser, case, page_run, report, suite

from pytest_llmeval.reports import CaseReport, PageRun
from pytest_llmeval.reports._tables import FilledTable

TEXTS = {"input": "Where?", "expected": "Tokyo", "prediction": "In Kyoto"}
CASES = [
    case("france", labels={"continent": "Europe"}),
    case("japan", "failed", 0.25, reason="f1 0.2500, limit >= 0.4", labels={"continent": "Asia"}, line=7, **TEXTS),
    case("peru", "errored", None, reason="ValueError: no", labels={"continent": "America"}),
    case("chile", f1=0.5, labels={"continent": "America"}),
]
GATE = {"gate": "f1 >= 0.6", "outcome": "failed", "value": 0.58, "limit": 0.6, "reason": "f1 is 0.58, expected >= 0.6"}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "report.html"
    path.write_text(page_run("", report(suite(CASES, gates=[GATE]))).page().html, encoding="utf-8")
    return path


@pytest.fixture
def opened(browser: Browser, page: Path) -> Iterator[Browser]:
    browser.open(page)
    yield browser
    assert browser.complaints() == []


def test_the_first_screen_has_the_verdict_the_gates_and_the_counts(opened: Browser) -> None:
    header = opened.find("header").text
    assert "Do not merge: f1 is 0.58, expected >= 0.6 for the suite; start with japan" in header
    assert "2 of 4 cases fail; no approved run to compare with (--snapshot-update approves one)\n" in header
    assert "f1 is 0.58, expected >= 0.6" in opened.find(".gate.failed").text
    assert opened.find(".gate.failed .numberline").get_attribute("aria-label") == "0.5800, limit >= 0.6, interval n/a"
    counts = opened.find(".counts").text
    assert all(each in counts for each in ("4 cases", "2 passed", "1 failed", "1 errored", "pass rate 0.50"))


def test_a_page_asks_for_nothing_beyond_its_own_file(opened: Browser) -> None:
    assert opened.run("return performance.getEntriesByType('resource').length") == 0


def test_filters_and_sorting_are_in_the_address_and_a_link_shows_the_same(opened: Browser, page: Path) -> None:
    opened.go("view=cases")
    assert opened.ids() == ["japan", "peru", "france", "chile"]
    opened.find("[data-sort=f1]").click()
    opened.settle()
    assert opened.ids() == ["france", "chile", "japan", "peru"]
    opened.choose("label.continent", "America")
    opened.find("[name=outcome-passed]").click()
    opened.settle()
    assert opened.ids() == ["chile"]
    assert opened.view == "#view=cases&outcome=passed&sort=-f1&label.continent=America"
    opened.open(page, opened.view.removeprefix("#"))
    assert opened.ids() == ["chile"]
    assert opened.texts("#count") == ["1 of 4 cases"]


def test_the_search_finds_ids_reasons_labels_and_texts(opened: Browser) -> None:
    opened.go("view=cases")
    for searched, found in (("FRA", ["france"]), ("valueerror", ["peru"]), ("asia", ["japan"])):
        opened.choose("q", searched)
        assert opened.ids() == found
    opened.choose("q", "in kyoto")
    opened.until("document.querySelectorAll('[data-case]').length === 1")
    assert opened.ids() == ["japan"]


def test_a_range_of_a_metric_keeps_the_cases_with_such_scores(opened: Browser) -> None:
    opened.go("view=cases")
    opened.choose("max", "0.5")
    assert opened.ids() == ["japan", "chile"]
    opened.choose("min", "0.3")
    assert opened.ids() == ["chile"]


class CountedCase(CaseReport, frozen=True, omit_defaults=True):
    answer_words: int = 0


def test_a_field_of_a_case_that_the_page_has_no_place_for_is_shown_by_its_name(
    browser: Browser, tmp_path: Path
) -> None:
    run = page_run("", report(suite([case("japan", "failed", 0.25, **TEXTS)])))
    (before,) = run.report.suites
    fields = {name: getattr(before.cases[0], name) for name in CaseReport.__struct_fields__}
    counted = structs.replace(before, cases=[CountedCase(**fields, answer_words=2)])
    (tmp_path / "report.html").write_text(
        structs.replace(run, report=structs.replace(run.report, suites=[counted])).page().html, encoding="utf-8"
    )
    browser.open(tmp_path / "report.html", "view=cases&case=0/japan")
    assert "answer words\n2" in browser.find(".case").text
    assert browser.complaints() == []


def test_a_case_opens_with_its_texts_its_difference_and_the_command_that_runs_it(opened: Browser) -> None:
    opened.go("view=cases")
    opened.find("[data-row='0'] a").click()
    opened.until("document.querySelector('.case')")
    assert opened.view == "#view=cases&case=0/japan"
    said = opened.find(".case").text
    assert all(each in said for each in ("Where?", "Tokyo", "In Kyoto", "capitals.eval.yaml:7", "limit >= 0.4"))
    assert opened.texts(".case pre.diff del") == ["Tokyo"]
    assert opened.texts(".case pre.diff ins") == ["In Kyoto"]
    assert opened.texts(".command code") == ["pytest --llmeval capitals.eval.yaml::japan"]


def test_keys_move_between_rows_and_cases(opened: Browser) -> None:
    opened.go("view=cases")
    opened.find("[data-row='0'] a").send_keys("")
    opened.run("document.querySelector('[data-row=\"0\"] a').focus()")
    opened.press("ARROW_DOWN", "ENTER")
    opened.until("document.querySelector('.case')")
    assert opened.find(".case h2").text.endswith("peru")
    opened.press("j")
    opened.until("document.querySelector('.case h2').textContent.includes('france')")
    opened.press("ESCAPE")
    opened.until("document.querySelector('[data-case]')")
    opened.press("/")
    assert opened.run("return document.activeElement.name") == "q"


def test_a_browser_that_cannot_unpack_the_cases_says_so_below_the_verdict(browser: Browser, page: Path) -> None:
    lacking = {"source": "delete window.DecompressionStream"}
    script = browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", lacking)
    try:
        browser.driver.get("about:blank")
        browser.driver.get(page.as_uri())
        browser.until("document.querySelector('[role=alert]')")
        assert "DecompressionStream is not defined" in browser.find("[role=alert]").text
        assert "Do not merge: f1 is 0.58" in browser.find("header").text
    finally:
        browser.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)


def test_a_view_of_damaged_data_says_so_and_leaves_the_others(browser: Browser, tmp_path: Path) -> None:
    whole = page_run("", report(suite(CASES)))
    table: Any = FilledTable(title="x", headers=3, rows="y")  # type: ignore[arg-type]
    damaged = structs.replace(whole.report, suites=[structs.replace(whole.report.suites[0], tables=[table])])
    (tmp_path / "damaged.html").write_text(PageRun("", damaged).page().html, encoding="utf-8")
    browser.open(tmp_path / "damaged.html", "view=numbers")
    assert browser.find("[role=alert]").text.startswith("This view cannot be drawn: ")
    browser.go("view=cases")
    assert len(browser.ids()) == 4
    assert len(browser.complaints()) == 1
