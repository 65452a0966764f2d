"""Reports as data, for pages and for reviews, and a browser that opens pages."""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait
from servers import PATIENCE

from pytest_llmeval.evaluators import HumanLabel
from pytest_llmeval.reports import PageRun, RunReport, SuiteReport
from pytest_llmeval.workbench.reviews._items import Review, review_of

_OPTIONS = ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--lang=en-US")


def case(name: str, outcome: str = "passed", f1: float | None = 1.0, **more: Any) -> dict[str, Any]:
    """Return a case of a report."""
    return {
        "id": name,
        "outcome": outcome,
        "metrics": {"f1": f1},
        "details": {},
        "reason": None,
        "duration_s": 0.01,
        **more,
    }


def suite(cases: Sequence[Mapping[str, Any]], name: str = "capitals", **more: Any) -> dict[str, Any]:
    """Return a suite of a report, whose metric is the mean of its cases."""
    scores = [score for each in cases if (score := each["metrics"].get("f1")) is not None]
    value = sum(scores) / len(scores) if scores else None
    outcomes = [each["outcome"] for each in cases]
    counts = {outcome: outcomes.count(outcome) for outcome in ("passed", "failed", "errored", "skipped", "not_run")}
    metric = {"value": value, "mean": value, "low": None, "high": None, "scored": len(scores), "undefined": 0}
    return {
        "suite": name,
        "path": f"{name}.eval.yaml",
        "counts": {"total": len(cases), **counts},
        "metrics": {"f1": {**metric, "errored": 0, "missing": 0, "signature": "tok:auto"}},
        "groups": {},
        "gates": [],
        "cases": list(cases),
        "error_buckets": [],
        **more,
    }


def report(*suites: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return a report as JSON data."""
    run = {"started_at": "2026-11-20T11:42:23+00:00", "duration_s": 1.5, "version": "0.1.0", "commit": "a" * 40}
    return {"schema_version": 1, "run": run, "suites": list(suites), **more}


def page_run(label: str, data: Mapping[str, Any], **more: Any) -> PageRun:
    """Return a report as a run of a page.

    Args:
        label: Of the run.
        data: The report as JSON data.
        more: Further fields of the run.
    """
    return PageRun(label, convert(data, RunReport).with_derived(), **more)


def suite_report(data: Mapping[str, Any]) -> SuiteReport:
    """Return a suite of a report from its JSON data."""
    return page_run("", report(data)).report.suites[0]


def head_of(html: str) -> dict[str, Any]:
    """Return what a page says without its cases."""
    found = re.search(r'<script type="application/json" id="head">(.*?)</script>', html, re.DOTALL)
    assert found
    head: dict[str, Any] = json.loads(found[1])
    return head


class Browser:
    """A browser with one page open."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def open(self, page: Path, view: str = "") -> None:
        """Open a page at a view, and wait until it is drawn."""
        self.driver.get("about:blank")
        self.driver.get(f"{page.as_uri()}#{view}")
        self.until("document.body.dataset.ready === 'true'")

    def go(self, view: str) -> None:
        """Show another view of the open page."""
        self.run("location.hash = arguments[0]", view)
        self.settle()

    def settle(self) -> None:
        """Wait until what was asked for is drawn."""
        self.driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => setTimeout(done))")

    def until(self, condition: str) -> None:
        """Wait for a condition of the page."""
        WebDriverWait(self.driver, PATIENCE, 0.02).until(lambda driver: driver.execute_script(f"return {condition}"))

    def run(self, script: str, *arguments: Any) -> Any:
        """Run a script in the page."""
        return self.driver.execute_script(script, *arguments)

    def find(self, selector: str) -> WebElement:
        """Return the first element."""
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def texts(self, selector: str) -> list[str]:
        """Return the texts of elements, as they stand in the page."""
        found: list[str] = self.run(
            "return [...document.querySelectorAll(arguments[0])].map((each) => each.textContent.trim())", selector
        )
        return found

    def ids(self) -> list[str]:
        """Return the ids of the cases in sight."""
        return self.texts("[data-case]")

    def press(self, *keys: str) -> None:
        """Press keys where the focus is."""
        webdriver.ActionChains(self.driver).send_keys(*(getattr(Keys, key, key) for key in keys)).perform()
        self.settle()

    def choose(self, name: str, value: str) -> None:
        """Choose a value of a field."""
        self.run(
            "const field = document.querySelector(`[name='${arguments[0]}']`); field.value = arguments[1];"
            "field.dispatchEvent(new Event(field.tagName === 'SELECT' ? 'change' : 'input', {bubbles: true}))",
            name,
            value,
        )
        self.settle()

    @property
    def view(self) -> str:
        """What the address says is shown."""
        return str(self.run("return decodeURIComponent(location.hash)"))

    def complaints(self) -> list[str]:
        """Return what the browser's console says."""
        return [str(entry["message"]) for entry in self.driver.get_log("browser")]


@contextmanager
def chromium(language: str = "en-US") -> Iterator[Browser]:
    """Start Chromium, or skip where there is none; where CI runs, it must be there."""
    program, server = (shutil.which(name) for name in ("chromium", "chromedriver"))
    if not (program and server):
        if os.environ.get("CI"):
            pytest.fail("found no chromium and chromedriver, expected both where CI is set: .ci/run installs them")
        pytest.skip("needs chromium and chromedriver (apt-get install chromium chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for each in _OPTIONS:
        options.add_argument(each)
    options.add_experimental_option("prefs", {"intl.accept_languages": language})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(server))
    try:
        yield Browser(driver)
    finally:
        driver.quit()


def answered(number: int, scores: Sequence[float] = (), outcome: str = "passed", **more: Any) -> dict[str, Any]:
    """Return a case that one judge scored, or several jurors."""
    texts = {"question": f"Question {number}?", "answer": f"Answer {number}", "reference": f"Right {number}"}
    texts |= more.pop("texts", {})
    judging = {"evaluator": "judge", "mode": "continuous", "question": texts, "reply": "x"}
    judgings = [{**judging, "score": score, "judge": f"juror {place}"} for place, score in enumerate(scores)]
    value = sum(scores) / len(scores) if scores else None
    return case(
        f"c{number}",
        outcome,
        input=texts["question"],
        expected=texts["reference"],
        prediction=texts["answer"],
        **({"judgings": judgings} if judgings else {}),
        **more,
        f1=value,
    )


def suites_of(folder: Path, *cases: Mapping[str, Any], **more: Any) -> Sequence[SuiteReport]:
    """Write a report of one suite, and return its results."""
    path = folder / "run.json"
    path.write_text(json.dumps(report(suite(cases, **more))), encoding="utf-8")
    return RunReport.read(path).suites


def review(folder: Path, *cases: Mapping[str, Any], **options: Any) -> Review:
    """Return the review of a suite with these cases."""
    return review_of(suites_of(folder, *cases), **options)


def labels_of(found: Review, annotator: str, say: Callable[[int], str | int | None]) -> list[HumanLabel]:
    """Return what a person says of each item, by the number in its answer."""
    numbers = [int(each.answer.split()[1]) for each in found.items]
    return [found.label(place, annotator, say(number)) for place, number in enumerate(numbers)]


def lines(path: Path, labels: Sequence[HumanLabel]) -> Path:
    """Write a file of labels."""
    path.write_text("".join(map(HumanLabel.line, labels)), encoding="utf-8")
    return path
