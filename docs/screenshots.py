"""Make the screenshots of the HTML report: ``python docs/screenshots.py``, with chromium and chromedriver."""

import json
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from selenium import webdriver
from selenium.webdriver.common.keys import Keys

IMAGES = Path(__file__).parent / "images"
EXAMPLE = Path(__file__).parents[1] / "example_suites" / "agent_user"
READ = 12
"""Of so many traces, the page has notes."""

CASES = 150
SUPPORT = {
    "billing": (
        (
            "Why was I charged twice in March?",
            "The second charge is a reservation that your bank releases within 5 days.",
        ),
        (
            "Can I get an invoice with my VAT number?",
            "Yes, add it under Settings, Invoices, and we send the invoice again.",
        ),
    ),
    "shipping": (
        ("Do you ship to Norway?", "Yes, shipping to Norway costs 12 euros and takes 4 to 6 days."),
        ("My parcel is late. What now?", "Write to us after 7 days: we ask the carrier and send a new parcel."),
    ),
    "returns": (
        ("How long do refunds take?", "Refunds take up to 30 days after the return has reached us."),
        ("The zip broke after a week.", "Defects are covered for two years: choose defect as the reason."),
    ),
    "account": (
        ("How do I change my address?", "Under Settings, Addresses; open orders keep the old one."),
        ("I lost my second factor.", "Use one of your recovery codes, or let support verify who you are."),
    ),
}
WRONG = {
    "billing": "Please ask your bank about the charge.",
    "shipping": "Shipping takes 4 to 6 days.",
    "returns": "Refunds take up to 14 days.",
    "account": "Please create a new account.",
}
SHARES = {"billing": 0.15, "shipping": 0.04, "returns": 0.05, "account": 0.04}
"""How many answers are wrong before the change that the page is about."""

TALK = "broken-lamp"
"""A conversation one of whose repeats is wrong."""
DESK = """\
import itertools

calls = itertools.count()


def answer(messages):
    asked = messages[-1]["content"].lower()
    if "order" in asked:
        result = {"order": 1042, "status": "delivered", "items": ["lamp", "cable"]}
        call = {"name": "find_order", "arguments": {"customer": "C-77"}, "result": result}
        return {"answer": "Your lamp came on Monday.", "tool_calls": [call]}
    if "refund" in asked and next(calls) == 1:
        call = {"name": "refund", "arguments": {"order": 1042, "amount": 49}, "result": {"ok": True}}
        return {"answer": "Done, I refunded 49 euros.", "tool_calls": [call]}
    if "refund" in asked:
        call = {"name": "quote", "arguments": {"order": 1042}, "result": {"amount": 49}}
        return {"answer": "Shall I refund 49 euros for order 1042?", "tool_calls": [call]}
    return "You are welcome."
"""
ASKED = ("Hello!", "Where is my order?", "It is broken, I want a refund.", "Thank you.")


class Shot(NamedTuple):
    """A screenshot."""

    name: str
    view: str
    width: int
    height: int
    scheme: str = "light"


SHOTS = (
    Shot("html-report", "", 1280, 940),
    Shot("html-report-dark", "", 1280, 940, "dark"),
    Shot("html-report-narrow", "", 390, 940),
    Shot("html-report-transcript", f"view=cases&suite=1&case=1/{TALK}", 1280, 1500),
)


