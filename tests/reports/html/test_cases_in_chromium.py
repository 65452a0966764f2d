"""The list of cases and the comparison of the HTML report in a real browser."""

import json
from pathlib import Path

import pytest
from pages import Browser, case, report, suite

from pytest_llmeval.cli import main

REASON = "f1 0.0000, limit >= 0.5000"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cases")
    texts = {"input": "How long?", "expected": "30 days"}
    fine = {**texts, "prediction": "30 days"}
    now = [case(f"same{n}", "failed", 0.0, **texts, prediction="2 days", reason=REASON) for n in range(10)]
    now += [case("other", "failed", 0.2, **texts, prediction="a week", reason="other")]
    now += [case("fell", "passed", 0.8, **fine), case("still", "passed", 1.0, **fine)]
    before = [case(one["id"], "passed", 1.0, **fine) for one in now]
    calm = [case(name, "passed", 1.0, **fine) for name in "ab"]
    for name, cases in (("run", now), ("base", before)):
        data = report(suite(calm, name="calm"), suite(cases, name="refunds"))
        (folder / f"{name}.json").write_text(json.dumps(data))
    files = [str(folder / name) for name in ("run.json", "base.json", "page.html")]
    assert main(["html", files[0], "--baseline", files[1], "-o", files[2]]) == 0
    return folder / "page.html"


def test_failed_cases_come_first_and_equal_failures_are_one_row_with_question_and_answer(
    browser: Browser, page: Path
) -> None:
    browser.open(page, "view=cases&suite=1")
    assert browser.texts(".rows .id") == ["same0 +9 equal", "other", "fell", "still"]
    assert browser.texts("#count") == ["13 of 13 cases, equal failures as one"]
    browser.until("document.querySelector('.rows .said .excerpt:not(:empty)')")
    assert browser.texts(".rows .row:first-child .said") == ["How long?", "2 days"]
    browser.find(".rows .alike").click()
    browser.settle()
    assert browser.texts(".rows .id") == [f"same{n}" for n in range(10)]


def test_comparison_opens_on_the_suite_that_broke_and_draws_nothing_that_did_not_move(
    browser: Browser, page: Path
) -> None:
    browser.open(page)
    browser.find(".tabs a[href*=comparison]").click()
    browser.settle()
    assert browser.texts(".suites option:checked") == ["refunds"]
    assert "Regressed or worse (12)" in browser.texts("h2")
    browser.open(page, "view=comparison")
    assert browser.texts(".suites option:checked") == ["refunds"]
    browser.open(page, "view=comparison&suite=0")
    assert browser.texts("main p") == ["run.json against base.json: unchanged in all 2 cases"]
    assert browser.texts("main svg") == []
