"""The review page: one file that opens from disk, without network; and the files to which a served one is saved."""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from msgspec import Struct, to_builtins

from pytest_llmeval.core.codec import decode
from pytest_llmeval.core.errors import SuiteError
from pytest_llmeval.data.files.writing import rewrite
from pytest_llmeval.data.formats.human_labels import SCALES, HumanLabel, label_line, read_labels
from pytest_llmeval.reports.html.page import rendered_page
from pytest_llmeval.services.loopback import RefusedError
from pytest_llmeval.services.secrets import masked, secret_values
from pytest_llmeval.workbench.reviews.items import Review, ReviewItem
from pytest_llmeval.workbench.reviews.modes import (
    ModeBook,
    ModeCreated,
    ModeLine,
    ModeNote,
    ModeRenamed,
    ModesMerged,
    ModeSplit,
    add_lines,
    mode_line,
    read_line,
    read_modes,
)


def review_page(
    review: Review, annotator: str = "", *, served: bool = False, book: ModeBook | None = None, run: str = ""
) -> str:
    """Return the page of a review.

    Args:
        review: The answers.
        annotator: Who labels; empty: the page asks.
        served: Whether labels are sent to the server that the page came from, and kept by it.
        book: The failure modes that are known; ``None``: the page asks for labels alone.
        run: When the run began that is reviewed.
    """
    assets = files(__package__) / "assets"
    shared = files("pytest_llmeval.reports.html") / "assets" / "dom.js"
    data = {
        "review": review.id,
        "scale": review.scale,
        "labels": list(SCALES[review.scale]),
        "ask": review.ask,
        "annotator": annotator,
        "served": served,
        "total": review.total,
        "items": [_item(each, modes=book is not None) for each in review.items],
    }
    if book is not None:
        data["modes"] = list(book.names)
        data["proposals"] = [[each.mode, each.text] for each in book.proposals]
        data["notes"] = {"suite": review.suite, "draw": review.draw, "review": review.id, "run": run}
    return rendered_page(
        assets,
        "review.html.jinja",
        "review.css",
        [shared, assets / "labels.js", assets / "modes.js", assets / "review.js"],
        masked(data, secret_values()),
        served=served,
    )


def _item(item: ReviewItem, *, modes: bool) -> dict[str, Any]:
    """Return an answer as the page has it: nothing that it shows tells a system, a judge or a score."""
    question, answer, reference = item.prints
    return {
        "line": {
            "question": question,
            "answer": answer,
            "cases": list(item.cases),
            "reference": reference,
            "probability": item.probability,
            **({"again": item.again} if item.again else {}),
            **({"others": list(item.others)} if item.others else {}),
        },
        **({"notes": {"systems": list(item.systems), "labels": list(item.labels)}} if modes else {}),
        "question": item.question,
        "answer": item.answer,
        "reference": item.reference,
        "more": [[name, text] for name, text in item.more.items()],
    }


class _SentLabel(Struct, frozen=True, forbid_unknown_fields=True):
    item: int
    label: str | int | None
    note: str = ""
    modes: tuple[str, ...] = ()
    at: str = ""


class _SentLabels(Struct, frozen=True, forbid_unknown_fields=True):
    annotator: str
    labels: list[_SentLabel]
    events: list[ModeCreated | ModeRenamed | ModesMerged | ModeSplit] = []


class LabelFile:
    """The labels of a review in a file, beside those of other reviews.

    Args:
        review: What is labelled; a page can only say which of its items it means.
        path: The file, which need not be there yet.
    """

    def __init__(self, review: Review, path: Path) -> None:
        self.review = review
        self.path = path

    def labels(self) -> Sequence[HumanLabel]:
        """Return what the file has.

        Raises:
            SuiteError: It has faults.
        """
        return read_labels([(self.path, str(self.path))]) if self.path.exists() else []

    def read(self, annotator: str) -> str:
        """Return the lines of one person in this review: people do not see those of others.

        Raises:
            RefusedError: The file has faults.
        """
        try:
            labels = self.labels()
        except SuiteError as error:
            raise RefusedError(str(error)) from None
        return "".join(map(label_line, (each for each in labels if self._is_own(each, annotator))))

    def save(self, body: bytes) -> None:
        """Write what a person says, in place of what the person has said before of the same answers.

        Args:
            body: JSON: the annotator, and the labels by number of the item.

        Raises:
            RefusedError: It says something that the page does not, or the file has faults.
            OSError: The file cannot be written; then it is as it was.
        """
        self._write(self._sent(body))

    def _sent(self, body: bytes) -> _SentLabels:
        try:
            sent = decode(body, _SentLabels)
        except (ValueError, RecursionError) as error:
            raise RefusedError(f"found no labels ({error})") from None
        if not sent.annotator.strip():
            raise RefusedError("annotator: found an empty text, expected a name")
        return sent

    def _write(self, sent: _SentLabels) -> None:
        new = {label.subject: label for each in sent.labels for label in [self._label(sent.annotator, each)]}

        def make() -> str:
            others = [each for each in self.labels() if each.subject not in new]
            return "".join(map(label_line, [*others, *new.values()]))

        try:
            rewrite(self.path, make)
        except SuiteError as error:
            raise RefusedError(str(error)) from None

    def _is_own(self, label: HumanLabel, annotator: str) -> bool:
        return label.annotator == annotator and label.review == self.review.id

    def _label(self, annotator: str, sent: _SentLabel) -> HumanLabel:
        if not 0 <= sent.item < len(self.review.items):
            raise RefusedError(f"item: found {sent.item}, expected less than {len(self.review.items)}")
        known = SCALES[self.review.scale]
        if sent.label is not None and (sent.label not in known or isinstance(sent.label, bool)):
            raise RefusedError(f"label: found {sent.label!r}, expected one of {', '.join(map(str, known))}, or null")
        return self.review.label(sent.item, annotator, sent.label, sent.note)


class NoteFile(LabelFile):
    """The labels of a review in one file, and its notes and failure modes in another, to which lines are added.

    Args:
        review: What is labelled.
        path: The file of labels.
        notes: The file of notes, which need not be there yet.
        run: When the run began that is reviewed.
    """

    def __init__(self, review: Review, path: Path, notes: Path, run: str = "") -> None:
        super().__init__(review, path)
        self.notes = notes
        self.run = run

    def book(self) -> ModeBook:
        """Return what the file of notes says.

        Raises:
            SuiteError: It has faults.
        """
        return read_modes([self.notes] if self.notes.exists() else [])

    def read(self, annotator: str) -> str:
        """Return the lines of one person in this review, then those that make, rename, merge and split modes.

        Raises:
            RefusedError: A file has faults.
        """
        try:
            book = self.book()
        except SuiteError as error:
            raise RefusedError(str(error)) from None
        notes = [each for each in book.notes if each.by == annotator and each.review == self.review.id]
        events = [each for each in book.lines if not isinstance(each, ModeNote)]
        return "".join([super().read(annotator), *map(mode_line, [*notes, *events])])

    def _write(self, sent: _SentLabels) -> None:
        noted = [each for each in sent.labels if each.at and (each.label is not None or each.note or each.modes)]
        for each in sent.labels:
            self._label(sent.annotator, each)  # nothing of a request is kept if a part of it is refused
        lines: list[ModeLine] = [
            self.review.note(each.item, sent.annotator, each.at, each.modes, each.note, self.run) for each in noted
        ]
        try:
            add_lines(self.notes, [read_line(to_builtins(each)) for each in (*lines, *sent.events)])
        except (SuiteError, ValueError) as error:
            raise RefusedError(str(error)) from None
        super()._write(sent)
