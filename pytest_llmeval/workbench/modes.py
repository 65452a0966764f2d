"""The command ``llmeval modes``."""

import json
import math
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from statistics import NormalDist
from typing import Any, Final, NamedTuple

from msgspec import structs

from pytest_llmeval.cli import OPTIONS, CommandResult, say
from pytest_llmeval.core import (
    JudgeError,
    LlmevalError,
    counted,
    excerpt,
    grouped,
    interval,
    listed,
    number,
)
from pytest_llmeval.data import OutputFile
from pytest_llmeval.evaluators import JudgeAgreement
from pytest_llmeval.judges import JudgeOptions, JudgeSpec, Mode, Question, ReplyObject, SuiteJudges, Verdict
from pytest_llmeval.numbers import student_quantile, wilson_interval
from pytest_llmeval.reports import rendered_page
from pytest_llmeval.services import Background, Secrets
from pytest_llmeval.workbench._console import refuse_input, table_lines
from pytest_llmeval.workbench._judge import judge_options
from pytest_llmeval.workbench.reviews.modes import MODES_FILE, ModeBook, ModeNote, ModeProposed, add_lines, read_modes

_CONFIDENCE = 0.95
_RARE = 0.05
"""A share of the answers, of which the command says how surely a mode of it has been seen."""

