"""The file that a served review keeps, and the page that sends to it."""

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pages import Browser, answered, labels_of, lines, review

from pytest_llmeval.evaluators import HumanLabel
from pytest_llmeval.workbench.reviews._command import LabelFile, NoteFile, review_page
from pytest_llmeval.workbench.reviews._items import Review
from pytest_llmeval.workbench.reviews._loopback import LoopbackServer, RefusedError
from pytest_llmeval.workbench.reviews.modes import read_modes

try:
    import resource
except ImportError:  # on Windows
    resource = None  # type: ignore[assignment]


@pytest.fixture
def found(tmp_path: Path) -> Review:
    return review(tmp_path, *(answered(place, [place / 10]) for place in range(5)), seed=1)


def sent(annotator: str, *labels: Any) -> bytes:
    given = [{"item": place, "label": label} for place, label in enumerate(labels)]
    return json.dumps({"annotator": annotator, "labels": given}).encode()


def test_what_a_person_says_replaces_what_the_person_said_of_the_same_answer_and_nothing_else(
    tmp_path: Path, found: Review
) -> None:
    path = tmp_path / "labels.jsonl"
    other = review(tmp_path, answered(7, [0.5]))
    lines(path, labels_of(other, "ana", lambda _: 1))
    kept = LabelFile(found, path)
    kept.save(sent("ben", 2))
    kept.save(sent("ana", 3, None))
    kept.save(sent("ana", 4))
    assert [(each.annotator, each.label, each.review) for each in HumanLabel.read_all([(path, "")])] == [
        ("ana", 1, other.id),
        ("ben", 2, found.id),
        ("ana", None, found.id),  # of another window
        ("ana", 4, found.id),
    ]
    assert [json.loads(line)["label"] for line in kept.read("ana").splitlines()] == [None, 4]
    assert not list(tmp_path.glob(".llmeval*"))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"no JSON", "the labels cannot be read"),
        (b"[" * 100_000, "the labels cannot be read"),
        (b'{"annotator": "ana"}', "the labels cannot be read"),
        (b'{"annotator": "ana", "labels": [], "path": "/etc/passwd"}', "the labels cannot be read"),
        (sent(" ", 1), "annotator: found an empty text"),
        (sent("ana", 9), "label: found 9, expected one of 1, 2, 3, 4, 5, or null"),
        (sent("ana", "yes"), "label: found 'yes'"),
        (sent("ana", *[1] * 6), "item: found 5, expected less than 5"),
        (b'{"annotator": "ana", "labels": [{"item": -1, "label": 1}]}', "item: found -1"),
    ],
)
def test_what_the_page_does_not_send_is_refused(tmp_path: Path, found: Review, body: bytes, message: str) -> None:
    path = tmp_path / "labels.jsonl"
    with pytest.raises(RefusedError, match=message):
        LabelFile(found, path).save(body)
    assert not path.exists()


def test_of_a_request_that_is_refused_no_note_is_kept(tmp_path: Path, found: Review) -> None:
    kept = NoteFile(found, tmp_path / "labels.jsonl", tmp_path / "modes.jsonl")
    noted = {"item": 0, "label": 2, "note": "rude", "modes": ["rude"], "at": "2026-11-26T10:00:00.000Z"}
    rename = {"event": "rename", "by": "ana", "at": "2026-11-26T10:00:00.000Z", "mode": "rude", "name": " "}
    for labels, events in (([noted, {**noted, "item": 9}], []), ([{**noted, "at": "now"}], []), ([noted], [rename])):
        with pytest.raises(RefusedError):
            kept.save(json.dumps({"annotator": "ana", "labels": labels, "events": events}).encode())
    assert list(tmp_path.glob("*.jsonl")) == []
    kept.save(json.dumps({"annotator": "ana", "labels": [noted]}).encode())
    assert [json.loads(line)["note"] for line in kept.read("ana").splitlines()] == ["rude", "rude"]
    assert kept.read("ben") == ""
    kept.notes.write_text("mine\n", encoding="utf-8")
    with pytest.raises(RefusedError):
        kept.save(json.dumps({"annotator": "ana", "labels": [noted]}).encode())
    assert kept.notes.read_text(encoding="utf-8") == "mine\n"


def test_a_file_with_faults_is_not_written_over(tmp_path: Path, found: Review) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text("mine\n", encoding="utf-8")
    with pytest.raises(RefusedError):
        LabelFile(found, path).save(sent("ana", 1))
    with pytest.raises(RefusedError):
        LabelFile(found, path).read("ana")
    assert path.read_text(encoding="utf-8") == "mine\n"


@contextmanager
def serving(page: str, kept: LabelFile) -> Iterator[LoopbackServer]:
    with LoopbackServer(page, kept.read, kept.save) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield running
        finally:
            running.shutdown()
            thread.join()


@pytest.fixture
def server(tmp_path: Path, found: Review) -> Iterator[LoopbackServer]:
    with serving(review_page(found, served=True), LabelFile(found, tmp_path / "labels.jsonl")) as running:
        yield running


