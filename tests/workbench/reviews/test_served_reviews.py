"""The file that a served review keeps, and the page that sends to it."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pages import Browser, answered, labels_of, lines, review

from pytest_llmeval.data.formats.human_labels import read_labels
from pytest_llmeval.services.loopback import LoopbackServer, RefusedError
from pytest_llmeval.workbench.reviews.items import LabelFile, Review
from pytest_llmeval.workbench.reviews.page import review_page


@pytest.fixture
def found(tmp_path: Path) -> Review:
    return review(tmp_path, *(answered(place, [place / 10]) for place in range(5)), seed=1)


def sent(annotator: str, *labels: Any) -> bytes:
    given = [{"item": place, "label": label} for place, label in enumerate(labels)]
    return json.dumps({"annotator": annotator, "labels": given}).encode()


def test_what_a_person_says_replaces_what_the_person_said_and_nothing_else(tmp_path: Path, found: Review) -> None:
    path = tmp_path / "labels.jsonl"
    other = review(tmp_path, answered(7, [0.5]))
    lines(path, labels_of(other, "ana", lambda _: 1))
    kept = LabelFile(found, path)
    kept.save(sent("ben", 2))
    kept.save(sent("ana", 3, None))
    kept.save(sent("ana", 4))
    assert [(each.annotator, each.label, each.review) for each in read_labels([(path, "")])] == [
        ("ana", 1, other.id),
        ("ben", 2, found.id),
        ("ana", 4, found.id),
    ]
    assert [json.loads(line)["label"] for line in kept.read("ana").splitlines()] == [4]
    assert not list(tmp_path.glob(".llmeval*"))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"no JSON", "found no labels"),
        (b"[" * 100_000, "found no labels"),
        (b'{"annotator": "ana"}', "found no labels"),
        (b'{"annotator": "ana", "labels": [], "path": "/etc/passwd"}', "found no labels"),
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


def test_a_file_with_faults_is_not_written_over(tmp_path: Path, found: Review) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text("mine\n", encoding="utf-8")
    with pytest.raises(RefusedError):
        LabelFile(found, path).save(sent("ana", 1))
    with pytest.raises(RefusedError):
        LabelFile(found, path).read("ana")
    assert path.read_text(encoding="utf-8") == "mine\n"


@pytest.fixture
def server(tmp_path: Path, found: Review) -> Iterator[LoopbackServer]:
    kept = LabelFile(found, tmp_path / "labels.jsonl")
    with LoopbackServer(review_page(found, served=True), kept.read, kept.save) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def opened(browser: Browser, server: LoopbackServer, annotator: str) -> None:
    browser.driver.get(server.address)
    browser.until("document.body.dataset.ready === 'true'")
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
    labels = read_labels([(tmp_path / "labels.jsonl", "")])
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
    assert [each.label for each in read_labels([(tmp_path / "labels.jsonl", "")])] == [4, 5]
