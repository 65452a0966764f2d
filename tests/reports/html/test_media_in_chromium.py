"""Images, sounds and documents on the page: drawn as pixels, offline, under the policy of any other page."""

from pathlib import Path
from typing import Any

import pytest
from pages import Browser, case, head_of, page_run, report, suite
from pictures import PDF, SVG, WAV, in_memory, png

from pytest_llmeval import Media
from pytest_llmeval.core import MediaForm, form_of

SCRIPT = b"<script>window.harmed = true</script>"
COUNT = 200
FACES = [png(16, 12, (0, number, 255 - number), SCRIPT) for number in range(COUNT)]

pytestmark = pytest.mark.usefixtures(in_memory.__name__)


def written(folder: Path) -> tuple[Path, str]:
    """Write a page of two hundred pictures, an SVG, a document and a picture that is none."""
    (folder / "manual of us.pdf").write_bytes(PDF)
    forms = [form_of(Media(data=face)) for face in FACES]
    (folder / "drawn.svg").write_bytes(SVG)
    document, drawn = (form_of(Media.from_path(folder / name)) for name in ("manual of us.pdf", "drawn.svg"))
    broken = form_of(Media(data=png(4, 4)[:40] + bytes(40)))
    cases: list[dict[str, Any]] = [
        case(f"c{number}", "failed", input={"image": form}, expected=forms[number - 1], prediction=form)
        for number, form in enumerate(forms)
    ]
    odd = [drawn, document, broken, {**forms[0], "sha256": "0" * 64}]
    cases.append(case("odd", "failed", input=odd, prediction={"answer": forms[5], "note": "seen"}))
    page = page_run("", report(suite(cases))).page(folder=folder)
    path = folder / "page.html"
    path.write_text(page.html, encoding="utf-8")
    return path, page.html


@pytest.mark.parametrize("width", [1280, 390])
def test_pictures_are_drawn_side_by_side_with_their_difference_and_contents_do_nothing(
    browser: Browser, tmp_path: Path, width: int
) -> None:
    path, html = written(tmp_path)
    assert "img-src" not in html
    assert len(head_of(html)["media"]) == COUNT + 3
    browser.driver.set_window_size(width, 900)
    browser.open(path, "view=cases&case=0/c7")
    browser.until("[...document.querySelectorAll('canvas')].filter((each) => each.dataset.drawn).length === 4")
    sizes = browser.run("return [...document.querySelectorAll('canvas')].map((each) => [each.width, each.height])")
    assert sizes == [[16, 12]] * 4
    corner = "[...each.getContext('2d').getImageData(0, 0, 1, 1).data]"
    corners = browser.run(f"return [...document.querySelectorAll('canvas')].map((each) => {corner})")
    assert corners == [[0, 7, 248, 255], [0, 6, 249, 255], [0, 7, 248, 255], [0, 1, 1, 255]]
    line = f"image/png, 16 x 12, {len(FACES[7])} B, sha256 {form_of(Media(data=FACES[7]))['sha256'][:12]}"
    assert browser.texts(".medium p")[0] == line
    assert browser.texts("pre.diff") == []
    browser.go("view=cases&case=0/odd")
    browser.until("document.querySelector('.medium a')")
    assert (
        browser.run("return document.querySelector('.medium a').getAttribute('href')") == "manual%20of%20us.pdf#page=1"
    )
    assert browser.run("return [...document.querySelectorAll('.medium a')].length") == 1
    assert any(text.startswith("image/svg+xml") and text.endswith(", drawn.svg") for text in browser.texts(".medium p"))
    browser.until("document.querySelectorAll('canvas[data-drawn]').length >= 1")
    assert browser.run("return window.harmed === undefined && document.querySelectorAll('svg script, img').length") == 0
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
    assert [text for text in browser.complaints() if "Content Security Policy" in text] == []


def test_lists_say_what_a_picture_is_and_the_answer_of_the_run_before_is_drawn(
    browser: Browser, tmp_path: Path
) -> None:
    now, before = (form_of(Media(data=face)) for face in FACES[:2])
    old, new = (report(suite([case("a", "failed", prediction=form)])) for form in (before, now))
    runs = [page_run("new", new, pairs=[1]), page_run("old", old)]
    path = tmp_path / "page.html"
    path.write_text(runs[0].page(*runs[1:]).html, encoding="utf-8")
    browser.driver.set_window_size(1280, 900)
    browser.open(path, "view=cases")
    browser.until(f"document.querySelector('main').textContent.includes({MediaForm(now).line!r})")
    browser.go("view=cases&case=0/a")
    browser.until("document.querySelectorAll('canvas[data-drawn]').length === 5")
    assert browser.texts("pre") == []
    assert browser.texts(".medium p")[:2] == [MediaForm(now).line, MediaForm(before).line]


def test_a_sound_plays_and_stops_and_a_broken_one_has_no_button(browser: Browser, tmp_path: Path) -> None:
    sound = form_of(Media.from_audio([0.1] * 80_000, 8000))
    broken = form_of(Media(data=WAV[:40], type="audio/wav"))
    path = tmp_path / "page.html"
    page = page_run("", report(suite([case("a", "failed", input=broken, prediction=sound)]))).page()
    path.write_text(page.html, encoding="utf-8")
    browser.open(path, "view=cases&case=0/a")
    browser.until("document.querySelectorAll('.medium button').length === 2")
    browser.run("document.querySelectorAll('.medium button')[0].click()")
    browser.until("document.querySelectorAll('.medium button').length === 1")
    for label in ("Stop", "Play"):
        browser.find(".medium button").click()
        browser.until(f"document.querySelector('.medium button').textContent === '{label}'")
    assert [text for text in browser.complaints() if "Content Security Policy" in text] == []