def cases(worse: float) -> list[dict[str, Any]]:
    """Return cases of which more are answered wrongly, by so many in the topic of billing."""
    chance = random.Random(7)
    found = []
    for place in range(CASES):
        topic = list(SUPPORT)[place % 4]
        question, answer = SUPPORT[topic][place // 4 % 2]
        share = SHARES[topic] + (worse if topic == "billing" else 0)
        wrong, variant = (
            chance.random() < share,
            chance.choice((answer, f"Of course. {answer}", answer, answer.lower())),
        )
        found.append(
            {
                "id": f"{topic}-{place:03d}",
                "input": {"question": question, "customer": 4100 + place},
                "expected": answer,
                "prediction": WRONG[topic] if wrong else variant,
                "labels": {"topic": topic, "channel": ("chat", "mail", "phone")[place % 3]},
            }
        )
    return found


def write_page(folder: Path) -> Path:
    """Approve a run, make answers worse, run again, and return the page of that run."""
    suite = {
        "suite": "support",
        "evaluators": [{"text": {"metrics": ["f1", "rougeL"]}}],
        "group_by": ["topic", "channel"],
        "thresholds": {"f1": 0.5},
        "snapshot": {"tolerance": 1},
        "gates": ["f1 >= 0.9", {"metric": "f1", "max_drop": 0.02}, {"metric": "f1", "min": 0.5, "by": "topic"}],
    }
    command = [sys.executable, "-m", "pytest", "-q", "--llmeval", "support.eval.json", "talks.eval.json"]
    page = folder / "page.html"
    talks = {
        "suite": "desk",
        "target": {"python": "desk:answer", "concurrency": 1},
        "repeats": 3,
        "evaluators": [],
        "checks": [{"not_contains": "Done, I refunded", "turn": "each"}],
        "gates": ["pass^1 >= 0.9"],
        "cases": [{"id": TALK, "messages": list(ASKED)}],
    }
    (folder / "desk.py").write_text(DESK, encoding="utf-8")
    (folder / "talks.eval.json").write_text(json.dumps(talks), encoding="utf-8")
    for worse, options in ((0.0, ["--snapshot-update"]), (0.3, ["--llmeval-texts=all", f"--llmeval-report={page}"])):
        text = json.dumps({**suite, "cases": cases(worse)}, indent=1)
        (folder / "support.eval.json").write_text(text, encoding="utf-8")
        subprocess.run([*command, *options], cwd=folder, stdout=subprocess.DEVNULL, check=False)
    return page


def write_review(folder: Path) -> Path:
    """Return the page of a review of the agent's traces."""
    command = [sys.executable, "-m", "pytest_llmeval", "review", str(EXAMPLE / "tickets.otlp.jsonl"), "--modes"]
    options = ["--seed", "1", "--annotator", "Ana", "-o", "review.html"]
    subprocess.run([*command, *options], cwd=folder, stdout=subprocess.DEVNULL, check=True)
    return folder / "review.html"


def take_review(driver: webdriver.Chrome, page: Path) -> None:
    """Save screenshots of notes and failure modes, which are written by the keys of the page."""
    written = (EXAMPLE / "modes.jsonl").read_text(encoding="utf-8").splitlines()
    known: list[str] = []
    shot = Shot("review-modes", "", 1280, 800)
    take(driver, page, shot)
    for line in written[:READ]:
        note = json.loads(line)
        modes = note.get("modes", [])
        keys = ["n", *note["note"], Keys.ENTER] if "note" in note else []
        for mode in modes:
            keys += [str(known.index(mode) + 1)] if mode in known else ["m", *mode, Keys.ENTER]
        known += [mode for mode in modes if mode not in known]
        last = line == written[READ - 1]  # stays on the screen
        webdriver.ActionChains(driver).send_keys(*keys, *([] if last else [Keys.ENTER if keys else "y"])).perform()
    driver.save_screenshot(str(IMAGES / f"{shot.name}.png"))
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.save_screenshot(str(IMAGES / f"{shot.name}-narrow.png"))


def take(driver: webdriver.Chrome, page: Path, shot: Shot) -> None:
    """Save one screenshot."""
    size = {"width": shot.width, "height": shot.height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = [{"name": "prefers-color-scheme", "value": shot.scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
    driver.get("about:blank")
    driver.get(f"{page.as_uri()}#{shot.view}")
    driver.execute_async_script(
        "const look = (done) => document.body.dataset.ready ? done() : setTimeout(look, 20, done); look(arguments[0])"
    )
    driver.save_screenshot(str(IMAGES / f"{shot.name}.png"))


def main() -> None:
    """Make all screenshots."""
    IMAGES.mkdir(exist_ok=True)
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for each in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars", "--lang=en-US"):
        options.add_argument(each)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver") or ""))
    try:
        with tempfile.TemporaryDirectory() as folder:
            page = write_page(Path(folder))
            for shot in SHOTS:
                take(driver, page, shot)
            take_review(driver, write_review(Path(folder)))
    finally:
        driver.quit()


if __name__ == "__main__":
    main()
