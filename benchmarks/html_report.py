"""How large is the page of 10,000 cases, and how soon can it be used in Chromium?

Run: ``python benchmarks/html_report.py [CASES]``; needs chromium, chromedriver and selenium.

Cases have texts as question answering has them, in words of a usual vocabulary. "drawn" is the time from opening the
file to rows that can be clicked; "filtered", "sorted" and "opened" are from the click to the changed page.
"""

import json
import random
import shutil
import sys
import tempfile
import time
from itertools import accumulate
from pathlib import Path
from typing import Any

from msgspec import convert
from selenium import webdriver
from tabulate import tabulate

from pytest_llmeval.reports import PageRun, RunReport

STEPS = {
    "filtered": "q=case-99",
    "sorted": "sort=-f1",
    "opened": "case=0/case-77",
}
READY = """
const [hash, done] = arguments;
const mark = document.querySelector("main").firstChild;
location.hash = hash;
const look = () => document.querySelector("main").firstChild === mark ? setTimeout(look) : requestAnimationFrame(done);
look();
"""
DRAWN = "const look = (done) => document.body.dataset.ready ? done() : setTimeout(look, 5, done); look(arguments[0])"


def report(count: int) -> dict[str, Any]:
    """Return a report as JSON data."""
    chance = random.Random(1)
    words = ["".join(chance.choices("etaoinshrdlucmfw", k=chance.randint(2, 9))) for _ in range(4000)]
    weights = list(accumulate(1 / (rank + 5) for rank in range(len(words))))

    def text(length: int) -> str:
        return " ".join(chance.choices(words, cum_weights=weights, k=length))

    cases = [
        {
            "id": f"case-{number}",
            "outcome": chance.choice(("passed", "passed", "failed")),
            "metrics": {name: chance.random() for name in ("f1", "rougeL", "judge_score")},
            "labels": {"kind": chance.choice("abcde")},
            "input": {"question": text(20)},
            "expected": text(15),
            "prediction": text(25),
        }
        for number in range(count)
    ]
    counts = {"total": count, "passed": 0, "failed": 0, "errored": 0, "skipped": 0, "not_run": 0}
    suite = {"suite": "large", "path": "large.eval.yaml", "counts": counts, "metrics": {}, "cases": cases}
    return {"schema_version": 1, "run": {}, "suites": [suite]}


def browser() -> webdriver.Chrome:
    """Start Chromium."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for each in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(each)
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver") or ""))


def seconds(driver: webdriver.Chrome, script: str, *arguments: str) -> float:
    """Return how long a script takes."""
    started = time.perf_counter()
    driver.execute_async_script(script, *arguments)
    return time.perf_counter() - started


def main() -> None:
    """Print the table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    data = report(count)
    started = time.perf_counter()
    page = PageRun("", convert(data, RunReport).with_derived()).page().html
    rows = [("JSON report", f"{len(json.dumps(data, indent=1)) / 1e6:.2f} MB"), ("page", f"{len(page) / 1e6:.2f} MB")]
    rows.append(("made", f"{time.perf_counter() - started:.2f} s"))
    driver = browser()
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "page.html")
            path.write_text(page, encoding="utf-8")
            driver.get("about:blank")
            started = time.perf_counter()
            driver.get(f"{path.as_uri()}#view=cases")
            driver.execute_async_script(DRAWN)
            rows.append(("drawn", f"{time.perf_counter() - started:.2f} s"))
            for name, changes in STEPS.items():
                rows.append((name, f"{seconds(driver, READY, f'#view=cases&{changes}'):.2f} s"))
    finally:
        driver.quit()
    print(tabulate(rows, (f"{count} cases", ""), tablefmt="plain"))


if __name__ == "__main__":
    main()
