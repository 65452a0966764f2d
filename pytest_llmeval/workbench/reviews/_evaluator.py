"""The command ``llmeval evaluator``: what will watch for a failure mode, made of the answers that people noted."""

import getpass
import json
import math
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

from pytest_llmeval.cli import CommandResult, say
from pytest_llmeval.core import Case, CaseLabels, LlmevalError, counted, interval, number
from pytest_llmeval.data import OutputFile
from pytest_llmeval.evaluators import JudgeAgreement
from pytest_llmeval.reports import RunReport, SuiteReport
from pytest_llmeval.run import get_checks, score
from pytest_llmeval.workbench._console import refuse_input
from pytest_llmeval.workbench.reviews._items import ReviewItem, review_items
from pytest_llmeval.workbench.reviews.modes import MODES_FILE, ModeBook, SplitOpened, add_lines, read_modes

SplitName: TypeAlias = Literal["examples", "development", "test"]

_SPLITS: Final[Sequence[SplitName]] = (*(("examples", "development", "test") * 2), *(("development", "test") * 2))
"""Two in ten answers are examples, four are for development, and four stay unseen until the end."""

_MOST_EXAMPLES = 4
_LONGEST_EXAMPLE = 1_500
_SHORTEST = 20
"""Characters of a text that is recognized in another one: shorter answers, such as yes, are in many."""

