"""The review page in a real browser: keys, what it keeps, files, people, and texts that would do harm."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from axe_selenium_python import Axe
from pages import Browser, answered, case, lines, review
from pictures import PDF, in_memory, png
from selenium.webdriver.support.ui import WebDriverWait

from pytest_llmeval import Media
from pytest_llmeval.core import MediaForm, form_of
from pytest_llmeval.evaluators import HumanLabel
from pytest_llmeval.workbench.reviews import _command as review_module
from pytest_llmeval.workbench.reviews._command import review_page
from pytest_llmeval.workbench.reviews._items import Review
from pytest_llmeval.workbench.reviews.modes import ModeBook, ModeCreated, ModeProposed, read_modes

STORED_WITHIN = 60
"""Seconds."""

HOSTILE = (
    "</script><script>window.harmed = true</script>",
    "<img src=x onerror='window.harmed = true'>",
    "<iframe srcdoc='<script>parent.harmed=true</script>'></iframe>",
    "</style><base href='https://example.org/'><form action=https://example.org/>",
    "<meta http-equiv=refresh content='0;url=https://example.org/'>",
    "javascript:window.harmed=true",
    "__proto__",
    "{{ 7 * 7 }} ${7 * 7}",
    "a\u202egnp.exe",
    "nul \x00 escape \x1b[31m",
)


@pytest.fixture
def found(tmp_path: Path) -> Review:
    return review(tmp_path, *(answered(place, [place / 10]) for place in range(5)), seed=1)


def opened(browser: Browser, folder: Path, found: Review, annotator: str = "") -> Path:
    """Open the page of a review that this browser has not seen."""
    path = folder / "review.html"
    path.write_text(review_page(found, annotator), encoding="utf-8", errors="backslashreplace")
    browser.open(path)

    reload(browser, "#count" if annotator else "#name", before="localStorage.clear()")
    return path


def reload(browser: Browser, selector: str, before: str = "") -> None:
    """Load the page again until it shows an element: what one process of Chromium stored, another may read late.

    Args:
        browser: With the page.
        selector: Of an element of the page as it has to be.
        before: A script that is run before each time.
    """

    def is_there(_: object) -> bool:
        browser.run(before)
        browser.driver.refresh()
        browser.until("document.body.dataset.ready === 'true'")
        return bool(browser.texts(selector))

    WebDriverWait(browser.driver, STORED_WITHIN, 0.02).until(is_there)


def exported(browser: Browser, folder: Path, name: str = "labels.jsonl", button: str = "#export") -> Path:
    """Export the labels, and return the file once it is there."""
    path = folder / name
    path.unlink(missing_ok=True)
    settings = {"behavior": "allow", "downloadPath": str(folder)}
    browser.driver.execute_cdp_cmd("Browser.setDownloadBehavior", settings)  # type: ignore[no-untyped-call]
    browser.find(button).click()
    WebDriverWait(browser.driver, 60, 0.02).until(lambda _: path.exists())
    return path


def said(path: Path) -> list[tuple[str, Any, str]]:
    return [(each.annotator, each.label, each.note) for each in HumanLabel.read_all([(path, path.name)])]


def name(browser: Browser, annotator: str) -> None:
    assert "wait for your labels, which are stored under your name" in browser.find("#intro").text
    assert browser.texts(".facts dt") == ["How many", "How long", "Scale", "Keys"]
    browser.find("#name").send_keys(annotator)
    browser.press("ENTER")


def test_three_labels_by_keys_outlive_a_reload_and_are_exported(
    browser: Browser, tmp_path: Path, found: Review
) -> None:
    opened(browser, tmp_path, found)
    name(browser, "Ana")
    browser.press("4")
    browser.press("c")
    browser.press(*"why 5?")  # keys in a note are no labels
    browser.press("ESCAPE")
    browser.press("2")
    browser.press("s")
    assert browser.texts("#count") == ["Ana: 3 of 5 done"]
    reload(browser, "progress[value='3']")
    assert browser.texts("h1") == ["Answer 4 of 5"]
    browser.press("5")
    browser.press("b", "b", "b")
    assert browser.texts("#text-answer") == [found.items[1].answer]
    assert browser.run("return document.querySelector('#note').value") == "why 5?"
    assert browser.texts("[aria-pressed='true']") == ["2"]
    labels = exported(browser, tmp_path)
    assert said(labels) == [("Ana", 4, ""), ("Ana", 2, "why 5?"), ("Ana", None, ""), ("Ana", 5, "")]
    written = [found.label(place, who, label, note) for place, (who, label, note) in enumerate(said(labels))]
    assert HumanLabel.read_all([(labels, "")]) == written
    assert list(map(json.loads, labels.read_text(encoding="utf-8").splitlines())) == [
        json.loads(each.line()) for each in written
    ]
    assert browser.complaints() == []


def test_an_exported_file_goes_on_in_another_browser(browser: Browser, tmp_path: Path, found: Review) -> None:
    labels = lines(tmp_path / "earlier.jsonl", [found.label(place, "Ana", 3) for place in range(3)])
    with labels.open("a", encoding="utf-8") as file:
        file.write('{"question": "of another review"}\nno JSON\n')
    opened(browser, tmp_path, found)
    browser.find("#load").send_keys(str(labels))
    browser.until("document.querySelector('#count')")
    assert browser.texts("#count") == ["Ana: 3 of 5 done"]
    assert browser.texts(".status") == ["3 labels loaded, 2 lines are not of this review."]
    assert browser.texts("h1") == ["Answer 4 of 5"]


def test_a_second_person_starts_anew_and_sees_nothing_of_the_first(
    browser: Browser, tmp_path: Path, found: Review
) -> None:
    opened(browser, tmp_path, found)
    name(browser, "Ana")
    browser.press("1")
    browser.find("#change").click()
    name(browser, "__proto__")
    assert browser.texts("#count") == ["__proto__: 0 of 5 done"]
    assert browser.texts("[aria-pressed='true']") == []
    browser.press("5")
    assert said(exported(browser, tmp_path)) == [("Ana", 1, ""), ("__proto__", 5, "")]


def test_yes_and_no_have_their_keys_and_the_end_says_what_is_left(browser: Browser, tmp_path: Path) -> None:
    found = review(tmp_path, *(answered(place, [place % 2]) for place in range(3)))
    opened(browser, tmp_path, found, "Ana")
    assert browser.texts("[data-label]") == ["Yesy", "Non"]
    browser.press("y", "n", "s")
    assert browser.texts("#end") == ["Every answer is done. You skipped 1."]
    browser.press("ARROW_LEFT")
    browser.find("[data-label='yes']").click()
    assert said(exported(browser, tmp_path)) == [("Ana", "yes", ""), ("Ana", "no", ""), ("Ana", "yes", "")]


def test_modes_are_accepted_split_and_merged_in_the_page_and_exported(browser: Browser, tmp_path: Path) -> None:
    found = review(tmp_path, *(answered(place, [place % 2]) for place in range(3)), seed=1, scale="yesno", ask="Good?")
    at = "2026-11-26T10:00:00.000Z"
    book = ModeBook([ModeCreated("ben", at, "rude"), ModeProposed("judge m", at, "late", "More than an hour")])
    path = tmp_path / "review.html"
    path.write_text(review_page(found, "Ana", book=book, run="2026-11-20"), encoding="utf-8")
    browser.open(path)  # of a question of its own, of which no page before has stored anything

    def act(mode: str, form: int, script: str) -> None:
        """Fill in and send a form of a mode, of those in its details."""
        place = "document.querySelector(`[data-manage='${arguments[0]}']`).querySelectorAll('form')[arguments[1]]"
        browser.run(f"const form = {place}; {script}; form.requestSubmit()", mode, form)
        browser.settle()

    browser.press("1", "ENTER", "c", *"two hours", "ENTER", "1", "ENTER", "y")
    browser.press("ARROW_LEFT", "e")
    assert browser.texts("h1") == ["Failure modes"]
    browser.find(".proposal button").click()
    act(
        "rude",
        2,
        "form.querySelectorAll('[type=checkbox]')[1].click(); form.querySelector('[type=text]').value = 'slow'",
    )
    assert browser.texts("summary") == ["rude: 1 here", "late: 0 here", "slow: 1 here"]
    act("slow", 1, "form.querySelector('select').value = 'late'")
    browser.press("e", "ARROW_LEFT")
    assert browser.texts("[data-mode][aria-pressed='true']") == ["late2"]
    reload(browser, "#end")
    notes = read_modes([exported(browser, tmp_path, "modes.jsonl", "#export-notes")])
    assert (notes.names, notes.proposals) == (["rude", "late"], [])
    assert [(each.by, each.note, each.modes, each.run) for each in notes.notes] == [
        ("Ana", "", ("rude",), "2026-11-20"),
        ("Ana", "two hours", ("late",), "2026-11-20"),
        ("Ana", "", (), "2026-11-20"),
    ]
    assert browser.complaints() == []


def test_hostile_texts_are_shown_and_do_nothing(browser: Browser, tmp_path: Path) -> None:
    cases = [
        answered(place, [0.5], texts={"question": text, "answer": text, "reference": text, text: text})
        for place, text in enumerate(HOSTILE)
    ]
    found = review(tmp_path, *cases, ask=HOSTILE[0])
    opened(browser, tmp_path, found, HOSTILE[1])
    seen = []
    for item in found.items:
        seen.append(browser.texts("#text-answer")[0])
        assert browser.texts("summary") == [browser.texts("#text-Question")[0]]
        assert browser.run("return window.harmed") is None
        assert browser.run("return document.querySelectorAll('img, iframe, form, base').length") == 0
        assert browser.run("return [document.scripts.length, document.styleSheets.length]") == [2, 1]
        assert item.answer[:1] == seen[-1][:1]
        browser.press("ARROW_RIGHT")
    assert sorted(seen) == sorted(map(_visible, HOSTILE))
    assert browser.complaints() == []


def _visible(text: str) -> str:
    return re.sub("[\u202e\x00\x1b]", lambda match: f"\\u{ord(match[0]):04x}", text)


def test_nothing_leaves_the_page(browser: Browser, tmp_path: Path, found: Review) -> None:
    opened(browser, tmp_path, found, "Ana")
    tried = browser.driver.execute_async_script(
        "const done = arguments[0]; fetch('https://example.org/').then(() => done('sent'), () => done('refused'))"
    )
    assert tried == "refused"
    assert any("connect-src" in each or "default-src" in each for each in browser.complaints())


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_a_phone_and_assistive_software(
    browser: Browser, tmp_path: Path, found: Review, scheme: str
) -> None:
    emulate = browser.driver.execute_cdp_cmd
    emulate("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    emulate(
        "Emulation.setDeviceMetricsOverride", {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    )
    try:
        opened(browser, tmp_path, found)
        for annotator in ("Ana", ""):  # an answer with its labels, then who labels
            if annotator:
                name(browser, annotator)
                browser.press("4", "b")
            else:
                browser.find("#change").click()
            assert browser.run("return document.documentElement.scrollWidth <= document.documentElement.clientWidth")
            axe = Axe(browser.driver)
            axe.inject()
            broken = axe.run(options={"resultTypes": ["violations"]})["violations"]
            assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in broken] == []
    finally:
        emulate("Emulation.clearDeviceMetricsOverride", {})
        emulate("Emulation.setEmulatedMedia", {"features": []})


def scripts() -> Sequence[Path]:
    return sorted((Path(review_module.__file__).parent / "assets").iterdir())


@pytest.mark.parametrize("path", scripts(), ids=lambda path: path.name)
def test_no_part_makes_markup_of_text_or_names_an_address(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    forbidden = r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function|https?:|@import|url\("
    assert re.findall(forbidden, text) == []


@pytest.mark.usefixtures(in_memory.__name__)
def test_pictures_are_shown_below_their_texts_with_their_difference(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "manual.pdf").write_bytes(PDF)
    red, green = (form_of(Media(data=png(16, 12, color))) for color in ((255, 0, 0), (0, 255, 0)))
    document = form_of(Media.from_path(tmp_path / "manual.pdf"))
    asked = {"question": "Draw it as in the manual.", "manual": document}
    path = tmp_path / "review.html"
    found = review(tmp_path, case("a", "passed", input=asked, expected=red, prediction=green))
    path.write_text(review_page(found, "Ana", folder=tmp_path), encoding="utf-8")
    assert "img-src" not in path.read_text(encoding="utf-8")
    browser.open(path)
    reload(browser, "#count", before="localStorage.clear()")
    browser.until("document.querySelectorAll('canvas[data-drawn]').length === 3")
    corner = "[...each.getContext('2d').getImageData(0, 0, 1, 1).data]"
    corners = browser.run(f"return [...document.querySelectorAll('canvas')].map((each) => {corner})")
    assert corners == [[255, 0, 0, 255], [0, 255, 0, 255], [255, 255, 0, 255]]
    assert browser.texts("#media-answer p") == [MediaForm(green).line]
    assert browser.texts("#text-answer") == []
    assert browser.run("return document.querySelector('.medium a').getAttribute('href')") == "manual.pdf#page=1"
    assert browser.complaints() == []
