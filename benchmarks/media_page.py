"""How much work is a page of 200 pictures for Chromium?

Run: ``python benchmarks/media_page.py``; needs chromium, chromedriver, selenium and Pillow.

Every case has a picture of 640 x 400 pixels and some 45 kB as input, another one as answer, and the answer of the case
before as what is expected. "work" is the time that Chromium's main thread was busy with this page, by its own count
(`TaskDuration`); "until" is by the clock of the page (`performance.now`), from its start.
"""

import io
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from html_report import DRAWN, browser
from msgspec import convert
from PIL import Image
from selenium import webdriver
from tabulate import tabulate

from pytest_llmeval import Media
from pytest_llmeval.core import form_of
from pytest_llmeval.reports import PageRun, RunReport

COUNT = 200
WIDTHS = (1280, 390)
PICTURES = """
const [count, done] = arguments;
const isDrawn = () => document.querySelectorAll("canvas[data-drawn]").length >= count;
const look = () => (isDrawn() ? done(performance.now()) : setTimeout(look, 2));
look();
"""
STEP = """
const [ids, done] = arguments;
const started = performance.now();
const next = () => {
  const id = ids.shift();
  if (id === undefined) return done(performance.now() - started);
  location.hash = `#view=cases&case=0/${id}`;
  const look = () => {
    const there = [...document.querySelectorAll("h1, h2")].some((title) => title.textContent.includes(id));
    return there && document.querySelectorAll("canvas[data-drawn]").length >= 3 ? next() : setTimeout(look, 0);
  };
  setTimeout(look, 0);
};
next();
"""


def picture(chance: np.random.Generator) -> Media:
    """Return a chart with a grainy area, as screenshots and photos have."""
    pixels = np.full((400, 640, 3), 255, np.uint8)
    for number in range(8):
        pixels[400 - chance.integers(40, 380) :, 20 + 76 * number : 80 + 76 * number] = chance.integers(0, 256, 3)
    pixels[:100, :150] = chance.integers(0, 256, (100, 150, 3))
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return Media(data=stream.getvalue())


def report(forms: list[dict[str, Any]]) -> RunReport:
    """Return a report whose cases have these pictures."""
    cases = [
        {
            "id": f"case-{number}",
            "outcome": "failed",
            "metrics": {"ssim": 0.5},
            "input": {"scan": form},
            "expected": forms[number - 2],
            "prediction": forms[number - 1],
        }
        for number, form in enumerate(forms)
    ]
    counts = {"total": len(cases), "failed": len(cases), "passed": 0, "errored": 0, "skipped": 0, "not_run": 0}
    suite = {"suite": "pictures", "path": "pictures.eval.yaml", "counts": counts, "metrics": {}, "cases": cases}
    return convert({"schema_version": 1, "run": {}, "suites": [suite]}, RunReport).with_derived()


def work(driver: webdriver.Chrome) -> float:
    """Return the seconds that the main thread has been busy."""
    metrics: Iterable[dict[str, Any]] = driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return next(float(metric["value"]) for metric in metrics if metric["name"] == "TaskDuration")


def main() -> None:
    """Print the table."""
    chance = np.random.default_rng(1)
    html = PageRun("", report([form_of(picture(chance)) for _ in range(COUNT)])).page().html
    driver, rows = browser(), []
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "page.html")
            path.write_text(html, encoding="utf-8")
            for width in WIDTHS:
                screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
                driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
                driver.get("about:blank")
                driver.execute_cdp_cmd("Performance.enable", {})
                driver.get(f"{path.as_uri()}#view=cases&case=0/case-7")
                driver.execute_async_script(DRAWN)
                drawn = driver.execute_async_script(PICTURES, 4)
                first = work(driver)
                ids = [f"case-{number}" for number in range(COUNT)]
                driver.execute_async_script(STEP, ids)
                rows.append((f"{width} px", f"{drawn / 1000:.2f} s", f"{first:.2f} s", f"{work(driver) - first:.2f} s"))
    finally:
        driver.quit()
    headers = (f"{COUNT} pictures, {len(html) / 1e6:.1f} MB", "until drawn", "work until drawn", "work of all cases")
    print(tabulate(rows, headers, tablefmt="plain"))


if __name__ == "__main__":
    main()
