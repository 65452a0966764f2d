"""The traces and notes of the page "From traces to tests": the agent's own, and what a served review keeps.

``python tests/workbench/reviews/test_hundred_traces.py`` writes both files anew.
"""

import contextlib
import importlib
import io
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from pytest_llmeval.workbench.reviews._command import NoteFile
from pytest_llmeval.workbench.reviews._items import read_answers, review_of

EXAMPLE = Path(__file__).parents[3] / "example_suites" / "agent_user"
TRACES, NOTES = "tickets.otlp.jsonl", "modes.jsonl"

READER = {
    r"from (\w+) to Ghent|I am in (\w+)": ("offers a train to where they are", "wrong direction"),
    r"a refund of \d+ tickets": ("there is no such ticket, they said how many", "number taken for a ticket"),
    r"tickets to [a-z]": ("they did say where to", "asks what was said"),
    r"money back": ("they want a refund", "refund not understood"),
    r"Do not refund": ("they do not want that", "ignores a not"),
    r"seat|dog": ("no answer to the question", ""),
}
"""What Ana notes: a pattern of requests to her note and the failure mode, which notes that occur once or twice lack."""


def traces() -> str:
    """Return what the script of the example prints."""
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as printed:
        patch.syspath_prepend(EXAMPLE)
        importlib.import_module("hundred").main()
    return printed.getvalue()


def notes(folder: Path) -> str:
    """Return the notes that a served review keeps when Ana sends one a minute."""
    review = review_of(read_answers(EXAMPLE / TRACES).suites, seed=1, scale="yesno", draw="random")
    kept = NoteFile(review, folder / "labels.jsonl", folder / NOTES)
    time = datetime(2026, 11, 26, 10, tzinfo=UTC)
    for place, item in enumerate(review.items):
        found = [said for pattern, said in READER.items() if re.search(pattern, item.question)]
        note, mode = found[0] if found else ("", "")
        at = (time + timedelta(minutes=place)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        said = {"label": "no" if found else "yes", "note": note, "modes": [mode] if mode else [], "at": at}
        kept.save(json.dumps({"annotator": "ana", "labels": [{"item": place, **said}], "events": []}).encode())
    return kept.notes.read_text(encoding="utf-8")


def test_the_traces_are_those_of_the_agent_at_a_hundred_requests() -> None:
    assert (EXAMPLE / TRACES).read_text(encoding="utf-8") == traces()


def test_the_notes_are_those_that_a_served_review_of_the_traces_keeps(tmp_path: Path) -> None:
    written = (EXAMPLE / NOTES).read_text(encoding="utf-8")
    assert written == notes(tmp_path)
    assert len(written.splitlines()) == 100


if __name__ == "__main__":
    (EXAMPLE / TRACES).write_text(traces(), encoding="utf-8")
    with TemporaryDirectory() as scratch:
        (EXAMPLE / NOTES).write_text(notes(Path(scratch)), encoding="utf-8")
