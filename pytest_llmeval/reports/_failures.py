"""The text of a failing case, with reason, answer and findings."""

import difflib
import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from pytest_llmeval.core import (
    MISSING,
    Case,
    CaseRecord,
    Parts,
    PredictionError,
    as_line,
    call_text,
    counted,
    printable,
    width_of,
)

_NAMED = re.compile(r"turn (\d+)\b:? ?")
_DIFFERENCE = re.compile("found (.+), expected (.+)")
_MOST_WRONG = 3
_AROUND = 1
_ALL = 3
"""Conversations up to this many turns are shown whole."""
_ALL_STEPS = 12
"""Lists of calls up to this many lines are shown whole."""


class _TraceLine(NamedTuple):
    """A line of a failing case's transcript or list of tool calls.

    Attributes:
        text: The line.
        call: The call that it shows, as findings name it; empty for messages.
        tool: Its name.
        chosen: What it may be in a list of tools: the name, or the only argument, which names a skill.
    """

    text: str
    call: str = ""
    tool: str = ""
    chosen: frozenset[str] = frozenset()

    def is_named(self, finding: str) -> bool:
        """Whether a finding is about this call."""
        if not self.call:
            return False
        difference = _DIFFERENCE.match(finding)
        return (
            self.call in finding
            or finding.startswith(f"{self.tool}: ")
            or (difference is not None and not self.chosen.isdisjoint({*difference[1].split(", ")} - {difference[2]}))
        )


def findings_of(record: CaseRecord) -> list[str]:
    """Findings about a failing case: the evaluators' lines, then the parts of its reason."""
    parts = re.split(r"; |(?<=\w): (?=turn \d|found )", record.reason or "")
    return [*(line for lines in record.lines.values() for line in lines), *parts]