_EXAMPLES = 3
_WIDTH = 70


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of ``llmeval modes``."""
    parser.description = (
        "Print the failure modes that people noted in a review: the share of answers that have each, its 95 % interval "
        "and examples. The output also has the shares by run, system or label, the agreement of people, and the "
        "probability that an unnoted mode would have been seen."
    )
    parser.add_argument(
        "files", type=Path, nargs="*", metavar="FILE", help=f"files of notes (default: {MODES_FILE})", default=None
    )
    parser.add_argument(
        "--by", metavar="LABEL", help="shares by a label of the cases, by 'system' or by 'run' (default: by run)"
    )
    parser.add_argument(
        "--cluster-by",
        metavar="LABEL",
        help="answers with the same value of a label were drawn together, as of a session",
    )
    parser.add_argument(
        "--suggest",
        action="store_true",
        help="have a judge propose groups of notes; they are added to the last file as proposals, which count for "
        "nothing until a person accepts them in the review page",
    )
    OPTIONS.add_to(parser, "judge-model", "judge-base-url", "budget", "concurrency", "cache")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write a page with the same content")
    parser.set_defaults(run=_modes)


def _modes(options: Namespace) -> CommandResult:
    """Run ``llmeval modes``: report the failure modes in files of notes, and with ``--suggest`` propose new ones."""
    files = options.files or [Path(MODES_FILE)]
    refuse_input(options.output, *files)
    book = read_modes(files)
    if options.suggest:
        proposed = _suggest(book, files[-1], options)
        add_lines(files[-1], proposed)
        say([f"{counted(len(proposed), 'proposal')} added to {files[-1]}; accept them in llmeval review --modes"])
        book = ModeBook([*book.lines, *proposed])
    report = mode_report(book, options.by, options.cluster_by)
    lines = _lines(report) if options.output is None else [f"wrote {options.output}"]
    if options.output is not None:
        OutputFile(options.output).save_text([_page(report)])
    groups = {heading: [share._asdict() for share in shares] for heading, shares in report.groups}
    data = {"modes": [share._asdict() for share in report.shares], "groups": groups, "findings": report.findings}
    return CommandResult(0, data, lines)


def _suggest(book: ModeBook, path: Path, options: Namespace) -> Sequence[ModeProposed]:
    """Ask a judge to propose failure modes from the notes of reviewers."""
    if options.judge_model is None:
        raise LlmevalError("--suggest needs a judge: pass --judge-model PROVIDER:NAME")
    asking = structs.replace(
        judge_options(options, "modes"), model=options.judge_model, base_url=options.judge_base_url
    )
    with closing(options.cache.open()):  # an unusable store is reported before anything is asked
        return propose_modes(book, path, JudgeSpec(), asking)


_LEAST_CLUSTERS = 5
"""Of fewer clusters it is not seen whether their answers are alike."""
_MUCH_WIDER = 1.3


class ModeShare(NamedTuple):
    """The share of answers that have a failure mode, with its interval.

    Attributes:
        mode: Its name.
        value: The share of all answers that could be drawn, by the probabilities of those that were; 0 to 1.
        low: Lower bound of its interval.
        high: Upper bound.
        answers: How many answers of the notes have it, to anybody.
    """

    mode: str
    value: float
    low: float
    high: float
    answers: int


def mode_shares(notes: Sequence[ModeNote], modes: Sequence[str], cluster_by: str | None = None) -> list[ModeShare]:
    """The share of each failure mode among the answers from which the noted ones were drawn.

    An answer represents as many as the inverse of its probability says (Hájek 1971); people who differ about it count
    with equal parts. The interval is Wilson's with as many answers as an even draw would need for the same variance.

    Args:
        notes: Of any people and draws; at least one.
        modes: Their names.
        cluster_by: A label; answers with the same value of it, such as those of one session, were drawn together.
    """
    drawn = grouped((note.subject, note) for note in notes)
    weights = [1 / about[0].probability for about in drawn.values()]
    clusters = [_cluster(about[0], cluster_by) or str(place) for place, about in enumerate(drawn.values())]
    shares = []
    for mode in modes:
        parts = [sum(mode in note.modes for note in about) / len(about) for about in drawn.values()]
        members = grouped(zip(clusters, zip(weights, parts, strict=True), strict=True)).values()
        together = [math.fsum(weight for weight, _ in member) for member in members]
        means = [_weighted_mean(*zip(*member, strict=True)) for member in members]
        low, high = weighted_interval(together, means, _CONFIDENCE, clustered=cluster_by is not None)
        value = _weighted_mean(weights, parts)
        shares.append(ModeShare(mode, value, low, high, sum(part > 0 for part in parts)))
    return shares


def _cluster(note: ModeNote, label: str | None) -> str:
    """The label of a noted answer that names its cluster, as ``NAME=VALUE``; empty if the answer lacks it."""
    return next((pair for pair in note.labels if label and pair.startswith(f"{label}=")), "")


def alike_answers(notes: Sequence[ModeNote], modes: Sequence[str]) -> Iterator[str]:
    """Yield labels whose answers share failure modes, and how much wider clusters make the intervals."""
    labels = sorted({pair.partition("=")[0] for note in notes for pair in note.labels})
    for label in labels:
        sizes = Counter(_cluster(note, label) for note in notes)
        if sum(size > 1 for value, size in sizes.items() if value) < _LEAST_CLUSTERS:
            continue
        pairs = zip(mode_shares(notes, modes), mode_shares(notes, modes, label), strict=True)
        wider = max(((alike.high - alike.low) / (even.high - even.low) for even, alike in pairs), default=1.0)
        if wider > _MUCH_WIDER:
            widens = f"--cluster-by {label} makes intervals up to {wider:.1f} times as wide"
            yield f"answers with the same {label} share modes: {widens}"


def weighted_interval(
    weights: Sequence[float], parts: Sequence[float], confidence: float, *, clustered: bool = False
) -> tuple[float, float]:
    """Return Wilson's interval of a weighted share, with the number of cases that its variance is worth (Kish 1965).

    Rare cases show too little of their variance, so it is computed as if there were one more case of mean weight with
    the part 0, and one with 1. Of equal weights, the number is that of the cases.

    Args:
        weights: Inverse probabilities, at least one.
        parts: Of each, from 0 to 1.
        confidence: Between 0 and 1.
        clustered: Whether the parts are means of clusters. Their variance is only estimated, from as many clusters as
            would be worth the same if they were equally large, so the interval is Student's.
    """
    mean = math.fsum(weights) / len(weights)
    more_weights, more_parts = [*weights, mean, mean], [*parts, 0.0, 1.0]
    value, total = _weighted_mean(more_weights, more_parts), math.fsum(more_weights)
    squares = ((weight * (part - value)) ** 2 for weight, part in zip(more_weights, more_parts, strict=True))
    worth = max(value * (1 - value) * total**2 / math.fsum(squares) - 2, 1.0)
    if clustered:
        clusters = math.fsum(weights) ** 2 / math.fsum(weight**2 for weight in weights)
        tail = (1 - confidence) / 2
        worth *= (NormalDist().inv_cdf(tail) / student_quantile(max(clusters - 1, 1.0), tail)) ** 2
    return wilson_interval(_weighted_mean(weights, parts) * worth, worth, confidence)


def _weighted_mean(weights: Sequence[float], parts: Sequence[float]) -> float:
    """The weighted mean of the parts of answers that have a failure mode, at most 1."""
    weighted = math.fsum(weight * part for weight, part in zip(weights, parts, strict=True))
    return min(weighted / math.fsum(weights), 1.0)


class Saturation(NamedTuple):
    """Whether more notes would show more failure modes.

    Attributes:
        quiet: How many notes were written since one showed a new mode.
        answers: An even draw of so many answers would find a mode as surely as this draw does, wherever it occurs.
    """

    quiet: int
    answers: float

    def seen(self, share: float) -> float:
        """Return the probability of a note on at least one answer with a mode that has this share, from 0 to 1."""
        return 1.0 - math.exp(self.answers * math.log1p(-share))


def saturation(notes: Sequence[ModeNote]) -> Saturation:
    """Whether more notes would show more failure modes, by the notes in the order of their times."""
    in_order = sorted(notes, key=lambda each: (each.at, each.by, each.subject))
    known: set[str] = set()
    quiet = 0
    for note in in_order:
        quiet = 0 if {*note.modes} - known else quiet + 1
        known.update(note.modes)
    by_draw: dict[str, dict[object, float]] = {}
    for note in notes:
        by_draw.setdefault(note.review, {})[note.subject] = 1 / note.probability
    weights = [list(draw.values()) for draw in by_draw.values()]
    return Saturation(quiet, sum(math.fsum(weight) / max(weight) for weight in weights))


class AgreementOnMode(NamedTuple):
    """The agreement of two reviewers about a failure mode, on the answers that both noted.

    Attributes:
        people: Their names.
        mode: The mode.
        both: Answers that have it to both.
        differing: Answers that have it to one of them.
        answers: Answers that both noted.
        alpha: Krippendorff's; NaN if neither or both always said it.
    """

    people: tuple[str, str]
    mode: str
    both: int
    differing: int
    answers: int
    alpha: float


def mode_agreements(notes: Sequence[ModeNote], modes: Sequence[str]) -> Iterator[AgreementOnMode]:
    """Yield the agreement about each failure mode of every two reviewers with common answers."""
    by_person: dict[str, dict[object, ModeNote]] = {}
    for note in notes:
        by_person.setdefault(note.by, {})[note.prints] = note
    for left, right in combinations(sorted(by_person), 2):
        shared = [
            (by_person[left][prints], by_person[right][prints])
            for prints in by_person[left]
            if prints in by_person[right]
        ]
        for mode in modes if shared else ():
            pairs = [(float(mode in here.modes), float(mode in there.modes)) for here, there in shared]
            both, either = sum(min(pair) > 0 for pair in pairs), sum(max(pair) > 0 for pair in pairs)
            if not either:
                continue
            yield AgreementOnMode((left, right), mode, both, either - both, len(pairs), JudgeAgreement.alpha_of(pairs))


class ModeReport(NamedTuple):
    """The report of ``llmeval modes`` on files of notes: shares of failure modes, examples and findings.

    Attributes:
        title: How many notes of whom.
        texts: What belongs to a mode, by its name.
        shares: Of the modes, the most frequent first.
        examples: Of each mode, some notes with their cases.
        groups: Heading and shares of each part of the notes.
        findings: Lines on saturation, agreement and proposals.
    """

    title: str
    texts: Mapping[str, str]
    shares: Sequence[ModeShare]
    examples: Mapping[str, Sequence[str]]
    groups: Sequence[tuple[str, Sequence[ModeShare]]]
    findings: Sequence[str]


def mode_report(book: ModeBook, by: str | None = None, cluster_by: str | None = None) -> ModeReport:
    """Make the report of ``llmeval modes`` from files of notes.

    Args:
        book: The files.
        by: A label, ``system`` or ``run``, whose values have shares of their own; ``None``: by run, if there are some.
        cluster_by: As of `mode_shares`.
    """
    notes = book.notes
    if not notes:
        return ModeReport("no notes yet: llmeval review REPORT --modes", {}, [], {}, [], list(_proposals(book)))
    shares = sorted(mode_shares(notes, book.names, cluster_by), key=lambda each: -each.value)
    answers = len({note.subject for note in notes})
    people = listed(sorted({note.by for note in notes}))
    title = f"{counted(len(notes), 'note')} of {people} on {counted(answers, 'answer')}"
    examples = {share.mode: list(_examples(notes, share.mode)) for share in shares}
    groups = grouped((value, note) for note in notes for value in _values(note, by or "run"))
    if by is None and len(groups) < 2:  # noqa: PLR2004 (one run is no trend)
        groups = {}
    names = [share.mode for share in shares]
    return ModeReport(
        title,
        book.texts,
        shares,
        examples,
        [(f"{by or 'run'} {value}", mode_shares(groups[value], names, cluster_by)) for value in sorted(groups)],
        [
            *_saturated(notes),
            *([] if cluster_by else alike_answers(notes, names)),
            *trend(book, cluster_by),
            *_agreed(notes, names),
            *_proposals(book),
        ],
    )


def trend(book: ModeBook, cluster_by: str | None = None) -> Iterator[str]:
    """Yield the change of each failure mode from the first noted run to the last, with its interval (Newcombe 1998)."""
    by_run = grouped((note.run, note) for note in book.notes if note.run)
    first, last = min(by_run, default=""), max(by_run, default="")
    if first == last:
        return
    for old, new in zip(*(mode_shares(by_run[run], book.names, cluster_by) for run in (first, last)), strict=True):
        change = new.value - old.value
        low = change - math.hypot(new.value - new.low, old.high - old.value)
        high = change + math.hypot(new.high - new.value, old.value - old.low)
        verdict = "rose" if low > 0 else "fell" if high < 0 else "no significant change"
        yield (
            f"{old.mode}: {number(old.value)} in run {first}, {number(new.value)} in run {last}: {verdict}, "
            f"difference {number(change)}, 95 % interval {interval(low, high)}"
        )


def _values(note: ModeNote, by: str) -> Iterator[str]:
    """Yield the values of a noted answer by which ``llmeval modes --by`` groups notes: run, system or label."""
    if by == "run":
        yield from filter(None, [note.run])
    elif by == "system":
        yield from note.systems
    else:
        yield from (label.partition("=")[2] for label in note.labels if label.partition("=")[0] == by)


def _examples(notes: Sequence[ModeNote], mode: str) -> Iterator[str]:
    """Yield the lines of example notes on a failure mode, those with words first."""
    having = [note for note in notes if mode in note.modes]
    for note in sorted(having, key=lambda each: (not each.note, each.at, each.by))[:_EXAMPLES]:
        yield f"{listed(note.cases) or note.answer}: {excerpt(note.note, _WIDTH) if note.note else '(no note)'}"


def _saturated(notes: Sequence[ModeNote]) -> Iterator[str]:
    """Yield the line on whether more notes would show more failure modes."""
    reached = saturation(notes)
    yield (
        f"no new mode in the last {counted(reached.quiet, 'note')}; a mode as frequent as {_RARE:.0%} would have been "
        f"seen with {math.floor(100 * reached.seen(_RARE))} %"
    ).replace("5% ", "5 % ")


def _agreed(notes: Sequence[ModeNote], modes: Sequence[str]) -> Iterator[str]:
    """Yield the lines on how far reviewers agree about failure modes."""
    for agreement in mode_agreements(notes, modes):
        alpha = number(agreement.alpha) if math.isfinite(agreement.alpha) else "undefined"
        left, right = agreement.people
        yield (
            f"{left} and {right}, {agreement.mode}: {agreement.both} both, {agreement.differing} one of them, of "
            f"{counted(agreement.answers, 'answer')}, alpha {alpha}"
        )


def _proposals(book: ModeBook) -> Iterator[str]:
    """Yield the lines on failure modes that a judge proposed and nobody has accepted."""
    for proposal in book.proposals:
        text = f" ({excerpt(proposal.text, _WIDTH)})" if proposal.text else ""
        answers = counted(len(proposal.answers), "answer")
        yield f"proposed by {proposal.by}, accepted by nobody: {proposal.mode}{text}, {answers}"


_INSTRUCTIONS: Final = """\
People read answers of an application and noted what went wrong. `notes` has one note a line, after its number.

