"""The command ``llmeval review``: a page on which people label answers, and what labels say of a run."""

import json
import math
import shlex
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from msgspec import Struct

from pytest_llmeval.cli.console import count, refuse_input, say, write_text
from pytest_llmeval.cli.options import OPTIONS, add_options
from pytest_llmeval.core.errors import LlmevalError, SuiteError
from pytest_llmeval.core.observation import Observation, Totals
from pytest_llmeval.core.wording import counted, listed, number
from pytest_llmeval.data.formats.human_labels import HumanLabel, read_labels
from pytest_llmeval.evaluators.judge.judged_case import HumanLabels
from pytest_llmeval.evaluators.measures.confusion import krippendorff_alpha, unit_moments
from pytest_llmeval.workbench.reviews.items import FAILED, Review, ReviewItem, read_answers, review_items, review_of
from pytest_llmeval.workbench.reviews.modes import MODES_FILE, Draw
from pytest_llmeval.workbench.reviews.page import LabelFile, NoteFile, review_page

if TYPE_CHECKING:
    from pytest_llmeval.reports.form import RunReport, SuiteReport


_REVIEW = (
    "Write a page on which people label the answers of a run: one HTML file that opens from disk, without network, and "
    "exports the labels. It shows neither systems nor judges, in random order. A suite reads the labels by the option "
    "'human' of the evaluators judge and judge_agreement. With --labels, say what labels mean for the cases instead. "
    "With --modes, people also note what went wrong, and put it into failure modes, which llmeval modes counts."
)
_LABELS = "labels.jsonl"
_LAST_PORT = 65535


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = _REVIEW
    parser.add_argument(
        "report",
        type=Path,
        metavar="ANSWERS",
        help="a JSON report, written with --llmeval-texts=all; a file of traces; or a suite file of answered cases",
    )
    add_options(parser, OPTIONS["predictions"]._replace(help="recorded answers to the cases of a suite file"))
    parser.add_argument("--pick", type=count, metavar="N", help="pick N answers (default: all)")
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
    if not (text.isascii() and text.isdigit() and int(text) <= _LAST_PORT):
        raise ArgumentTypeError(f"found {text!r}, expected a number from 0 to {_LAST_PORT}")
    return int(text)


def _review(options: Namespace) -> int:
    refuse_input(options.output, options.report)
    if options.modes is not None and options.scale == "1-5":
        raise LlmevalError("--scale: found '1-5' with --modes, expected 'yesno': digits are the keys of modes")
    report = read_answers(options.report, options.predictions)
    try:
        suites = _suites(report, options.suite)
        if options.labels:
            return _print_labels(suites, options)
        choices = {name: getattr(options, name) for name in ("pick", "seed", "evaluator", "scale", "ask")}
        again = read_labels((path, str(path)) for path in options.again) if options.again else None
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


def _print_labels(suites: "list[SuiteReport]", options: Namespace) -> int:

    labels = read_labels((path, str(path)) for path in options.labels)
    say(labels_said(labels, review_items(suites, options.evaluator)[0], options.report))
    return 0


def _suites(report: "RunReport", name: str | None) -> "list[SuiteReport]":
    """Return the results of one suite, of all its systems.

    Raises:
        LlmevalError: The report has none of the name, or several suites.
    """
    suites = [each for each in report.suites if name in (None, each.base_name, each.path)]
    paths = list(dict.fromkeys(each.path for each in suites))
    if not suites:
        raise LlmevalError("found no suite" + (f" {name!r}" if name else "") + ", expected one in the report")
    if len(paths) > 1:
        raise LlmevalError(f"found {len(paths)} suites, expected one: name it by --suite: {', '.join(paths)}")
    return suites


def _write(review: Review, options: Namespace, run: str) -> int:
    output = options.output or options.report.with_suffix(".review.html")
    book = None if options.modes is None else NoteFile(review, output, options.modes).book()
    write_text(output, [review_page(review, options.annotator, book=book, run=run)])
    say([f"wrote {output}: {len(review.items)} of {counted(review.total, 'answer')}"])
    return 0


