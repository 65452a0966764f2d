"""Changes of cases between two reports, as a comment shows them."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import chain, groupby
from typing import NamedTuple

from pytest_llmeval.core import CaseRecord, MetricChange, counted, excerpt, grouped, listed, number
from pytest_llmeval.numbers import TOLERANCE
from pytest_llmeval.reports import (
    CaseReport,
    Changes,
    RunReport,
    SuiteReport,
    text,
)
from pytest_llmeval.workbench._report_pair import PairedScores, ReportPair, paired_scores, remeasured, report_changes
from pytest_llmeval.workbench._source_links import SourceLinks


class Change(NamedTuple):
    """The change of a suite's metric between two runs; `name` is that of the compared value."""

    suite: SuiteReport
    name: str
    change: MetricChange

    @property
    def is_significant_alone(self) -> bool:
        """Whether the interval, which is not adjusted for the other metrics, excludes 0."""
        low, high = self.change.low, self.change.high
        return (low is not None and low > 0) or (high is not None and high < 0)


class CaseFates(NamedTuple):
    """The cases of a run that fail, are excused or pass again, compared with the baseline of a pull request.

    Attributes:
        new: Fail, and did not in the baseline; without a baseline, all that fail.
        still: Fail now as in the baseline.
        known: Fail as was approved or expected.
        mended: Pass, and did not in the baseline.
    """

    new: Sequence[tuple[SuiteReport, CaseReport]] = ()
    still: Sequence[tuple[SuiteReport, CaseReport]] = ()
    known: Sequence[tuple[SuiteReport, CaseReport]] = ()
    mended: Sequence[tuple[SuiteReport, CaseReport]] = ()


@dataclass(frozen=True)
class ReportComparison:
    """A run compared with its baseline, as the pull-request comment shows it.

    Attributes:
        declined: Metrics that declined, by the verdicts of the comparison.
        improved: Metrics that improved.
        unclear: Metrics whose change is not significant, or whose gate is undecided.
        regressed: Cases that got worse, the worst first.
        notes: What was not compared.
    """

    declined: list[Change] = field(default_factory=list)
    improved: list[Change] = field(default_factory=list)
    unclear: list[Change] = field(default_factory=list)
    regressed: list["CaseLine"] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def case_fates(pair: ReportPair) -> CaseFates:
    """Sort cases by whether they fail now, and did in the baseline."""
    fates = CaseFates([], [], [], [])
    for suite, before in pair.earlier_cases:
        for case in suite.cases:
            earlier = before.get(case.id, CaseReport.not_run())
            if case.outcome in CaseRecord.BAD:
                fate = fates.still if earlier.outcome in CaseRecord.BAD else fates.new
            elif case.is_excused:
                fate = fates.known
            elif case.outcome == "passed" and (earlier.outcome in CaseRecord.BAD or earlier.is_excused):
                fate = fates.mended
            else:
                continue
            assert isinstance(fate, list)
            fate.append((suite, case))
    return fates


def all_returned_modes(pair: ReportPair, *, has_baseline: bool) -> Iterator[str]:
    """Yield the failure modes that are back since the baseline, or else since scores were approved."""
    for suite, before in pair.earlier_cases:
        approved = () if has_baseline or suite.changes is None else suite.changes.returned
        for mode in approved or Changes.returned_modes(suite.cases, before.values()):
            yield f"{suite.suite}: {mode}" if len(pair.run) > 1 else mode


def compare_runs(reports: ReportPair) -> ReportComparison:
    """Compare two runs over the cases that ran in both; failing cases of one alone got worse."""
    comparison = ReportComparison()
    for suites, where in zip(reports.alone, ("this run", "the baseline"), strict=True):
        comparison.notes.extend(f"{lone_suite.suite} ({lone_suite.path}) is only in {where}" for lone_suite in suites)
    for here, there in reports.both:
        changed = remeasured(here, there)
        pair = paired_scores(
            here, there, [name for name in here.metrics if name in there.metrics and name not in changed]
        )
        comparison.notes.extend(f"{here.suite}: {name} is computed in another way" for name in changed)
        comparison.notes.extend(f"{here.suite}: {name} no longer has a value" for name in pair.vanished)
        comparison.notes.extend(f"{here.suite}: {reason}" for reason in _left_out(pair))
        if pair.here.cases:
            _sort(comparison, here, report_changes(pair, "the baseline"))
            comparison.regressed.extend(_regressed(pair))
    for suite, before in reports.earlier_cases:
        alone_here = (case for case in suite.cases if case.outcome in CaseRecord.BAD and case.id not in before)
        new = (False, True, False, False, 0.0)
        comparison.regressed.extend(
            CaseLine(suite, case, f"{case.outcome}; not in the baseline", CaseReport.not_run(), rank=new)
            for case in alone_here
        )
    comparison.regressed.sort(key=lambda each: each.rank, reverse=True)
    return comparison


