"""The command ``llmeval review``."""

import json
import math
import shlex
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from typing import Any, get_args

from msgspec import Struct, to_builtins

from pytest_llmeval.cli import OPTIONS, CommandResult, NumberArgument, say
from pytest_llmeval.core import (
    LlmevalError,
    SuiteError,
    counted,
    decode,
    listed,
    number,
)
from pytest_llmeval.data import OutputFile
from pytest_llmeval.evaluators import HumanLabel, HumanLabels, JudgeAgreement
from pytest_llmeval.reports import PageMedia, RunReport, SuiteReport, rendered_page
from pytest_llmeval.services import Secrets
from pytest_llmeval.workbench._console import refuse_input
from pytest_llmeval.workbench.reviews._items import FAILED, Review, ReviewItem, read_answers, review_items, review_of
from pytest_llmeval.workbench.reviews._loopback import LoopbackServer, RefusedError
from pytest_llmeval.workbench.reviews.modes import (
    MODES_FILE,
    Draw,
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
    review: Review,
    annotator: str = "",
    *,
    served: bool = False,
    book: ModeBook | None = None,
    run: str = "",
    folder: Path | None = None,
) -> str:
    """The HTML page on which people label the answers of a review.

    Args:
        review: The answers.
        annotator: Who labels; empty: the page asks.
        served: Whether labels are sent to the server that the page came from, and kept by it.
        book: The failure modes that are known; ``None``: the page asks for labels alone.
        run: When the run began that is reviewed.
        folder: Of the page, from which large images, sounds and documents are linked; ``None`` links none.
    """
    media = PageMedia((item.media for item in review.items), folder)
    assets = files("pytest_llmeval.workbench.reviews") / "assets"
    shared = [files("pytest_llmeval.reports.html") / "assets" / name for name in ("dom.js", "media.js")]
    data = {
        "review": review.id,
        "scale": review.scale,
        "labels": list(HumanLabel.labels_of(review.scale)),
        "ask": review.ask,
        "annotator": annotator,
        "served": served,
        "total": review.total,
        "items": [_item(item, modes=book is not None) for item in review.items],
        "media": media.places,
    }
    if book is not None:
        data["modes"] = list(book.names)
        data["proposals"] = [[proposal.mode, proposal.text] for proposal in book.proposals]
        data["notes"] = {"suite": review.suite, "draw": review.draw, "review": review.id, "run": run}
    return rendered_page(
        assets,
        "review.html.jinja",
        "review.css",
        [*shared, assets / "labels.js", assets / "modes.js", assets / "review.js"],
        Secrets.of_variables().masked(data),
        served=served,
        pieces=media.embedded,
    )


def _item(item: ReviewItem, *, modes: bool) -> dict[str, Any]:
    """An answer as the review page has it, without anything that reveals system, judge or score."""
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
        "media": item.media,
        "more": [[name, text] for name, text in item.more.items()],
    }


class _SentLabel(Struct, frozen=True, forbid_unknown_fields=True):
    """The label or note on one answer, as the review page sends it."""

    item: int
    label: str | int | None
    note: str = ""
    modes: tuple[str, ...] = ()
    at: str = ""


class _SentLabels(Struct, frozen=True, forbid_unknown_fields=True):
    """The labels of a reviewer and changes of failure modes, as the review page sends them."""

    annotator: str
    labels: list[_SentLabel]
    events: list[ModeCreated | ModeRenamed | ModesMerged | ModeSplit] = []


@contextmanager
def _refusing(*faults: type[Exception]) -> Iterator[None]:
    """Refuse a request of the review page if the label file or the sent labels have faults."""
    try:
        yield
    except faults as error:
        raise RefusedError(str(error)) from None


