"""Files of notes: what they say in any order, after renaming, merging and splitting, and what is wrong with a line."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.core import LlmevalError, ShownPrints, SuiteError
from pytest_llmeval.workbench.reviews.modes import (
    ModeBook,
    ModeCreated,
    ModeLine,
    ModeNote,
    ModeProposed,
    ModeRenamed,
    ModesMerged,
    ModeSplit,
    mode_line,
    read_modes,
)


def at(second: int) -> str:
    return f"2026-11-26T10:00:{second:02}.000Z"


def note(second: int, answer: str, *modes: str, by: str = "ana", **more: Any) -> ModeNote:
    return ModeNote(by, at(second), "q", answer, "r", modes, **more)


def said(book: ModeBook) -> list[tuple[str, str, tuple[str, ...]]]:
    return sorted((each.answer, each.by, each.modes) for each in book.notes)


LINES: Sequence[ModeLine] = (
    ModeCreated("ana", at(0), "window", "A wrong number of days"),
    note(1, "a1", "window"),
    note(2, "a2", "window", "rude"),
    note(3, "a2", "rude", by="ben"),
    ModeSplit("ana", at(4), "window", "days", (ShownPrints("q", "a2", "r"),)),
    ModeRenamed("ben", at(5), "window", "refund window"),
    note(6, "a3", "window"),  # by somebody who has not seen the new name
)


def test_notes_have_the_modes_that_count_now_in_any_order_of_the_lines() -> None:
    for start in range(len(LINES)):
        order = [*LINES[start:], *LINES[:start]][:: 1 if start % 2 else -1]
        book = ModeBook([*order, order[0]])  # a union may repeat a line
        assert book.names == ["refund window", "rude", "days"]
        assert said(book) == [
            ("a1", "ana", ("refund window",)),
            ("a2", "ana", ("days", "rude")),
            ("a2", "ben", ("rude",)),
            ("a3", "ana", ("refund window",)),
        ]
    assert book.texts == {"refund window": "A wrong number of days"}
    assert [has for each, has in book.labelled("window") if each.answer == "a1"] == [True]
    with pytest.raises(LlmevalError, match="unknown failure mode windo, expected one of days, refund window, rude"):
        book.name_of("windo")


def test_merged_modes_and_modes_of_one_name_are_one_and_may_be_said_anew() -> None:
    merged = ModeBook([*LINES, ModesMerged("ana", at(7), "days", "rude"), ModesMerged("ben", at(8), "rude", "days")])
    assert merged.names == ["refund window", "rude"]  # the second merge finds one mode
    assert ("a2", "ana", ("rude",)) in said(merged)
    alike = ModeBook([*LINES, ModeRenamed("ana", at(9), "days", "rude")])
    assert alike.names == ["refund window", "rude"]
    later = ModeBook([*LINES, note(9, "a2", "window")])  # a note after a split is not split
    assert ("a2", "ana", ("refund window",)) in said(later)
    right = ModeBook([*LINES, note(9, "a1")])
    assert ("a1", "ana", ()) in said(right)


def test_a_proposal_is_no_mode_until_a_person_makes_it() -> None:
    proposed = ModeProposed("judge", at(1), "late", "Too late", (ShownPrints("q", "a1", "r"),))
    book = ModeBook([*LINES, proposed])
    assert (book.names, book.proposals) == (ModeBook(LINES).names, [proposed])
    assert ModeBook([*LINES, proposed, ModeCreated("ana", at(2), "late")]).proposals == []


BAD = {
    '{"event": "note", "by": "ana", "at": "2026-11-26T10:00:00.000Z"}': "missing required field `question`",
    '{"event": "guess", "by": "ana"}': "Invalid value 'guess'",
    '{"event": "rename", "by": "ana", "at": "now", "mode": "a", "name": "b"}': "at: found 'now', expected a time",
    mode_line(note(1, "a", " ")).strip(): "modes: found an empty text",
    mode_line(ModeRenamed("ana", at(1), "a", "")).strip(): "name: found an empty text",
    mode_line(note(1, "a", probability=1.5)).strip(): "probability: found 1.5",
    "<<<<<<< HEAD": "expected",
}


def test_each_bad_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "modes.jsonl"
    path.write_text("".join(map(mode_line, LINES)) + "\n".join(BAD), encoding="utf-8")
    with pytest.raises(SuiteError) as caught:
        read_modes([path])
    faults = {each.line: each.message for each in caught.value.faults}
    assert len(faults) == len(BAD)
    for line, message in enumerate(BAD.values(), len(LINES) + 1):
        assert message in faults[line]


def test_a_file_of_another_kind_is_named_once(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text('{\n"suites": [\n]\n}\n', encoding="utf-8")
    with pytest.raises(SuiteError) as caught:
        read_modes([tmp_path / "r.json"])
    (fault,) = caught.value.faults
    assert fault.message == "found a JSON file, expected lines of notes, which llmeval review --modes writes"


def git(folder: Path, *arguments: str) -> None:
    user = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *user, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_files_of_two_branches_merge_without_loss(tmp_path: Path) -> None:
    path = tmp_path / "modes.jsonl"
    (tmp_path / ".gitattributes").write_text("modes.jsonl merge=union\n", encoding="utf-8")
    path.write_text("".join(map(mode_line, LINES[:2])), encoding="utf-8")
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "Begin")
    for branch, lines in (("other", LINES[2:5]), ("main", LINES[5:])):
        git(tmp_path, "checkout", "-q", *(("-b",) if branch == "other" else ()), branch)
        with path.open("a", encoding="utf-8") as file:
            file.writelines(map(mode_line, lines))
        git(tmp_path, "commit", "-qam", branch)
    git(tmp_path, "merge", "-q", "--no-edit", "other")
    assert read_modes([path]).lines == ModeBook(LINES).lines