def _left_out(pair: PairedScores) -> Iterator[str]:
    """Yield reasons why a comparison of two reports of a suite does not cover all of its cases."""
    if pair.by_content:
        yield f"{counted(pair.by_content, 'case')} matched by content"
    for ids, where in zip(pair.alone, ("this run", "the baseline"), strict=True):
        if ids:
            yield f"{counted(len(ids), 'case')} ran only in {where}"
    if not pair.here.cases:
        yield "no case ran in both"


def approved_comparison(run: RunReport) -> ReportComparison | None:
    """Return the comparison with the approved scores that a report has; ``None`` if it has none."""
    compared = [(suite, suite.changes) for suite in run.suites if suite.changes is not None]
    comparison = ReportComparison()
    for suite, changes in compared:
        _sort(comparison, suite, changes)
        comparison.notes.extend(f"{suite.suite}: {note}" for note in changes.notes)
    return comparison if compared else None


def _sort(comparison: ReportComparison, suite: SuiteReport, changes: Changes) -> None:
    """Sort the changed metrics of a suite into declined, improved and unclear ones."""
    for metrics, named in (
        (comparison.declined, changes.named("declined")),
        (comparison.improved, changes.named("improved")),
        (comparison.unclear, changes.named("not_significant", "undecided")),
    ):
        metrics.extend(Change(suite, name, change) for name, change in named.items())


def _regressed(pair: PairedScores) -> Iterator["CaseLine"]:
    """Yield the cases of a suite that got worse since the baseline, as lines of the pull-request comment."""
    before = {case.id: case for case in pair.there.cases}
    gated = set(pair.here.gated)
    fallen = {case for gate in pair.here.gates for case in gate.fallen}
    for case in pair.here.cases:
        old = before[case.id]
        newly = case.outcome in CaseRecord.BAD and old.outcome not in CaseRecord.BAD
        drops: list[tuple[bool, bool, float, str]] = []
        for name in pair.evaluator.metrics:
            now, then = case.metrics.get(name), old.metrics.get(name)
            if now is not None and then is not None:
                drop = now - then if name in pair.evaluator.lower_is_better else then - now
                low, high = pair.evaluator.ranges.get(name, (0.0, 0.0))
                if drop > TOLERANCE:
                    drops.append((name in gated, high > low, drop / (high - low) if high > low else drop, name))
        looked_at, bounded, share, metric = max(drops, default=(False, False, 0.0, ""))
        if newly or metric:
            parts = [f"{old.outcome} -> {case.outcome}"] if case.outcome != old.outcome else []
            if metric:
                parts.append(f"{metric} {number(old.metrics[metric])} -> {number(case.metrics[metric])}")
            rank = case.id in fallen, newly, looked_at, bounded, share
            yield CaseLine(pair.here, case, "; ".join(parts), old, rank=rank)


_WORDS = re.compile(
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f]|[^\s\u3040-\u30ff\u3400-\u9fff]+"
)
"""A character of a script without spaces, or what stands between spaces."""
_LONGEST = 160
"""Characters of a question or an answer."""
_COMPARED = 400
"""Words of an answer that are compared; two long ones take a time that grows with the square."""
_AROUND = 4
"""Words that stay on either side of a difference."""
_ALIKE = 0.4
"""Similarity from which differences are marked; below, both answers are clearer than their mixture."""


class _Word(NamedTuple):
    """A word of an answer, as the word-by-word comparison of two answers splits it."""

    text: str
    spaced: bool
    """Whether a space stands before it."""


