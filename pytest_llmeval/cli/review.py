"""The command ``llmeval review``: people label answers of a report, and what their labels say."""

__all__ = ("add_arguments",)

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_llmeval.cli.console import refuse_input, say, write_text
from pytest_llmeval.core.errors import LlmevalError, SuiteError
from pytest_llmeval.core.wording import counted

if TYPE_CHECKING:
    from pytest_llmeval.reports.form import RunReport, SuiteReport
    from pytest_llmeval.reports.review.items import Review

_REVIEW = (
    "Write a page on which people label the answers of a run: one HTML file that opens from disk, without network, and "
    "exports the labels. It shows neither systems nor judges, in random order. A suite reads the labels by the option "
    "'human' of the evaluators judge and judge_agreement. With --labels, say what labels mean for the cases instead."
)
_LABELS = "labels.jsonl"
_LAST_PORT = 65535


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = _REVIEW
    parser.add_argument("report", type=Path, metavar="REPORT", help="a JSON report, written with --llmeval-texts=all")
    parser.add_argument("--pick", type=_count, metavar="N", help="pick N answers that teach most (default: all)")
    parser.add_argument("--seed", type=int, default=0, help="of the picks and their order (default: 0)")
    parser.add_argument("--scale", choices=("yesno", "1-5"), help="what people say (default: as the judge's scores)")
    parser.add_argument("--ask", metavar="TEXT", help="the question to people, such as 'Is the tone kind?'")
    parser.add_argument("--annotator", default="", metavar="NAME", help="who labels (default: the page asks)")
    parser.add_argument("--evaluator", metavar="LABEL", help="the judge that is reviewed, where there are several")
    parser.add_argument("--suite", help="the suite, where the report has several")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="page, or labels with --serve")
    parser.add_argument("--serve", action="store_true", help=f"serve the page to this machine, and write {_LABELS}")
    parser.add_argument("--port", type=_port, default=0, help="where to serve (default: any free port)")
    parser.add_argument("--labels", type=Path, nargs="+", metavar="FILE", help="files of labels: say what they mean")
    parser.set_defaults(run=_review)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise ArgumentTypeError(f"found {text!r}, expected a whole number above 0")
    return int(text)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= _LAST_PORT):
        raise ArgumentTypeError(f"found {text!r}, expected a number from 0 to {_LAST_PORT}")
    return int(text)


def _review(options: Namespace) -> int:
    from pytest_llmeval.reports.reading import read_report
    from pytest_llmeval.reports.review.items import review_of

    refuse_input(options.output, options.report)
    report = read_report(options.report)
    try:
        suites = _suites(report, options.suite)
        if options.labels:
            return _said(suites, options)
        given = {name: getattr(options, name) for name in ("pick", "seed", "evaluator", "scale", "ask")}
        review = review_of(suites, **given)
    except SuiteError:
        raise
    except LlmevalError as error:
        raise LlmevalError(f"{options.report}: {error}") from None
    if review.cut:
        say([f"{counted(review.cut, 'answer')} left out: the report has only their beginnings"])
    return _serve(review, options) if options.serve else _write(review, options)


def _said(suites: "list[SuiteReport]", options: Namespace) -> int:
    from pytest_llmeval.cli.review_labels import labels_said
    from pytest_llmeval.data.formats.human_labels import read_labels
    from pytest_llmeval.reports.review.items import review_items

    labels = read_labels((path, str(path)) for path in options.labels)
    say(labels_said(labels, review_items(suites, options.evaluator)[0], options.report))
    return 0


def _suites(report: "RunReport", name: str | None) -> "list[SuiteReport]":
    """Return the results of one suite, of all its systems.

    Raises:
        LlmevalError: The report has none of the name, or several suites.
    """
    found = [each for each in report.suites if name in (None, each.base_name, each.path)]
    paths = list(dict.fromkeys(each.path for each in found))
    if not found:
        raise LlmevalError("found no suite" + (f" {name!r}" if name else "") + ", expected one in the report")
    if len(paths) > 1:
        raise LlmevalError(f"found {len(paths)} suites, expected one: name it by --suite: {', '.join(paths)}")
    return found


def _write(review: "Review", options: Namespace) -> int:
    from pytest_llmeval.reports.review.page import review_page

    output = options.output or options.report.with_suffix(".review.html")
    write_text(output, [review_page(review, options.annotator)])
    say([f"wrote {output}: {len(review.items)} of {counted(review.total, 'answer')}"])
    return 0


def _serve(review: "Review", options: Namespace) -> int:
    from pytest_llmeval.reports.review.kept import LabelFile
    from pytest_llmeval.reports.review.page import review_page
    from pytest_llmeval.services.loopback import LoopbackServer

    path: Path = options.output or Path(_LABELS)
    kept = LabelFile(review, path)
    kept.labels()  # a file with faults is not written over
    page = review_page(review, options.annotator, served=True)
    try:
        server = LoopbackServer(page, kept.read, kept.save, options.port)
    except OSError as error:
        raise LlmevalError(f"cannot listen on port {options.port} ({error.strerror}), expected a free one") from None
    with server:
        say([f"{len(review.items)} of {counted(review.total, 'answer')}; labels go to {path}", server.address])
        say(["stop with Ctrl-C"])
        sys.stdout.flush()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            say([f"stopped; {path} has {counted(len(kept.labels()), 'label')}"])
    return 0
