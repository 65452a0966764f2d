"""Groups of notes that a judge proposes as failure modes; a person accepts them in the review page, or nobody does."""

import json
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pytest_llmeval.core.errors import JudgeError, LlmevalError
from pytest_llmeval.judge.contract import Mode, Question, Verdict
from pytest_llmeval.judge.options import JudgeOptions
from pytest_llmeval.judge.questions.items import closing_list
from pytest_llmeval.judge.questions.replies import object_schema, text_under, unreadable
from pytest_llmeval.judge.spec import JudgeSpec
from pytest_llmeval.workbench.reviews.modes import ModeBook, ModeNote, ModeProposed

_INSTRUCTIONS: Final = """\
People read answers of an application and noted what went wrong. `notes` has one note a line, after its number.

Put notes about the same failure into one group. A group is about one thing that can be seen in an answer and that one
change of the application could mend; it has a short name in the words of the notes, and one sentence that says what
belongs to it. A note may be in several groups or in none. Do not group by the topic of the question. `modes` are names
that people use already: do not propose these again.

Reply with one JSON object and nothing else:
{"groups": [{"name": "wrong window", "text": "The answer names another period than the policy.", "notes": [1, 4]}]}"""

_TEXT: Final = {"type": "string"}
_GROUP: Final = object_schema(name=_TEXT, text=_TEXT, notes={"type": "array", "items": {"type": "integer"}})
_LONGEST_NAME: Final = 80


def read_groups(reply: str) -> Verdict:
    """Read a JSON object with a list of ``groups``.

    Returns:
        How many there are, and the groups under that name of the details.

    Raises:
        JudgeError: No object ends the reply, or a group has no name or no list of numbers.
    """
    groups = []
    for each in closing_list(reply, "groups"):
        name = text_under(each, "name") if isinstance(each, dict) else ""
        numbers: Any = each.get("notes") if isinstance(each, dict) else None
        if not name or not isinstance(numbers, list) or not all(type(number) is int for number in numbers):
            raise unreadable(reply, "found a group without a name and numbers of notes, expected both")
        groups.append({"name": name[:_LONGEST_NAME], "text": text_under(each, "text"), "notes": numbers})
    return Verdict(float(len(groups)), "", {"groups": groups})


NOTE_GROUPS: Final = Mode(
    "note_groups",
    "1",
    {"en": _INSTRUCTIONS},
    ("notes", "modes"),
    (0.0, 1000.0),
    read_groups,
    object_schema(groups={"type": "array", "items": _GROUP}),
    asks_again=True,
    asks_one=True,
)


def propose_modes(book: ModeBook, path: Path, spec: JudgeSpec, options: JudgeOptions) -> list[ModeProposed]:
    """Ask a judge for groups of notes; equal notes get the stored reply.

    Args:
        book: The notes.
        path: Their file, for messages.
        spec: The judge.
        options: How it is asked.

    Raises:
        LlmevalError: There are no notes with words, or the judge gave no groups.
    """
    from pytest_llmeval.judge.judges import SuiteJudges
    from pytest_llmeval.services.background import Background

    notes = [each for each in sorted(book.notes, key=lambda each: (each.subject, each.by)) if each.note.strip()]
    if not notes:
        raise LlmevalError(f"{path}: found no note in words, expected some to group")
    lines = "\n".join(f"{number}. {' '.join(each.note.split())}" for number, each in enumerate(notes, 1))
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
    known = {*book.names, *(each.mode for each in book.proposals)}
    return [
        ModeProposed(by, at, each["name"], each["text"], _prints(notes, each["notes"]))
        for each in groups
        if each["name"] not in known
    ]


def _prints(notes: Sequence[ModeNote], numbers: Sequence[int]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(notes[number - 1].prints for number in numbers if 1 <= number <= len(notes)))