def question_and_answers(now: CaseReport, before: CaseReport | None = None) -> Iterator[str]:
    """Yield lines of Markdown with the question and the answers, as far as the reports have them.

    Args:
        now: What the report shows of the case.
        before: What the baseline shows of it; ``None`` if there is no baseline.
    """
    notes = [CaseReport.not_run() if before is None else before, now]
    question = next((note.question_text for note in reversed(notes) if note.input is not None), None)
    if question is not None:
        yield f"asked: {_beginning(question)}"
    old, new = (note.answers[0].text if note.answers else None for note in notes)
    if old is None and new is not None and now.expected_text is not None:
        yield from _compared(now.expected_text, new, ("expected", "answered"))
    elif old is None or new is None:
        named = (("before", old), ("now" if before is not None else "answered", new))
        yield from (f"{name}: {_beginning(answer)}" for name, answer in named if answer is not None)
    elif old == new:
        yield f"answer, as before: {_beginning(new)}"
    else:
        yield from _compared(old, new)


def _beginning(line: str) -> str:
    """The start of a question or an answer, escaped for the Markdown of the pull-request comment."""
    return text(excerpt(line, _LONGEST, count=True), cell=False)


def _compared(old: str, new: str, names: tuple[str, str] = ("before", "now")) -> Iterator[str]:
    """Yield Markdown that marks the words in which two answers to a case differ."""
    left, right = _words(old), _words(new)
    matcher = SequenceMatcher(None, [word.text for word in left], [word.text for word in right], autojunk=False)
    if max(len(left), len(right)) > _COMPARED or matcher.ratio() < _ALIKE:
        yield from [] if names[0] == "before" else [f"{names[0]} (-) and {names[1]} (+):"]
        yield _diff_block(old, new)
        return
    parts: list[str] = []
    room = _LONGEST
    blocks = matcher.get_opcodes()
    for place, (kind, i1, i2, j1, j2) in enumerate(blocks):
        if kind == "equal":
            pieces = [("", _shortened(right[j1:j2], first=place == 0, last=place == len(blocks) - 1))]
        else:
            pieces = [("del", left[i1:i2]), ("ins", right[j1:j2])]
        for tag, words in pieces:
            if words and room > 0:
                joined = _joined(words)
                beginning = excerpt(joined, max(room, _AROUND), count=True)
                parts.append(_marked(tag, beginning, spaced=bool(parts) and words[0].spaced))
                room -= len(joined)
    against = "" if names[0] == "before" else f" against {names[0]}"
    yield f"answer{against}: {''.join(parts)}{'' if room > 0 else ' ...'}"


def _diff_block(old: str, new: str) -> str:
    """A Markdown code block with the difference of two answers, in which code hosts link nothing."""
    lines = [f"{sign} {excerpt(line, _LONGEST, count=True)}" for sign, line in (("-", old), ("+", new))]
    inert = "\n".join(lines).replace("<!--", "<\\!--")
    return fenced(inert, "diff")


def fenced(code: str, language: str) -> str:
    """A Markdown code block with a fence that the code does not close."""
    fence = "`" * max(3, max(map(len, re.findall("`+", code)), default=0) + 1)
    return f"{fence}{language}\n{code}\n{fence}"


def _words(value: str) -> list[_Word]:
    """Split an answer into words for the word-by-word comparison in the pull-request comment."""
    return [
        _Word(match.group(), match.start() > 0 and value[match.start() - 1].isspace())
        for match in _WORDS.finditer(value)
    ]


def _shortened(words: Sequence[_Word], *, first: bool, last: bool) -> Sequence[_Word]:
    """The words of an answer next to a difference from the other answer, with long runs cut."""
    start, end = (0 if first else _AROUND), (0 if last else _AROUND)
    if len(words) <= start + end + 1:
        return words
    head, tail = words[:start], words[len(words) - end :] if end else []
    last_words = [tail[0]._replace(spaced=True), *tail[1:]] if tail else []
    return [*head, _Word("...", spaced=True), *last_words]