Put notes about the same failure into one group. A group is about one thing that can be seen in an answer and that one
change of the application could fix; it has a short name in the words of the notes, and one sentence that says what
belongs to it. A note may be in several groups or in none. Do not group by the topic of the question. `modes` are names
that people use already: do not propose these again.

Reply with one JSON object and nothing else:
{"groups": [{"name": "wrong window", "text": "The answer names another period than the policy.", "notes": [1, 4]}]}"""

_TEXT: Final = {"type": "string"}
_GROUP: Final = ReplyObject.schema(name=_TEXT, text=_TEXT, notes={"type": "array", "items": {"type": "integer"}})
_LONGEST_NAME: Final = 80


def read_groups(reply: str) -> Verdict:
    """Read a judge's reply that groups notes into failure modes: a JSON object with a list of ``groups``.

    Returns:
        How many there are, and the groups under that name of the details.

    Raises:
        JudgeError: No object ends the reply, or a group has no name or no list of numbers.
    """
    groups = []
    for group in ReplyObject.closing_list(reply, "groups"):
        name = ReplyObject(group).text("name") if isinstance(group, dict) else ""
        numbers: Any = group.get("notes") if isinstance(group, dict) else None
        if not name or not isinstance(numbers, list) or not all(type(number) is int for number in numbers):
            raise JudgeError.unreadable(reply, "found a group without a name and numbers of notes, expected both")
        groups.append({"name": name[:_LONGEST_NAME], "text": ReplyObject(group).text("text"), "notes": numbers})
    return Verdict(float(len(groups)), "", {"groups": groups})


NOTE_GROUPS: Final = Mode(
    "note_groups",
    "1",
    {"en": _INSTRUCTIONS},
    ("notes", "modes"),
    (0.0, 1000.0),
    read_groups,
    ReplyObject.schema(groups={"type": "array", "items": _GROUP}),
    asks_again=True,
    asks_one=True,
)


def propose_modes(book: ModeBook, path: Path, spec: JudgeSpec, options: JudgeOptions) -> list[ModeProposed]:
    """Ask a judge to group notes into failure modes; equal notes get the stored reply.

    Args:
        book: The notes.
        path: Their file, for messages.
        spec: The judge.
        options: How it is asked.

    Raises:
        LlmevalError: There are no notes with words, or the judge gave no groups.
    """
    notes = [note for note in sorted(book.notes, key=lambda each: (each.subject, each.by)) if note.note.strip()]
    if not notes:
        raise LlmevalError(f"{path} has no notes in words to group")
    lines = "\n".join(f"{number}. {' '.join(note.note.split())}" for number, note in enumerate(notes, 1))
    question = Question(NOTE_GROUPS, {"notes": lines, "modes": json.dumps(list(book.names), ensure_ascii=False)})
    with closing(Background()) as background:
        judges = SuiteJudges(options, background)
        try:
            panel = judges.judge_of(path.resolve(), spec, str(path))
            judges.open(path.resolve(), spec, None)
            judgement = background.submit(judges.service.judge(panel.bind(question, "notes"))).result()
        finally:
            judges.close(whole_run=True)
    if isinstance(judgement.verdict, LlmevalError):
        raise JudgeError(f"{path}: no groups were proposed: {judgement.verdict}")
    by = f"judge {options.spec(spec).model}"
    at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    groups: Sequence[dict[str, Any]] = judgement.verdict.details["groups"]
    known = {*book.names, *(proposal.mode for proposal in book.proposals)}
    return [
        ModeProposed(by, at, group["name"], group["text"], _prints_of(notes, group["notes"]))
        for group in groups
        if group["name"] not in known
    ]


def _prints_of(notes: Sequence[ModeNote], numbers: Sequence[int]) -> tuple[Any, ...]:
    """The fingerprints of the noted answers in a group that a judge formed, by the numbers of their notes."""
    return tuple(dict.fromkeys(notes[number - 1].prints for number in numbers if 1 <= number <= len(notes)))


_HEADERS = ("mode", "share", "95% interval", "answers")


def _cells(shares: Sequence[ModeShare]) -> list[tuple[str, str, str, str]]:
    """The table cells of the shares of failure modes, with intervals."""
    return [(share.mode, number(share.value), interval(share.low, share.high), str(share.answers)) for share in shares]


def _lines(report: ModeReport) -> Iterator[str]:
    """Yield the text of ``llmeval modes``: shares, examples and findings."""
    yield report.title
    tables = [("", report.shares), *report.groups]
    for heading, shares in tables if report.shares else ():
        yield heading
        cells = [(excerpt(mode, _WIDTH), *numbers) for mode, *numbers in _cells(shares)]
        yield from table_lines(cells, "lrrr", _HEADERS)
    yield ""
    for mode, examples in report.examples.items():
        yield f"{excerpt(mode, _WIDTH)}: {excerpt(report.texts[mode], _WIDTH)}" if mode in report.texts else mode
        yield from (f"  {example}" for example in examples)
    yield from report.findings


def _page(report: ModeReport) -> str:
    """The HTML page of ``llmeval modes``."""
    from importlib.resources import files

    tables = [[heading, _cells(shares)] for heading, shares in [("All answers", report.shares), *report.groups]]
    content = {
        "title": report.title,
        "headers": _HEADERS,
        "tables": tables,
        "examples": [[mode, report.texts.get(mode, ""), examples] for mode, examples in report.examples.items()],
        "findings": report.findings,
    }
    assets = files("pytest_llmeval.workbench.reviews") / "assets"
    return rendered_page(assets, "modes.html.jinja", "review.css", [], {}, **Secrets.of_variables().masked(content))