def _in_turns(findings: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield each finding about a conversation with the turn that it begins with; 0 without one."""
    for finding in findings:
        match = _NAMED.match(finding)
        yield (int(match[1]), finding[match.end() :]) if match else (0, finding)


def transcript_lines(messages: Any, findings: Sequence[str] = (), most: int = 160) -> Iterator[str]:
    """Yield a failing conversation's transcript: turns near findings, or the last ones, and how many are left out.

    Args:
        messages: Of the conversation; for any other value, nothing is yielded.
        findings: What is wrong. The calls that it is about are marked, or else the turns that it begins with.
        most: Maximum number of characters of a line.
    """
    if not isinstance(messages, list) or not all(isinstance(message, Mapping) for message in messages):
        return
    starts = [place for place, message in enumerate(messages) if message.get("role") == "user"]
    turns = [messages[start:end] for start, end in pairwise([*starts, len(messages)])]
    if not turns:
        return
    in_turns = list(_in_turns(findings))
    wrong = {turn for turn, _ in in_turns if turn}
    shown_places = _shown_places(len(turns), [turn for turn in wrong if turn <= len(turns)], _ALL)
    count = counted(len(turns), "turn")
    left_out = len(turns) - len(shown_places)
    yield f"transcript: {count}, {left_out} of them left out" if left_out else f"transcript: {count}"
    before = 0
    for turn in shown_places:
        if turn > before + 1:
            yield f"  ... {_range('turn', before + 1, turn - 1)} left out"
        own_findings = [finding for place, finding in in_turns if place in (0, turn)]
        steps = list(_turn(turn, turns[turn - 1]))
        marks = [any(map(step.is_named, own_findings)) for step in steps]
        if turn in wrong and not any(marks):
            marks = [True] * len(steps)
        yield from (
            as_line(f"{'>' if mark else ' '} {step.text}", most) for step, mark in zip(steps, marks, strict=True)
        )
        before = turn
    if before < len(turns):
        yield f"  ... {_range('turn', before + 1, len(turns))} left out"


def call_lines(calls: Any, findings: Sequence[str], most: int = 160) -> Iterator[str]:
    """Yield a failing case's tool calls, numbered: those around calls that findings name, or the last ones.

    Args:
        calls: Of the prediction; for any other value, nothing is yielded.
        findings: What is wrong.
        most: Maximum number of characters of a line.
    """
    if not isinstance(calls, list) or not calls or not all(isinstance(call, Mapping) for call in calls):
        return
    own_findings = [finding for _, finding in _in_turns(findings)]
    numbered: list[tuple[str, _TraceLine]] = []
    first = 1
    for step, equal in groupby(map(_call, calls)):
        last = first + sum(1 for _ in equal) - 1
        numbered.append((f"{first}" if first == last else f"{first}-{last}", _times(step, last - first + 1)))
        first = last + 1
    marks = [any(map(step.is_named, own_findings)) for _, step in numbered]
    shown_places = _shown_places(len(numbered), [place for place, mark in enumerate(marks, 1) if mark], _ALL_STEPS)
    width = max(len(number) for number, _ in numbered)
    yield f"calls: {len(calls)}"
    before = 0
    for place in shown_places:
        if place > before + 1:
            yield f"  ... {_range('line', before + 1, place - 1)} left out"
        number, step = numbered[place - 1]
        yield as_line(f"{'>' if marks[place - 1] else ' '} {number:>{width}} {step.text.removeprefix('call ')}", most)
        before = place
    if before < len(numbered):
        yield f"  ... {_range('line', before + 1, len(numbered))} left out"


def _shown_places(count: int, wrong: Sequence[int], whole: int) -> list[int]:
    """Numbers of the transcript turns or tool calls to show: all of a few, else those around the wrong ones."""
    if count <= whole:
        return list(range(1, count + 1))
    near = [*sorted(wrong)[:_MOST_WRONG]] or [count]
    around = {place for number in near for place in range(number - _AROUND, number + _AROUND + 1)}
    return sorted(place for place in around if 0 < place <= count)


def _range(noun: str, first: int, last: int) -> str:
    """A range of transcript turns or call lines in words, such as ``turns 3 to 5``."""
    return f"{noun} {first}" if first == last else f"{noun}s {first} to {last}"


def _turn(number: int, messages: Sequence[Mapping[str, Any]]) -> Iterator[_TraceLine]:
    """Yield the transcript lines of one turn; equal steps in a row, such as repeated tool calls, share a line."""
    name = f"turn {number} "
    for message in messages:
        for step, equal in groupby(_steps(message)):
            line = _times(step, sum(1 for _ in equal))
            yield line._replace(text=f"{name}{line.text}")
            name = " " * len(name)


def _times(step: _TraceLine, times: int) -> _TraceLine:
    """A transcript line with the number of its repetitions, such as ``(x 3)``."""
    return step._replace(text=f"{step.text} (x {times})") if times > 1 else step


def _steps(message: Mapping[str, Any]) -> Iterator[_TraceLine]:
    """Yield the transcript lines of a message: its texts, tool results and tool calls, in order."""
    role, content = _print_value(message.get("role", "")), message.get("content")
    for block in _blocks(content):
        match block:
            case None | "":
                continue
            case {"type": "text", "text": str(text)}:
                yield _TraceLine(f"{role}: {_print_value(text)}")
            case {"type": "tool_use", "name": _, "input": arguments}:
                yield _call({"name": block["name"], "arguments": arguments})
            case {"type": "tool_result"}:
                yield _TraceLine(f"result: {_print_value(block.get('content'))}")
            case _:
                yield _TraceLine(f"{role}: {_print_value(block)}")
    calls = message.get("tool_calls")
    yield from map(_call, calls if isinstance(calls, list) else ())


def _blocks(content: Any) -> Sequence[Any]:
    """Content blocks of a message in a provider's block form; any other content is the only block."""
    has_blocks = isinstance(content, list) and all(isinstance(block, Mapping) and "type" in block for block in content)
    return content if has_blocks else [content]


def _call(call: Any) -> _TraceLine:
    """The transcript line of a tool call: name, arguments and result, in any of the forms that providers use."""
    if not isinstance(call, Mapping):
        return _TraceLine(f"call {_print_value(call)}")
    function = call["function"] if isinstance(call.get("function"), Mapping) else call
    name, arguments = str(function.get("name", "?")), function.get("arguments")
    if isinstance(arguments, str):
        with suppress(ValueError):
            arguments = json.loads(arguments)
    text = call_text(name, arguments) if isinstance(arguments, Mapping | None) else f"{name}({as_line(arguments)})"
    result = next((call[name] for name in ("error", "result", "output") if call.get(name) is not None), None)
    suffix = "" if result is None else f" -> {_print_value(result)}"
    texts = (
        [argument for argument in arguments.values() if isinstance(argument, str)]
        if isinstance(arguments, Mapping)
        else []
    )
    return _TraceLine(
        f"call {printable(text)}{suffix}", text, name, frozenset((name, *(texts if len(texts) == 1 else ())))
    )


def _print_value(value: Any) -> str:
    """A value in a transcript as one printable line."""
    return printable(as_line(value))


_COMPARED = 1_000
_ALIKE = 0.5
"""Similarity from which differences are marked."""
_PIECES = re.compile(r"\w+|\s+|[^\w\s]", re.ASCII)
_INDENT = len("prediction: ")
_LINES = 3
_NARROWEST = 40
_MOST_ANSWERS = 5
_MOST_PASSAGES = 5
_SECOND = "\0"
"""Stands for the second column of a wide character; no printable text has it."""


def marked_difference(expected: str, prediction: str) -> str:
    """The difference of a prediction from the expected text: ``[-missing-]`` and ``{+added+}``.

    >>> marked_difference("Paris", "It is Paris.")
    '{+It is +}Paris{+.+}'
    """
    left, right = _PIECES.findall(expected), _PIECES.findall(prediction)
    parts = []
    for kind, i1, i2, j1, j2 in difflib.SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if kind == "equal":
            parts.append("".join(right[j1:j2]))
            continue
        if i1 < i2:
            parts.append(f"[-{''.join(left[i1:i2])}-]")
        if j1 < j2:
            parts.append(f"{{+{''.join(right[j1:j2])}+}}")
    return "".join(parts)


def explain(case: Case, record: CaseRecord, path: str = "", variant: str = "", *, width: int = 80) -> str:
    """The text of a failing case for the terminal: reason, location, answer and findings.

    Args:
        case: The case, with its prediction, if any.
        record: Its result.
        path: Its file, relative to pytest's rootdir; empty leaves the location out.
        variant: The system that answered, or another variant.
        width: Of the terminal; longer lines are wrapped, and values are cut to three lines.
    """
    reason = record.reason or "failed"
    blocks = [reason]
    if path:
        where = f"{path}:{case.line}" if case.line else path  # which editors and terminals link
        blocks.append(printable(f"{where}: case {case.id}{f' [{variant}]' if variant else ''}"))
    width = max(width, _NARROWEST)
    if case.prediction is not MISSING:
        blocks += _values(case, record, width)
    if record.repeats and "parts_at" in record.repeats:
        blocks.append(_wrap_text(" " * _INDENT, f"{'repeats:':<{_INDENT}}{repeats_line(record.repeats)}", width))
    for label, lines in record.lines.items():
        named = (f"{label}: {printable(line)}" for line in lines)
        blocks += [_wrap_text("  ", line, width) for line in named if line not in reason]
    return "\n".join(blocks)


def _values(case: Case, record: CaseRecord, width: int) -> Iterator[str]:
    """Yield a failing case's input, expected value and predictions, cut to the width, and their difference."""
    findings, room = findings_of(record), 2 * width - _INDENT
    failing = [reply for reply in record.answers if reply.failed] or record.answers
    answers = [(reply.value, reply.failed or reply.times) for reply in failing] or [(case.prediction, 1)]
    transcript = list(transcript_lines(_part(case, "messages", answers[0][0]), findings, room))
    transcript = transcript or list(call_lines(_part(case, "tool_calls", answers[0][0]), findings, room))
    for name, value in (("input", case.input), ("expected", case.expected)):
        if value is not None and not (value is case.input and isinstance(value, list) and transcript):
            yield _value(name, value, width)
    yield from (_wrap_text(" " * _INDENT, line, width) for line in transcript)
    for value, times in answers[:_MOST_ANSWERS]:
        often = f" ({times} of {record.repeats['times']} repeats)" if record.repeats else ""
        answer = _part(case, "answer", value)
        if answer is not None:
            yield _value("answer", answer, width, often)
        elif often or not transcript:
            yield _value("prediction", value, width, often)
        yield from _passages(case, value, width)
    if len(answers) > _MOST_ANSWERS:
        yield f"... and {len(answers) - _MOST_ANSWERS} more answers"
    first = answers[0][0]
    prediction = _part(case, "answer", first) or first
    expected = case.expected.get("answer") if isinstance(case.expected, Mapping) else case.expected
    best = _nearest(expected, prediction)
    if best is not None and best != prediction:
        yield _value("difference", marked_difference(best, prediction), width)


def _part(case: Case, name: str, prediction: Any) -> Any:
    """A part of a failing case's prediction, such as its answer; ``None`` if missing or of the wrong type."""
    if not isinstance(prediction, Mapping):
        return None
    parts = case.origin.parts if case.origin is not None else Parts()
    try:
        part = parts.find(name, prediction)
    except PredictionError:
        return None
    if name in ("messages", "tool_calls"):
        return part
    if name == "contexts":
        return part if isinstance(part, list) and all(isinstance(passage, str) for passage in part) else None
    return part if isinstance(part, str) else None


def _passages(case: Case, prediction: Any, width: int) -> Iterator[str]:
    """Yield the retrieved passages of a failing case's prediction, numbered, one per line."""
    passages = _part(case, "contexts", prediction) or []
    for number_of, passage in enumerate(passages[:_MOST_PASSAGES], 1):
        yield as_line(f"  [{number_of}] {' '.join(passage.split())}", width)
    if len(passages) > _MOST_PASSAGES:
        yield f"  ... and {counted(len(passages) - _MOST_PASSAGES, 'more passage')}"


def _value(name: str, value: Any, width: int, suffix: str = "") -> str:
    """A named value of a failing case, such as its input, cut and wrapped to the terminal's width."""
    room = _LINES * (width - _INDENT)
    text = as_line(value, room)
    if (columns := width_of(text)) > len(text):
        text = as_line(value, room * len(text) // columns)
    return _wrap_text(" " * _INDENT, f"{name + ':':<{_INDENT}}{text}{suffix}", width)


def _wrap_text(indent: str, text: str, width: int) -> str:
    """Text of a failing case wrapped to the terminal's width; wide characters count as two columns."""
    if width_of(text) <= width:
        return text
    # textwrap counts characters: one that takes two columns is followed by a second, until it has wrapped.
    spread = "".join(f"{character}{_SECOND}" if width_of(character) > 1 else character for character in text)
    lines = textwrap.wrap(spread, width, subsequent_indent=indent, break_on_hyphens=False, drop_whitespace=True)
    return "\n".join(lines).replace(_SECOND, "")


def _nearest(expected: Any, prediction: Any) -> str | None:
    """The expected text most similar to a prediction, for showing the difference; ``None`` if none is similar."""
    references = [expected] if isinstance(expected, str) else expected if isinstance(expected, list) else []
    texts = [reference for reference in references if isinstance(reference, str)]
    if not texts or not isinstance(prediction, str) or max(map(len, (*texts, prediction))) > _COMPARED:
        return None
    likeness = {
        text: difflib.SequenceMatcher(None, text, prediction, autojunk=False).ratio() for text in dict.fromkeys(texts)
    }
    best = max(likeness, key=lambda text: likeness[text])
    return best if likeness[best] >= _ALIKE else None


def repeats_line(repeats: Mapping[str, Any]) -> str:
    """A summary of a case's repeats: how many passed, and the first step at which they differ.

    >>> call, answer = {"what": "refund()", "repeats": [1, 3]}, {"what": "a message of the assistant", "repeats": [2]}
    >>> parts_at = {"turn": 2, "step": 1, "variants": [call, answer]}
    >>> repeats_line({"times": 3, "passed": 2, "status": "flaky", "parts_at": parts_at})
    '2 of 3 passed; they part in turn 2, step 1: refund() (1, 3), a message of the assistant (2)'
    """
    went = f"{repeats['passed']} of {repeats['times']} passed"
    parting = repeats.get("parts_at")
    if parting is None:
        return went
    place = (
        f"step {parting['step']}" if parting.get("turn") is None else f"turn {parting['turn']}, step {parting['step']}"
    )
    variants = [(variant.get("what", ""), ", ".join(map(str, variant["repeats"]))) for variant in parting["variants"]]
    listed = ", ".join(f"{what} ({numbers})".strip() for what, numbers in variants)
    return f"{went}; they part in {place}: {listed}"