def _serve(review: Review, options: Namespace, run: str) -> int:
    from pytest_llmeval.services.loopback import LoopbackServer

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
    """An answer with what people say of it, from 0 to 1 by name."""

    item: ReviewItem
    shares: Mapping[str, float]

    @property
    def is_right(self) -> bool:
        return min(self.shares.values()) >= 1

    @property
    def is_wrong(self) -> bool:
        return max(self.shares.values()) <= _WRONG


def labels_said(labels: Sequence[HumanLabel], items: Sequence[ReviewItem], report: Path) -> Iterator[str]:
    """Yield lines on what labels say of a run; nothing is written.

    Args:
        labels: Of files.
        items: All answers of the run.
        report: Its file, for commands.
    """
    human = HumanLabels(labels)
    matching = [(each, human.matching(each.cases, each.prints)) for each in items]
    labelled = [
        _Labelled(item, {each.annotator: each.share or 0.0 for each in own_labels})
        for item, own_labels in matching
        if own_labels
    ]
    yield from _people(labels)
    known = {each.subject for _, own_labels in matching for each in own_labels}
    stale = sum(label.share is not None and label.subject not in known for label in labels)
    if stale:
        yield f"{counted(stale, 'label')} of answers that this run does not have"
    yield from _pairs(labelled)
    yield from _right(labelled)
    yield from _wrong(labelled, report)


def _people(labels: Sequence[HumanLabel]) -> Iterator[str]:
    for annotator in dict.fromkeys(each.annotator for each in labels):
        own = [each.share for each in labels if each.annotator == annotator]
        shares = [each for each in own if each is not None]
        mean = f", mean {number(math.fsum(shares) / len(shares))}" if shares else ""
        skipped = f", {len(own) - len(shares)} skipped" if len(own) > len(shares) else ""
        yield f"{annotator}: {counted(len(shares), 'label')}{skipped}{mean}"


def _pairs(labelled: Sequence[_Labelled]) -> Iterator[str]:
    """Yield how far two people agree on the answers that both labelled."""
    people = dict.fromkeys(name for each in labelled for name in each.shares)
    for left, right in combinations(people, 2):
        both = [(each.shares[left], each.shares[right]) for each in labelled if {left, right} <= each.shares.keys()]
        if not both:
            continue
        same = sum(here == there for here, there in both)
        alpha = float(krippendorff_alpha(Totals.add_up(Observation(unit_moments(each)) for each in both).sums())[0])
        agreement = number(alpha) if math.isfinite(alpha) else "undefined, since all labels are the same"
        yield f"{left} and {right} say the same of {same} of {counted(len(both), 'answer')}, alpha {agreement}"


def _right(labelled: Sequence[_Labelled]) -> Iterator[str]:
    """Yield the answers that are right to people, and not to the suite."""
    for each in labelled:
        failed = list(dict.fromkeys(name for name, outcome in each.item.outcomes if outcome in FAILED))
        if each.is_right and failed:
            expected = list(dict.fromkeys(filter(None, [each.item.reference, each.item.answer])))
            yield f"{listed(failed)}: failed, and right to {_everyone(each)}; an expected answer, if you agree:"
            yield f"    expected: {json.dumps(expected, ensure_ascii=False)}"


def _wrong(labelled: Sequence[_Labelled], report: Path) -> Iterator[str]:
    """Yield the answers that are wrong to people: the suite misses some, others may become known failures."""
    for each in labelled:
        for name, outcome in each.item.outcomes if each.is_wrong else ():
            if outcome == "passed":
                yield f"{name}: passed, and wrong to {_everyone(each)}"
            elif outcome == "failed":
                command = shlex.join(["llmeval", "approve", str(report), "--case", name])
                yield f"{name}: failed, and wrong to {_everyone(each)}; as a known failure: {command}"


def _everyone(each: _Labelled) -> str:
    return next(iter(each.shares)) if len(each.shares) == 1 else f"all {len(each.shares)} people"
