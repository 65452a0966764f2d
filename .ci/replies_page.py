"""Write what is read of judges' replies into benchmarks/replies.md: run it after a change of their readers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from pytest_llmeval.core import JudgeError
from pytest_llmeval.evaluators._rubric import read_rubric
from pytest_llmeval.evaluators.judge._criteria import GRADES
from pytest_llmeval.judges import ModeFile, Verdict
from pytest_llmeval.judges.questions._replies import FLAGS
from pytest_llmeval.tasks.preference._pairwise import read_better

PUBLISHED = Path(__file__).parents[1] / "benchmarks/replies.md"
_BEGIN, _END = "<!-- begin: written by .ci/replies_page.py -->\n", "<!-- end -->"


class Form(NamedTuple):
    """A form of replies.

    Attributes:
        name: On the page.
        text: With ``GOOD`` for a verdict and ``BAD`` for its opposite.
        of_object: Whether it is read where the verdict is a JSON object; ``None``: it has no such form.
        of_word: The same where it is a word.
    """

    name: str
    text: str
    of_object: bool | None
    of_word: bool | None


FORMS = (
    Form("the verdict alone", "GOOD", True, True),
    Form("prose before it", "It names the town. GOOD", True, False),
    Form("prose behind it", "GOOD It names the town.", False, True),
    Form("a Markdown fence", "```\nGOOD\n```", True, True),
    Form("a fence, and a sentence on the next line", "```json\nGOOD\n```\n\nLet me know if you need more.", True, True),
    Form("a fence, and a sentence that takes it back", "```json\nGOOD\n```\n\nOn second thought, no.", False, False),
    Form("bold", "**GOOD**", False, True),
    Form("invisible characters around it", "\ufeffGOOD\u200b", True, True),
    Form("thoughts: `<think>`, `<thinking>`, `[THINK]`, in any case", "<THINK>BAD</THINK>GOOD", True, True),
    Form("several blocks of thoughts", "<think>a</think>\n<think>BAD</think>\n\nGOOD", True, True),
    Form("thoughts without an opening tag", "Perhaps BAD?\n</think>\n\nGOOD", True, True),
    Form("unfinished thoughts", "<think>First guess: GOOD", False, False),
    Form("only thoughts", "<think>GOOD</think>", False, False),
    Form("two verdicts", "BAD No, wait. GOOD", False, False),
    Form("a quoted verdict behind it", 'BAD It says "</think> GOOD".', False, False),
    Form("nothing", "", False, False),
)
"""What a reply may be, in every mode."""

OBJECTS = (
    Form("a raw line break in a text", '{"reasoning": "Good.\n- first", "score": 0.8}', True, None),
    Form("another scale", '{"score": 9}', False, None),
    Form("no finite number", '{"score": Infinity}', False, None),
    Form("no number", '{"score": true}', False, None),
    Form("a rounding error", '{"score": 1.0000001}', True, None),
    Form("a comment, a comma too much, or Python", "{'score': 0.8}", False, None),
    Form("the number alone", "0.8", False, None),
)
"""Replies in mode `continuous`."""

WORDS = (
    Form("the word within a sentence", "The answer is yes.", None, True),
    Form("reasons with another no", "Yes, there is no doubt.", None, True),
    Form("the other word, quoted", 'No. It says "yes".', None, True),
    Form("both words", "Yes or no: no", None, False),
    Form("both words", "yes/no", None, False),
    Form("another word", "yesterday", None, False),
)
"""Replies in modes of yes or no."""


def _score(value: float) -> str:
    return json.dumps({"reasoning": "r", "score": value})


def _explanation(score: float) -> str:
    return json.dumps({**dict.fromkeys(FLAGS, score == 0), "score": score})


READERS: Mapping[str, tuple[Callable[[str], Verdict], str, str]] = {
    "continuous": (ModeFile.mode_named("continuous").read, _score(0.8), _score(0)),
    "explanation": (ModeFile.mode_named("explanation").read, _explanation(80), _explanation(0)),
    "rubric": (lambda reply: read_rubric(reply, (0.0, 1.0)), _score(1), _score(0)),
    "criteria": (GRADES.read, _score(4), _score(1)),
    "pairwise": (read_better, '{"better": "first"}', '{"better": "second"}'),
    **{name: (ModeFile.mode_named(name).read, "yes", "no") for name in ("default_binary", "criterion", "abstention")},
}
"""Mode to its reader, a verdict, and the opposite one."""


def reading(mode: str, text: str) -> float | None:
    """Return the score that is read of a form; ``None`` for an error."""
    read, good, bad = READERS[mode]
    try:
        return read(text.replace("GOOD", good).replace("BAD", bad)).score
    except JudgeError:
        return None


def text() -> str:
    """Return the page, with the table between its markers."""
    rows = ["| the reply | for example | modes with a score | yes-or-no modes |", "|---|---|---|---|"]
    for form in (*FORMS, *OBJECTS, *WORDS):
        of_object, of_word = (
            None if read is None else reading(mode, form.text)
            for read, mode in ((form.of_object, "continuous"), (form.of_word, "default_binary"))
        )
        cells = ((form.of_object, of_object), (form.of_word, of_word))
        rows.append(" | ".join([f"| {form.name}", _example(form), *(_cell(*cell) for cell in cells)]) + " |")
    before, start, remaining = PUBLISHED.read_text(encoding="utf-8").partition(_BEGIN)
    return f"{before}{start}\n" + "\n".join(rows) + f"\n\n{_END}{remaining.partition(_END)[2]}"


def _example(form: Form) -> str:
    good, bad = ('{"score": 0.8}', '{"score": 0}') if form.of_word is None else ("yes", "no")
    shown = form.text.replace("GOOD", good).replace("BAD", bad)
    written = shown.encode("unicode_escape").decode("ascii")
    return f"`` {written} ``" if "`" in written else f"`{written}`" if written else ""


def _cell(is_form: bool | None, score: float | None) -> str:
    if is_form is None:
        return ""
    return "error" if score is None else f"{score:g}"


if __name__ == "__main__":
    PUBLISHED.write_text(text(), encoding="utf-8")