def _joined(words: Sequence[_Word]) -> str:
    """Join the words of an answer with the spaces that they had."""
    return "".join(f"{' ' if place and word.spaced else ''}{word.text}" for place, word in enumerate(words))


def _marked(tag: str, words: str, *, spaced: bool) -> str:
    """Escaped words of an answer, marked as inserted or deleted; words that a code host would link become code."""
    piece = f"<{tag}>{text(words, cell=False)}</{tag}>" if tag else text(words, cell=False)
    return f"{' ' if spaced else ''}{piece}"


_NAMED = 7
"""Cases alike that a line names."""
_FINDING = 95
_MOST_FINDINGS = 3


class CaseLine(NamedTuple):
    """A case as an item of a list: where it is, what changed, question and answers, and what is wrong.

    Attributes:
        suite: Of the case, with its system.
        case: The case.
        change: What changed.
        before: What the baseline shows of it; ``None`` without one.
        alike: Ids of further cases of the suite that fail alike.
        rank: Sorts cases that got worse, the worst first: those whose fall failed a gate, new failures, then what gates
            look at, then shares of a metric's range; metrics without a range, such as seconds, come last.
    """

    suite: SuiteReport
    case: CaseReport
    change: str
    before: CaseReport | None = None
    alike: tuple[str, ...] = ()
    rank: tuple[bool, bool, bool, bool, float] = (False, False, False, False, 0.0)

    @property
    def lacks_old_answer(self) -> bool:
        """Whether only the answer of this run is known."""
        return self.before is not None and not self.before.answers and bool(self.case.answers)

    def key(self, shared_reason: Callable[[CaseReport], str]) -> tuple[str, str]:
        """The reason that it shares with others, else its id."""
        reason = shared_reason(self.case)
        return reason, "" if reason else self.case.id

    @property
    def node(self) -> str:
        """The case on a command line of pytest."""
        variant = f"[{self.suite.variant}]" if self.suite.variant else ""
        return f"{self.suite.path}::{self.case.id}{variant}"

    @property
    def named(self) -> str:
        """Its id, suite and system as Markdown, and how many fail alike."""
        more = f" and {len(self.alike)} more" if self.alike else ""
        return f"{text(self.case.id, cell=False)}{more} of {text(self.suite.suite, cell=False)}"

    def written(self, links: SourceLinks) -> str:
        """Return the item."""
        case = self.case
        place = links.file(text(case.place(self.suite.path), cell=False), case.file or self.suite.path, case.line)
        wrong = case.findings[:_MOST_FINDINGS] or ([case.reason] if case.reason else [])
        named = f"**{text(case.id, cell=False)}** of {text(self.suite.suite, cell=False)}"
        others = listed((text(case_id, cell=False) for case_id in self.alike), _NAMED, " and {} more")
        alike = f"<br>the same in {counted(len(self.alike), 'more case')}: {others}" if self.alike else ""
        lines = [
            f"{named} ({place}): {text(self.change, cell=False)}{alike}",
            *question_and_answers(case, self.before),
            *(text(excerpt(finding, _FINDING, count=True), cell=False) for finding in wrong),
        ]
        parts = [
            [line.replace("\n", "\n  ") for line in run] if is_block else ["<br>".join(run)]
            for is_block, run in groupby(lines, key=lambda line: "\n" in line)
        ]
        return "- " + "\n\n  ".join(chain.from_iterable(parts))


def grouped_cases(lines: Iterable[CaseLine], shared_reason: Callable[[CaseReport], str]) -> list[CaseLine]:
    """Group the failing cases of a pull-request comment that fail alike, the most frequent failures first.

    Args:
        lines: A line for each case.
        shared_reason: Returns the reason by which a case is grouped; empty if it is shown alone.
    """
    groups = grouped(((line.suite.path, line.suite.suite, line.key(shared_reason)), line) for line in lines)
    listed = [first._replace(alike=tuple(other.case.id for other in others)) for first, *others in groups.values()]
    return sorted(listed, key=lambda each: -len(each.alike))


def failing_case(suite: SuiteReport, case: CaseReport) -> CaseLine:
    """A failing case as an item of a pull-request comment that names its outcome."""
    return CaseLine(suite, case, case.outcome.replace("_", " "))