class LabelFile:
    """The file of human labels of a review, which may have labels of other reviews.

    Args:
        review: What is labelled; a page can only say which of its items it means.
        path: The file, which need not be there yet.
    """

    def __init__(self, review: Review, path: Path) -> None:
        self.review = review
        self.path = path

    def labels(self) -> Sequence[HumanLabel]:
        """The content of the file.

        Raises:
            SuiteError: It has faults.
        """
        return HumanLabel.read_all([(self.path, str(self.path))]) if self.path.exists() else []

    def read(self, annotator: str) -> str:
        """Return the lines of one person in this review: people do not see those of others.

        Raises:
            RefusedError: The file has faults.
        """
        with _refusing(SuiteError):
            labels = self.labels()
        own = [label for label in labels if (label.annotator, label.review) == (annotator, self.review.id)]
        return "".join(map(HumanLabel.line, own))

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
            raise RefusedError(f"the labels cannot be read ({error})") from None
        if not sent.annotator.strip():
            raise RefusedError("annotator: found an empty text, expected a name")
        return sent

    def _write(self, sent: _SentLabels) -> None:
        new = {
            label.subject: label for sent_label in sent.labels for label in [self._label(sent.annotator, sent_label)]
        }

        def make() -> str:
            others = [label for label in self.labels() if label.subject not in new]
            return "".join(map(HumanLabel.line, [*others, *new.values()]))

        with _refusing(SuiteError):
            OutputFile(self.path).rewrite(make)

    def _label(self, annotator: str, sent: _SentLabel) -> HumanLabel:
        if not 0 <= sent.item < len(self.review.items):
            raise RefusedError(f"item: found {sent.item}, expected less than {len(self.review.items)}")
        known = HumanLabel.labels_of(self.review.scale)
        if sent.label is not None and (sent.label not in known or isinstance(sent.label, bool)):
            raise RefusedError(f"label: found {sent.label!r}, expected one of {', '.join(map(str, known))}, or null")
        return self.review.label(sent.item, annotator, sent.label, sent.note)


class NoteFile(LabelFile):
    """The label file of a review, with a second file for notes and failure modes.

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
        """The notes of the file.

        Raises:
            SuiteError: It has faults.
        """
        return read_modes([self.notes] if self.notes.exists() else [])

    def read(self, annotator: str) -> str:
        """Return the lines of one person in this review, then those that make, rename, merge and split modes.

        Raises:
            RefusedError: A file has faults.
        """
        with _refusing(SuiteError):
            book = self.book()
        notes = [note for note in book.notes if note.by == annotator and note.review == self.review.id]
        events = [line for line in book.lines if not isinstance(line, ModeNote)]
        return "".join([super().read(annotator), *map(mode_line, [*notes, *events])])

    def _write(self, sent: _SentLabels) -> None:
        noted = [label for label in sent.labels if label.at and (label.label is not None or label.note or label.modes)]
        for label in sent.labels:
            self._label(sent.annotator, label)  # nothing of a request is kept if a part of it is refused
        lines: list[ModeLine] = [
            self.review.note(label.item, sent.annotator, label.at, label.modes, label.note, self.run) for label in noted
        ]
        with _refusing(SuiteError, ValueError):
            add_lines(self.notes, [read_line(to_builtins(line)) for line in (*lines, *sent.events)])
        super()._write(sent)


_REVIEW = (
    "Write a page on which people label the answers of a run: one HTML file that opens from disk, without network, and "
    "exports the labels. It shows neither systems nor judges, in random order. A suite reads the labels by the option "
    "'human' of the evaluators judge and judge_agreement. With --labels, say what labels mean for the cases instead. "
    "With --modes, people also note what went wrong, and put it into failure modes, which llmeval modes counts."
)
_LABELS = "labels.jsonl"
_LAST_PORT = 65535


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of ``llmeval review``."""
    parser.description = _REVIEW
    parser.add_argument(
        "report",
        type=Path,
        metavar="ANSWERS",
        help="a JSON report, written with --llmeval-texts=all; a file of traces; or a suite file of answered cases",
    )
    OPTIONS.add_to(parser, OPTIONS["predictions"]._replace(help="recorded answers to the cases of a suite file"))
    parser.add_argument(
        "--pick", type=NumberArgument(least=1, whole=True), metavar="N", help="pick N answers (default: all)"
    )
    parser.add_argument(
        "--draw",
        choices=get_args(Draw)[1:],
        help="how to pick: evenly, spread over contents, or half evenly and half those that failed, or about which "
        "judges are uncertain (default: uncertain; with --modes, random)",
    )
    parser.add_argument(
        "--modes",
        type=Path,
        nargs="?",
        const=Path(MODES_FILE),
        metavar="FILE",
        help=f"note what went wrong, and failure modes, in this file (default: {MODES_FILE})",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the picks and their order (default: 0)")
    parser.add_argument("--scale", choices=("yesno", "1-5"), help="what people say (default: as the judge's scores)")
    parser.add_argument("--ask", metavar="TEXT", help="the question to people, such as 'Is the tone kind?'")
    parser.add_argument("--annotator", default="", metavar="NAME", help="who labels (default: the page asks)")
    parser.add_argument("--evaluator", metavar="LABEL", help="the judge that is reviewed, where there are several")
    parser.add_argument("--suite", help="the suite, where the report has several")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="page, or labels with --serve")
    parser.add_argument("--serve", action="store_true", help=f"serve the page to this machine, and write {_LABELS}")
    parser.add_argument("--port", type=_port, default=0, help="where to serve (default: any free port)")
    parser.add_argument(
        "--again", type=Path, nargs="+", metavar="FILE", help="files of labels: pick answers that have changed since"
    )
    parser.add_argument("--labels", type=Path, nargs="+", metavar="FILE", help="files of labels: say what they mean")
    parser.set_defaults(run=_review)