def opened(browser: Browser, server: LoopbackServer, annotator: str) -> None:
    browser.driver.get(server.address)
    browser.until("document.body.dataset.ready === 'true'")
    browser.until("document.querySelector('.status').textContent !== 'Saving.'")  # what is saved is kept again
    browser.run("localStorage.clear()")
    browser.driver.get(server.address)
    browser.until("document.body.dataset.ready === 'true'")
    browser.find("#name").send_keys(annotator)
    browser.press("ENTER")
    browser.until("document.querySelector('#count')")


def test_labels_are_saved_as_they_are_given_and_found_again(
    browser: Browser, server: LoopbackServer, found: Review, tmp_path: Path
) -> None:
    opened(browser, server, "Ana")
    browser.press("4", "s")
    browser.until("document.querySelector('.status').textContent === 'Saved.'")
    browser.press("2")
    browser.until("document.querySelector('.status').textContent === 'Saved.'")
    opened(browser, server, "Ana")  # the browser has forgotten, the file has not
    assert browser.texts("#count") == ["Ana: 3 of 5 done"]
    assert browser.texts("h1") == ["Answer 4 of 5"]
    opened(browser, server, "Ben")
    assert browser.texts("#count") == ["Ben: 0 of 5 done"]
    labels = HumanLabel.read_all([(tmp_path / "labels.jsonl", "")])
    assert labels == [found.label(place, "Ana", said) for place, said in enumerate([4, None, 2])]
    assert browser.complaints() == []


def test_a_label_that_is_not_saved_says_so_and_stays(browser: Browser, server: LoopbackServer, tmp_path: Path) -> None:
    opened(browser, server, "Ana")
    (tmp_path / "labels.jsonl").write_text("mine\n", encoding="utf-8")
    browser.press("4")
    browser.until("document.querySelector('.status.wrong')")
    assert browser.texts(".status")[0].startswith("Not saved: ")
    assert browser.texts("#count") == ["Ana: 1 of 5 done"]
    (tmp_path / "labels.jsonl").unlink()
    browser.press("5")
    browser.until("document.querySelector('.status').textContent === 'Saved.'")
    assert [each.label for each in HumanLabel.read_all([(tmp_path / "labels.jsonl", "")])] == [4, 5]
    assert all("/labels" in each for each in browser.complaints())  # read here: the next test has the same browser


@pytest.mark.release
@pytest.mark.skipif(resource is None, reason="needs limits of processes")
def test_a_hundred_notes_by_keyboard_in_two_windows_over_a_full_disk_and_a_reload(
    browser: Browser, tmp_path: Path
) -> None:
    found = review(tmp_path, *(answered(place, [place % 2]) for place in range(100)), seed=1, scale="yesno")
    kept = NoteFile(found, tmp_path / "labels.jsonl", tmp_path / "modes.jsonl", "2026-11-20T11:42:23+00:00")
    with serving(review_page(found, served=True, book=kept.book()), kept) as server:
        opened(browser, server, "Ana")
        browser.press("n", *"two weeks?", "ENTER", "m", *"late", "ENTER", "ENTER")
        browser.press("n", *"no hello", "ENTER", "m", *"rude", "ENTER", "1", "ENTER")
        browser.until("document.querySelector('.status').textContent === 'Saved.'")  # the second window continues
        driver = browser.driver
        first = driver.current_window_handle
        driver.switch_to.new_window("tab")
        driver.get(server.address)
        browser.until("document.querySelector('h1')?.textContent === 'Answer 3 of 100'")
        browser.press(*["y"] * 24, *["n", *"y1", "ENTER", "2", "ENTER"] * 24)
        browser.until("document.querySelector('.status').textContent === 'Saved.'")
        second = driver.current_window_handle
        driver.switch_to.window(first)
        browser.press(*["ARROW_RIGHT"] * 48, *["y"] * 48, *["n", *"last but one", "ENTER"])
        browser.until("document.querySelector('.status').textContent === 'Saved.'")  # or it takes the mode along
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))  # as a full disk, no file grows
        try:
            browser.press("1", "ENTER")
            browser.until("document.querySelector('.status.wrong')")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert "Labels stay in this page" in browser.texts(".status")[0]
        browser.press("n", *"last", "ENTER", "ENTER")
        browser.until("document.querySelector('.status').textContent === 'Saved.'")
        browser.press("e", *["TAB"], "ENTER", "TAB", "END", *" reply", "ENTER")  # the first mode, and its new name
        browser.until("document.querySelector('.status').textContent === 'Saved.'")
        driver.switch_to.window(second)
        driver.close()
        driver.switch_to.window(first)
        opened(browser, server, "Ana")  # the browser has forgotten, the files have not
        assert browser.texts("#count") == ["Ana: 100 of 100 done"]
        browser.press("ARROW_LEFT", "ARROW_LEFT")
        assert browser.run("return document.querySelector('#note').value") == "last but one"
        assert browser.texts("[data-mode][aria-pressed='true']") == ["late reply1"]
    book = read_modes([kept.notes])
    said = Counter((each.note, each.modes) for each in book.notes)
    assert said == {
        ("two weeks?", ("late reply",)): 1,
        ("no hello", ("rude", "late reply")): 1,
        ("", ()): 72,
        ("y1", ("rude",)): 24,
        ("last but one", ("late reply",)): 1,
        ("last", ()): 1,
    }
    assert {each.run for each in book.notes} == {"2026-11-20T11:42:23+00:00"}
    assert Counter(each.label for each in kept.labels()) == {"yes": 72, "no": 28}