_REPLY: Final = {"reason": "text", "failure": {"good": False}}
_GATES = ("tpr >= 0.8", "tnr >= 0.8")
_UNSAFE = re.compile(r"[<>&{}\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of ``llmeval evaluator``."""
    parser.description = (
        "Write what will watch for a failure mode: a yes/no judge with the criterion and examples, and "
        "a suite that compares it with people. With --check, the suite has a check in place of the judge; the command "
        "also says how well it tells answers with the mode from others. Noted answers are split once, by their "
        "content: into examples, answers for development, and a test that --final opens."
    )
    parser.add_argument("mode", metavar="MODE", help="the failure mode, as llmeval modes prints it")
    parser.add_argument("report", type=Path, metavar="REPORT", help="the JSON report whose answers people noted")
    parser.add_argument(
        "--notes", type=Path, action="append", metavar="FILE", help=f"file of notes; can be repeated ({MODES_FILE})"
    )
    parser.add_argument("--check", metavar="JSON", help="a check in place of a judge, such as '{\"max_words\": 80}'")
    parser.add_argument("--final", action="store_true", help="open the test split; the file of notes records it")
    parser.add_argument("--annotator", default="", metavar="NAME", help="who opens it (default: the user's name)")
    parser.add_argument("--suite", metavar="NAME", help="the suite, where the report has several")
    parser.add_argument("--folder", type=Path, default=Path(), metavar="DIR", help="where to write (default: here)")
    parser.set_defaults(run=_evaluator)


class NotedAnswer(Struct, frozen=True):
    """An answer with the notes of reviewers on a failure mode, from which an evaluator is made.

    Attributes:
        item: The answer, as reviews show it.
        prediction: The whole prediction, as the report has it.
        human: Of each person: 0 if the answer has the mode, else 1.
        notes: What they wrote.
    """

    item: ReviewItem
    prediction: Any
    human: tuple[int, ...]
    notes: tuple[str, ...] = ()

    @property
    def split(self) -> SplitName:
        """Its part, which depends on the text of the answer alone: equal answers never stand in two."""
        digest = sha256(_plain(self.item.answer).encode()).hexdigest()
        return _SPLITS[int(digest[:8], 16) % len(_SPLITS)]


def _plain(text: str) -> str:
    """A text without differences of case and spacing, to search a judge prompt for answers."""
    return " ".join(text.casefold().split())


def noted_answers(mode: str, book: ModeBook, suites: Sequence[SuiteReport]) -> list[NotedAnswer]:
    """The answers of a report that reviewers noted, in an order that does not depend on files.

    Raises:
        LlmevalError: There is no such mode, or the report has none of the noted answers.
    """
    human: dict[Any, dict[str, tuple[int, str]]] = {}
    for note, has_mode in book.labelled(mode):
        human.setdefault(note.prints, {})[note.by] = int(not has_mode), note.note if has_mode else ""
    predictions = {case.id: case.answers[0].value for suite in suites for case in suite.cases if case.answers}
    noted = []
    for item in sorted(review_items(suites)[0], key=lambda each: each.prints):
        if by_person := human.get(item.prints):
            labels = [by_person[name] for name in sorted(by_person)]
            texts = tuple(text for _, text in labels if text)
            noted.append(NotedAnswer(item, predictions.get(item.cases[0]), tuple(label for label, _ in labels), texts))
    if not noted:
        raise LlmevalError(f"the report has none of {counted(len(human), 'noted answer')}: name that of their run")
    return noted


def _evaluator(options: Namespace) -> CommandResult:
    """Run ``llmeval evaluator``: write a judge prompt or a check for a failure mode, with a suite that tests it."""
    files = options.notes or [Path(MODES_FILE)]
    book = read_modes(files)
    name = book.name_of(options.mode)
    suites = [
        report
        for report in RunReport.read(options.report).suites
        if options.suite in (None, report.base_name, report.path)
    ]
    if len({report.path for report in suites}) != 1:
        known = sorted({report.base_name for report in suites})
        raise LlmevalError(f"{options.report}: found {counted(len(known), 'suite')}, expected one: name it by --suite")
    noted = noted_answers(name, book, suites)
    stem = re.sub(r"\W+", "-", name.lower()).strip("-") or "mode"
    prompt = options.folder / f"{stem}.md"
    if options.final:
        if options.check is None:
            _check_unseen(prompt, noted)
        _open_test(name, noted, book, files[-1], options.annotator)
    chosen = [answer for answer in noted if answer.split == ("test" if options.final else "development")]
    parts = [stem, *(["check"] if options.check is not None else []), *(["final"] if options.final else [])]
    suite = options.folder / f"{'.'.join(parts)}.eval.json"
    refuse_input(suite, options.report, *files)
    lines: list[str] = []
    files_made = [suite]
    if options.check is not None:
        lines += check_lines(options.check, chosen)
        written = checked_text(name, stem, json.loads(options.check), chosen)
    else:
        if not options.final and not prompt.exists():  # one that exists may have been edited
            OutputFile(prompt).save_text([judge_prompt(name, book.texts.get(name, ""), noted)])
            lines.append(f"wrote {prompt}")
            files_made.insert(0, prompt)
        written = suite_text(stem, prompt.name, chosen)
    OutputFile(suite).save_text([written])
    lines.append(f"wrote {suite}: {_counts(chosen)}")
    held = [] if options.final else [answer for answer in noted if answer.split == "test"]
    if not options.final:
        lines += [f"kept for --final: {_counts(held)}", f"next: pytest --llmeval {suite}"]
    counts = {"answers": len(chosen), "held_out": len(held)}
    return CommandResult(0, {"written": [*map(str, files_made)], **counts}, lines)


def _check_unseen(prompt: Path, noted: Sequence[NotedAnswer]) -> None:
    """Refuse to test a judge prompt that contains an answer of the test split.

    Raises:
        LlmevalError: It has one, or it cannot be read.
    """
    try:
        text = _plain(prompt.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise LlmevalError(
            f"{prompt}: the prompt to test cannot be read ({error}): run without --final first"
        ) from None
    for noted_answer in noted:
        answer = _plain(noted_answer.item.answer)
        if (
            noted_answer.split == "test"
            and len(answer) >= _SHORTEST
            and (answer in text or _plain(_as_data(answer)[1:-1]) in text)
        ):
            raise LlmevalError(
                f"{prompt}: found the answer to case {noted_answer.item.cases[0]!r}, expected none of the test split"
            )


def _open_test(mode: str, noted: Sequence[NotedAnswer], book: ModeBook, path: Path, annotator: str) -> None:
    """Record in the notes file that the test split is open, before any of it is written or printed."""
    before = sum(isinstance(line, SplitOpened) and book.name_of(line.mode) == mode for line in book.lines)
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    answers = tuple(answer.item.prints.answer for answer in noted if answer.split == "test")
    try:
        add_lines(path, [SplitOpened(annotator or getpass.getuser(), now, mode, answers)])
    except OSError as error:
        raise LlmevalError(f"{path}: cannot be written ({error.strerror}), so the test split stays closed") from None
    seen = f"; it was opened {counted(before, 'time')} before, so its answers are no longer unseen" if before else ""
    say([f"opened the test split of {mode!r}{seen}"])


def _counts(chosen: Sequence[NotedAnswer]) -> str:
    """The number of noted answers with and without a failure mode, in words."""
    failing = sum(min(answer.human) == 0 for answer in chosen)
    return f"{counted(failing, 'answer')} with the failure, {len(chosen) - failing} without"


def judge_prompt(mode: str, text: str, noted: Sequence[NotedAnswer]) -> str:
    """The judge prompt for a failure mode: the criterion, and examples from the answers of their split.

    An example that has the text of an answer of another split, or is part of one, is left out.
    """
    others = [_plain(answer.item.answer) for answer in noted if answer.split != "examples"]
    lines = []
    for failing in (True, False):
        own = [answer for answer in noted if answer.split == "examples" and set(answer.human) == {int(not failing)}]
        drawn = [answer for answer in own if not _overlaps(_plain(answer.item.answer), others)]
        for answer in drawn[: _MOST_EXAMPLES // 2]:
            example = {"question": answer.item.question, "answer": answer.item.answer, "failure": failing}
            if answer.notes:
                example["reason"] = answer.notes[0]
            lines.append("- " + "; ".join(f"{name}: {_as_data(_cut(value))}" for name, value in example.items()))
    head = [
        "You look for one failure in an answer, and for nothing else.",
        "",
        f"The failure: {_as_data(f'{mode}. {text}'.strip())}",
        "",
        "Say true if the answer has this failure, and false if it does not, however good or bad it is in other ways.",
        "The question is {{ question }}, the answer {{ answer }}.",
    ]
    examples = ["", "Examples that people judged, as data:", "", *lines] if lines else []
    return "\n".join([*head, *examples, ""])


def _overlaps(text: str, others: Iterable[str]) -> bool:
    """Whether an answer contains an answer of another split, or is part of one."""
    return any(text in other or other in text for other in others if min(len(text), len(other)) >= _SHORTEST)


def _cut(value: Any) -> Any:
    """A text of an answer, shortened for the examples of a judge prompt."""
    return value[:_LONGEST_EXAMPLE] if isinstance(value, str) else value


def _as_data(value: Any) -> str:
    """JSON for a judge prompt in which no text closes a block, breaks a line or is a placeholder."""
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(value, ensure_ascii=False))


def suite_text(stem: str, prompt: str, chosen: Sequence[NotedAnswer]) -> str:
    """The suite file that compares a new judge with the reviewers."""
    cases = [
        {
            "id": _case_id(answer, place),
            "input": answer.item.question,
            "expected": {"reference": answer.item.reference or None, "human": list(answer.human)},
            "prediction": answer.item.answer,
        }
        for place, answer in enumerate(chosen)
    ]
    evaluator = {"judge_agreement": {"prompt": prompt, "reply": _REPLY}}
    data = {"suite": stem, "evaluators": [evaluator], "gates": list(_GATES), "cases": cases}
    return json.dumps(data, indent=1) + "\n"


def _case_id(answer: NotedAnswer, place: int) -> str:
    """The id of a noted answer as a case of the suite that tests an evaluator."""
    return answer.item.prints.answer.removeprefix("sha256:")[:12] + f"-{place}"


def checked_text(mode: str, stem: str, check: Any, chosen: Sequence[NotedAnswer]) -> str:
    """The suite file of a check for a failure mode: answers that have the failure are to fail (``xfail``)."""
    cases = [
        {
            "id": _case_id(answer, place),
            "input": answer.item.question,
            "prediction": answer.prediction,
            **({"modes": [CaseLabels.as_mode(mode)], "tags": ["xfail"]} if min(answer.human) == 0 else {}),
        }
        for place, answer in enumerate(chosen)
    ]
    return json.dumps({"suite": stem, "evaluators": [], "checks": [check], "cases": cases}, indent=1) + "\n"


def check_lines(text: str, chosen: Sequence[NotedAnswer]) -> Iterator[str]:
    """Yield the lines on a check for a failure mode: its suite entry, and how well it finds the failure.

    Raises:
        LlmevalError: The text is no check.
    """
    try:
        check = json.loads(text)
    except ValueError as error:
        raise LlmevalError(f'--check: invalid JSON ({error}), expected a check such as {{"max_words": 80}}') from None
    cases = [
        Case(str(place), input=answer.item.question, prediction=answer.prediction)
        for place, answer in enumerate(chosen)
    ]
    scores = score(get_checks(check), cases, confidence=None).case_scores["check_rate"]
    known = [(answer, value) for answer, value in zip(chosen, map(float, scores), strict=True) if math.isfinite(value)]
    rates = JudgeAgreement.rates_of(
        (float(value >= 1), sum(answer.human) / len(answer.human)) for answer, value in known
    )
    yield f"checks: [{json.dumps(check)}]"
    for name, words in (("tnr", "with the failure, not met"), ("tpr", "without it, met")):
        share, basis = rates[name]
        if basis.fault or basis.interval is None:
            yield f"{words}: {basis.fault}"
        else:
            bounds = interval(*basis.interval(0.95, 1.0))
            yield f"{words}: {number(share)} of {counted(round(basis.cases), 'answer')}, 95 % interval {bounds}"
    if len(known) < len(chosen):
        yield f"{counted(len(chosen) - len(known), 'answer')} without the part that the check reads"