def _port(text: str) -> int:
    """Parse the port that the review page is served on."""
    if not (text.isascii() and text.isdigit() and int(text) <= _LAST_PORT):
        raise ArgumentTypeError(f"found {text!r}, expected a number from 0 to {_LAST_PORT}")
    return int(text)


def _review(options: Namespace) -> int | CommandResult:
    """Run ``llmeval review``: serve or write the page on which people label the answers of a report."""
    refuse_input(options.output, options.report)
    if options.modes is not None and options.scale == "1-5":
        raise LlmevalError("--scale: found '1-5' with --modes, expected 'yesno': digits are the keys of modes")
    report = read_answers(options.report, options.predictions)
    report.begin_media(Path.cwd())
    try:
        suites = _suites(report, options.suite)
        if options.labels:
            return _print_labels(suites, options)
        choices = {name: getattr(options, name) for name in ("pick", "seed", "evaluator", "scale", "ask")}
        again = HumanLabel.read_all((path, str(path)) for path in options.again) if options.again else None
        if options.modes is not None:
            choices["scale"] = "yesno"
        draw: Draw = options.draw or ("uncertain" if options.modes is None else "random")
        review = review_of(suites, **choices, again=again, draw=draw)
    except SuiteError:
        raise
    except LlmevalError as error:
        raise LlmevalError(f"{options.report}: {error}") from None
    if review.cut:
        say([f"{counted(review.cut, 'answer')} left out: the report has only their beginnings"])
    run = report.run.started_at
    return _serve(review, options, run) if options.serve else _write(review, options, run)


def _print_labels(suites: list[SuiteReport], options: Namespace) -> CommandResult:
    """Run ``llmeval review --labels``: print what human labels say of a run."""
    labels = HumanLabel.read_all((path, str(path)) for path in options.labels)
    lines = [*labels_said(labels, review_items(suites, options.evaluator)[0], options.report)]
    return CommandResult(0, {"labels": to_builtins(labels), "findings": lines}, lines)


def _suites(report: RunReport, name: str | None) -> list[SuiteReport]:
    """The results of one suite in a report, of all its systems, for a review.

    Raises:
        LlmevalError: The report has none of the name, or several suites.
    """
    suites = [suite for suite in report.suites if name in (None, suite.base_name, suite.path)]
    paths = list(dict.fromkeys(suite.path for suite in suites))
    if not suites:
        raise LlmevalError("no suite" + (f" {name!r}" if name else "") + " in the report")
    if len(paths) > 1:
        raise LlmevalError(f"found {len(paths)} suites, expected one: name it by --suite: {', '.join(paths)}")
    return suites


def _write(review: Review, options: Namespace, run: str) -> CommandResult:
    """Write the review page of a report as a file."""
    output = options.output or options.report.with_suffix(".review.html")
    book = None if options.modes is None else NoteFile(review, output, options.modes).book()
    OutputFile(output).save_text(
        [review_page(review, options.annotator, book=book, run=run, folder=output.absolute().parent)]
    )
    data = {"written": [str(output)], "answers": len(review.items), "total": review.total}
    return CommandResult(0, data, [f"wrote {output}: {len(review.items)} of {counted(review.total, 'answer')}"])


def _serve(review: Review, options: Namespace, run: str) -> int:
    """Serve the review page of a report on this machine, and store the labels that it sends."""
    path: Path = options.output or Path(_LABELS)
    label_file = LabelFile(review, path) if options.modes is None else NoteFile(review, path, options.modes, run)
    label_file.labels()  # a file with faults is not written over
    book = label_file.book() if isinstance(label_file, NoteFile) else None
    page = review_page(review, options.annotator, served=True, book=book, run=run)
    where = f"labels go to {path}" + (f", notes to {options.modes}" if options.modes is not None else "")
    try:
        server = LoopbackServer(page, label_file.read, label_file.save, options.port)
    except OSError as error:
        raise LlmevalError(f"cannot listen on port {options.port} ({error.strerror}), expected a free one") from None
    with server:
        say([f"{len(review.items)} of {counted(review.total, 'answer')}; {where}", server.address])
        say(["stop with Ctrl-C"])
        sys.stdout.flush()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            say([f"stopped; {path} has {counted(len(label_file.labels()), 'label')}"])
    return 0


_WRONG = 0.25
"""An answer is wrong to people who all say at most this, from 0 to 1: no, or a grade of 1 or 2."""


class _Labelled(Struct, frozen=True):
    """An answer of a report with the human labels on it, from 0 to 1 by reviewer."""

    item: ReviewItem
    shares: Mapping[str, float]

    @property
    def is_right(self) -> bool:
        return min(self.shares.values()) >= 1

    @property
    def is_wrong(self) -> bool:
        return max(self.shares.values()) <= _WRONG


def labels_said(labels: Sequence[HumanLabel], items: Sequence[ReviewItem], report: Path) -> Iterator[str]:
    """Yield the lines of ``llmeval review --labels`` on human labels of a run's answers.

    Args:
        labels: Of files.
        items: All answers of the run.
        report: Its file, for commands.
    """
    human = HumanLabels(labels)
    matching = [(item, human.matching(item.cases, item.prints)) for item in items]
    labelled = [
        _Labelled(item, {label.annotator: label.share or 0.0 for label in own_labels})
        for item, own_labels in matching
        if own_labels
    ]
    yield from _people(labels)
    known = {label.subject for _, own_labels in matching for label in own_labels}
    stale = sum(label.share is not None and label.subject not in known for label in labels)
    if stale:
        yield f"{counted(stale, 'label')} of answers that this run does not have"
    yield from _pairs(labelled)
    yield from _right(labelled)
    yield from _wrong(labelled, report)


def _people(labels: Sequence[HumanLabel]) -> Iterator[str]:
    """Yield a line for each reviewer: number of labels, skipped answers and mean."""
    for annotator in dict.fromkeys(label.annotator for label in labels):
        own = [label.share for label in labels if label.annotator == annotator]
        shares = [share for share in own if share is not None]
        mean = f", mean {number(math.fsum(shares) / len(shares))}" if shares else ""
        skipped = f", {len(own) - len(shares)} skipped" if len(own) > len(shares) else ""
        yield f"{annotator}: {counted(len(shares), 'label')}{skipped}{mean}"


def _pairs(labelled: Sequence[_Labelled]) -> Iterator[str]:
    """Yield the lines on how far two reviewers agree on the answers that both labelled."""
    people = dict.fromkeys(name for answer in labelled for name in answer.shares)
    for left, right in combinations(people, 2):
        both = [
            (answer.shares[left], answer.shares[right]) for answer in labelled if {left, right} <= answer.shares.keys()
        ]
        if not both:
            continue
        same = sum(here == there for here, there in both)
        alpha = JudgeAgreement.alpha_of(both)
        agreement = number(alpha) if math.isfinite(alpha) else "undefined, since all labels are the same"
        yield f"{left} and {right} say the same of {same} of {counted(len(both), 'answer')}, alpha {agreement}"


def _right(labelled: Sequence[_Labelled]) -> Iterator[str]:
    """Yield the answers that reviewers call right and the suite failed."""
    for answer in labelled:
        failed = list(dict.fromkeys(name for name, outcome in answer.item.outcomes if outcome in FAILED))
        if answer.is_right and failed:
            expected = list(dict.fromkeys(filter(None, [answer.item.reference, answer.item.answer])))
            yield f"{listed(failed)}: failed, and right to {_everyone(answer)}; an expected answer, if you agree:"
            yield f"    expected: {json.dumps(expected, ensure_ascii=False)}"


def _wrong(labelled: Sequence[_Labelled], report: Path) -> Iterator[str]:
    """Yield the answers that reviewers call wrong: passed ones, and failed ones that may become known failures."""
    for answer in labelled:
        for name, outcome in answer.item.outcomes if answer.is_wrong else ():
            if outcome == "passed":
                yield f"{name}: passed, and wrong to {_everyone(answer)}"
            elif outcome == "failed":
                command = shlex.join(["llmeval", "approve", str(report), "--case", name])
                yield f"{name}: failed, and wrong to {_everyone(answer)}; as a known failure: {command}"


def _everyone(each: _Labelled) -> str:
    """The reviewers who labelled an answer, in words."""
    return next(iter(each.shares)) if len(each.shares) == 1 else f"all {len(each.shares)} people"
